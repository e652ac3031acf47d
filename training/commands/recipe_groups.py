"""Groups of flags that several commands share.

A command's recipe inherits its groups. A flag's help is its entry in the
group's docstring, so that a recipe can give a field another default without
writing its help again.
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Annotated
from typing import Any
from typing import Literal
from typing import TypeVar
from typing import dataclass_transform

from pydantic import Field

from training.commands.fields import Count
from training.commands.fields import Length
from training.commands.fields import Positive
from training.commands.fields import Rate
from training.commands.fields import Share

Kind = TypeVar("Kind", bound=type)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def recipe(kind: Kind) -> Kind:
    """Makes a frozen dataclass, whose own fields come before its groups'."""
    make: Callable[[Any], Any] = dataclasses.dataclass(
        frozen=True, kw_only=True
    )
    made = make(kind)
    names = [*vars(made).get("__annotations__", {})]
    for group in kind.__bases__:
        names += getattr(group, "__dataclass_fields__", ())
    fields = made.__dataclass_fields__
    made.__dataclass_fields__ = {name: fields[name] for name in names}
    return made


@recipe
class Text:
    """Text for a language model.

    Attributes:
        data_dir: Directory of prepared tfds data. With it nothing is
            downloaded.
        mask_rate: Share of the tokens that a masked language model predicts.
            Of these, 80% are masked, 10% replaced, and 10% kept.
    """

    data_dir: str | None = None
    mask_rate: Share = 0.15


@recipe
class TextOfModel(Text):
    """Text for a language model that is trained already.

    Attributes:
        sequence_length: Number of tokens of an input. Default: the maximum that
            the model takes, up to 512.
        limit: Use only this number of inputs, from the beginning.
    """

    sequence_length: Length | None = None
    limit: Count | None = None


@recipe
class ModelSizes:
    """Sizes of a Transformer.

    Attributes:
        num_layers: Number of layers.
        hidden_dim: Width of the layers.
        num_heads: Number of attention heads.
        intermediate_dim: Width of the feed-forward networks.
    """

    num_layers: Count = 12
    hidden_dim: Count = 768
    num_heads: Count = 12
    intermediate_dim: Count = 3072


@recipe
class MemorySizes:
    """Sizes of product-key memories (section 4.1 of Kim and Jung).

    Attributes:
        num_sub_keys: Number of sub-keys for each half of a query. The number
            of slots is its square.
        memory_heads: Number of heads of a memory.
        memory_top_k: Number of slots that each head reads for a token.
        memory_key_dim: Width of a head's query.
    """

    num_sub_keys: Count = 512
    memory_heads: Count = 4
    memory_top_k: Count = 32
    memory_key_dim: Annotated[Count, Field(ge=2)] = 256

    def memory_config(self) -> dict[str, Any]:
        """Returns the arguments of `keras_pkm.layers.ProductKeyMemory`."""
        return {
            "num_sub_keys": self.num_sub_keys,
            "num_heads": self.memory_heads,
            "top_k": self.memory_top_k,
            "key_dim": self.memory_key_dim,
        }


@recipe
class Schedule:
    """Batches and steps of an optimizer.

    Attributes:
        batch_size: Number of examples in a batch, over all devices.
        warmup_ratio: Share of the steps in which the learning rates rise; then
            they fall to zero.
        clip_norm: Maximum norm of all gradients together.
    """

    batch_size: Count = 32
    warmup_ratio: Rate = 0.06
    clip_norm: Positive | None = 1.0


@recipe
class Machine:
    """The devices of a run.

    Attributes:
        strategy: default uses one device; mirrored all GPUs, or logical CPU
            devices without a GPU; multi_worker, for pretraining, all GPUs of
            the machines that TF_CONFIG lists.
        devices: Number of devices of the mirrored strategy. Default: all GPUs,
            or two logical CPU devices.
        precision: Dtype policy. Default: float32 with --strategy default;
            otherwise mixed_bfloat16, or mixed_float16 on GPUs without bfloat16.
        deterministic: Make all operations deterministic, so that runs repeat
            and resume bit for bit. Training on GPUs is slower then.
    """

    strategy: Literal["default", "mirrored", "multi_worker"] = "default"
    devices: Count | None = None
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] | None = (
        None
    )
    deterministic: bool = False


@recipe
class Run:
    """A run that can be resumed.

    Attributes:
        out: Directory to write: new, empty, or that of an unfinished run.
            Default: a new one in runs/, named after the run and the time.
        resume: Resume if --out contains an unfinished run of the same recipe.
        checkpoint_every: Number of steps between checkpoints. There is also one
            after each evaluation.
        max_skipped_steps: End the run after this number of steps in a row with
            a loss or gradient that is not finite. Such steps are skipped. With
            mixed_float16 they are usual, and do not end the run.
    """

    out: str | None = None
    resume: bool = True
    checkpoint_every: Count = 1000
    max_skipped_steps: Count = 3


@recipe
class Comparison:
    """A study that compares models.

    Attributes:
        out: Directory of the figures and the report.
        seeds: Number of seeds to train with. It can be raised later.
        processes: Number of jobs to do at the same time. Default: two, if there
            are two cores; one, if each job uses all GPUs.
    """

    out: pathlib.Path
    seeds: Count = 1
    processes: Count | None = None

    @property
    def at_once(self) -> int:
        """The number of models that train at the same time."""
        return self.processes or min(2, os.cpu_count() or 1)
