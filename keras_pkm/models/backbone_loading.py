"""Makes backbones with memory from plain ones, presets and checkpoints."""

import json
import logging
import pathlib
from collections.abc import Iterable
from typing import Any
from typing import Self

import keras
import keras_hub

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.models.checkpoint_readers import open_checkpoint
from keras_pkm.models.warm_start import copy_matching_weights

logger = logging.getLogger(__name__)


class BackboneLoading(keras_hub.models.Backbone):
    """Base of backbones with memory: loading, and saving as a preset.

    Attributes:
        plain_cls: The backbone of keras-hub without memory.
        hugging_face_family: The `model_type` of transformers.
    """

    plain_cls: type[keras_hub.models.Backbone]
    hugging_face_family: str

    @classmethod
    def from_backbone(
        cls,
        backbone: keras_hub.models.Backbone,
        memory_layers: Iterable[int],
        memory_block: str = "resm",
        memory: MemoryTemplate = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds memory to a plain model: the paper's "+Init".

        The weights of `backbone` are copied and the memories keep their
        initial values. With `memory_block="pkm"` the feed-forward networks
        that memories replace are dropped. The number of copied weights is
        logged; at level DEBUG, so are the paths of all others.

        Args:
            backbone: the plain counterpart of this class, such as
                `keras_hub.models.BertBackbone`, or a backbone of this class.
            memory_layers: tuple of int, see the class.
            memory_block: str, see the class. Defaults to `"resm"`.
            memory: optional dict, see the class.
            dtype: optional dtype policy. Defaults to that of `backbone`.
            **kwargs: arguments of the class to override `backbone`'s, such as
                `dropout` and `name`.

        Returns:
            A backbone of this class.

        Example:

        >>> plain = keras_hub.models.BertBackbone(
        ...     vocabulary_size=100,
        ...     num_layers=2,
        ...     num_heads=2,
        ...     hidden_dim=16,
        ...     intermediate_dim=32,
        ... )
        >>> backbone = keras_pkm.models.PKMBertBackbone.from_backbone(
        ...     plain,
        ...     memory_layers=(1,),
        ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
        ... )
        """
        config = backbone.get_config()
        for name in ("name", "trainable", "dtype"):
            config.pop(name)
        config.update(
            memory_layers=memory_layers,
            memory_block=memory_block,
            memory=memory,
            dtype=dtype or backbone.dtype_policy,
            **kwargs,
        )
        with_memory = cls(**config)
        report = copy_matching_weights(backbone, with_memory)
        logger.info("%s", report)
        logger.debug("%s", report.details())
        return with_memory

    @classmethod
    def from_preset(
        cls, preset: str, load_weights: bool = True, **kwargs: Any
    ) -> Self:
        """Loads a preset of this class or of its plain counterpart.

        Memory is added to a plain preset as by `from_backbone`. The same holds
        for a local directory of transformers (`config.json`,
        `model.safetensors` or its shards), which needs the package
        `safetensors`. One warning names the tensors of the directory that have
        no place in the backbone, and the weights of the backbone that are new.

        Args:
            preset: str. A local preset directory, a local directory of
                transformers, or any other name that
                `keras_hub.models.Backbone.from_preset` takes.
            load_weights: bool. Whether to load the weights, too. Defaults to
                `True`.
            **kwargs: arguments of the class. `memory_layers`, `memory_block`
                and `memory` are for plain presets only.

        Returns:
            A backbone of this class.

        Raises:
            ValueError: the preset is of another class, or has memory already
                while arguments ask for some; or a directory of transformers
                lacks tensors, or its model computes something else.
        """
        reader = open_checkpoint(preset, cls.hugging_face_family)
        if reader is not None:
            backbone = cls(**reader.backbone_config(**kwargs))
            if load_weights:
                reader.load_weights(backbone)
            return backbone
        added = {
            name: kwargs.pop(name)
            for name in ("memory_layers", "memory_block", "memory")
            if name in kwargs
        }
        backbone = keras_hub.models.Backbone.from_preset(
            preset, load_weights=load_weights, **kwargs
        )
        if isinstance(backbone, cls.plain_cls):
            return cls.from_backbone(backbone, **{"memory_layers": (), **added})
        if not isinstance(backbone, cls):
            raise ValueError(
                f"Preset '{preset}' must contain a `{cls.__name__}` or a "
                f"`{cls.plain_cls.__name__}`. "
                f"Received: a `{type(backbone).__name__}`. "
                "Call `from_preset` of that class."
            )
        if added:
            raise ValueError(
                f"`{'`, `'.join(added)}` can be given for plain presets only. "
                f"Preset '{preset}' has memory_layers="
                f"{backbone.memory_layers} already. Leave them out, or load "
                "it and call `from_backbone`."
            )
        return backbone

    def save_to_preset(
        self, preset_dir: str, max_shard_size: float = 10
    ) -> None:
        """Saves the backbone as a preset.

        The preset stores the dtype of the weights, such as float32, rather than
        a mixed policy that they were trained with: a policy is chosen on
        loading, and keras-hub cannot load tasks from presets with a mixed one.

        Args:
            preset_dir: str. The directory to write.
            max_shard_size: int or float. Size of a weights file in GB above
                which it is split. Defaults to `10`.
        """
        super().save_to_preset(preset_dir, max_shard_size=max_shard_size)
        path = pathlib.Path(preset_dir) / "config.json"
        config = json.loads(path.read_text())
        config["config"]["dtype"] = keras.dtype_policies.serialize(
            keras.DTypePolicy(self.dtype_policy.variable_dtype)
        )
        path.write_text(json.dumps(config, indent=4))
