"""A causal language model in three parts, to compute some of it once."""

from typing import Any
from typing import NamedTuple

import keras
import keras_hub
from keras import ops

from keras_pkm.layers.memories import memories
from keras_pkm.layers.memory_block import MemoryBlock


class SplitModel(NamedTuple):
    """A causal language model, cut behind one of its blocks.

    Attributes:
        lower: Model of a backbone's inputs. It returns the output of the block.
        normalization: The layer through which the memory sees that output.
        upper: Model of such an output and of the padding mask. It returns what
            the backbone returns.
        head: Model of what the backbone returns. It returns logits.
    """

    lower: keras.Model
    normalization: keras.layers.Layer | None
    upper: keras.Model
    head: keras.Model


def split_model(task: keras_hub.models.CausalLM) -> SplitModel:
    """Cuts a model behind the block that has its only memory.

    The parts share the model's layers. They leave the memory itself out.

    Args:
        task: A task of `keras_pkm.models.add_memory`.

    Raises:
        ValueError: it has no memory behind a block, or several.
    """
    backbone = task.backbone
    blocks = list(getattr(backbone, "transformer_layers", ()))
    found = memories(task)
    number = next(iter(found), 0)
    block = blocks[number - 1] if 0 < number <= len(blocks) else None
    if len(found) != 1 or not isinstance(block, MemoryBlock):
        raise ValueError(
            "`task` must have one memory, behind one of its blocks. Received: "
            f"a `{type(task).__name__}` with {len(found)} memories. Make it "
            "with `keras_pkm.models.add_memory(task, (number,), memory)`."
        )
    plain = backbone.plain_backbone
    if set(plain.input) != {"token_ids", "padding_mask"}:
        raise ValueError(
            "`task` must take token ids and a padding mask alone. Received: "
            f"a model of {', '.join(plain.input)}."
        )
    inputs, outputs, output = _walk(plain, block.block)
    _, logits, hidden = _walk(task, backbone)
    return SplitModel(
        keras.Model(inputs, output),
        block.normalization,
        keras.Model([output, inputs["padding_mask"]], outputs),
        keras.Model(hidden, logits),
    )


def answer_model(task: keras_hub.models.CausalLM) -> keras.Model:
    """Returns a model of logits at some places of a text alone.

    Args:
        task: A causal language model.

    Returns:
        A model of the task's inputs and of `places`, of shape `(batch, n)`. Its
        outputs have the shape `(batch, n, vocabulary_size)`.
    """
    _, logits, hidden = _walk(task, task.backbone)
    head = keras.Model(hidden, logits)
    places = keras.Input((None,), dtype="int32", name="places")
    picked = ops.take_along_axis(
        task.backbone.output, places[..., None], axis=1
    )
    return keras.Model({**task.backbone.input, "places": places}, head(picked))


def _walk(model: keras.Model, layer: keras.layers.Layer) -> tuple[Any, ...]:
    """The inputs and outputs of a functional model, and a layer's output."""
    found = []

    def call(each: keras.layers.Layer, *args: Any, **kwargs: Any) -> Any:
        outputs = each(*args, **kwargs)
        if each is layer:
            found.append(outputs[0] if isinstance(outputs, tuple) else outputs)
        return outputs

    graph = keras.models.clone_model(
        # Not compiled: an optimizer would make variables for all weights.
        keras.Model(model.input, model.output),
        clone_function=lambda each: each,
        call_function=call,
    )
    return graph.input, graph.output, found[0]
