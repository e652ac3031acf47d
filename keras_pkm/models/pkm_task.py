"""The base class of tasks for backbones with memory."""

from typing import Any
from typing import Self

import keras_hub

from keras_pkm.models.checkpoint_readers import CheckpointReader
from keras_pkm.models.checkpoint_readers import open_checkpoint
from keras_pkm.trainers.distributed_training import DistributedTraining

_OF_THE_BACKBONE = ("memory_layers", "memory_block", "memory", "dtype")


class PKMTask(DistributedTraining):
    """Base of keras-hub's tasks for backbones with memory.

    A subclass lists it before the task of keras-hub among its bases.
    """

    @classmethod
    def check_backbone(cls, backbone: keras_hub.models.Backbone) -> None:
        """Checks that a backbone is of the class that the task needs.

        Args:
            backbone: The backbone.

        Raises:
            ValueError: it is of another class.
        """
        # The base class of question answerers takes any.
        known = cls.backbone_cls or keras_hub.models.Backbone
        if not isinstance(backbone, known):
            raise ValueError(
                f"`backbone` must be a `{cls.backbone_cls.__name__}`. "
                f"Received: a `{type(backbone).__name__}`. Convert it with "
                f"`{cls.backbone_cls.__name__}.from_backbone`."
            )

    @classmethod
    def from_preset(
        cls, preset: str, load_weights: bool = True, **kwargs: Any
    ) -> Self:
        """Loads a task from a preset.

        From a local directory of transformers it loads the backbone, the
        tokenizer, and the head if the directory has one of this kind;
        `memory_layers`, `memory_block` and `memory` then add memory. One
        warning names the tensors of the directory that have no place in the
        task, and the weights of the task that are new.

        Args:
            preset: str. A local preset directory, a local directory of
                transformers, or any other name that
                `keras_hub.models.Task.from_preset` takes.
            load_weights: bool. Whether to load the weights, too. Defaults to
                `True`.
            **kwargs: arguments of the task or its backbone.

        Returns:
            A task of this class.

        Raises:
            ValueError: a directory of transformers lacks tensors of the
                backbone or a tokenizer, or computes something else.
        """
        # The base class of question answerers takes any backbone.
        kind = getattr(cls.backbone_cls, "hugging_face_family", None)
        reader = open_checkpoint(preset, kind)
        if reader is None:
            return super().from_preset(
                preset, load_weights=load_weights, **kwargs
            )
        of_backbone = {
            name: kwargs.pop(name)
            for name in _OF_THE_BACKBONE
            if name in kwargs
        }
        backbone = kwargs.pop("backbone", None)
        if backbone is None:
            backbone = cls.backbone_cls.from_preset(
                preset, load_weights=False, **of_backbone
            )
        if "preprocessor" not in kwargs:
            kwargs["preprocessor"] = cls.preprocessor_cls(
                reader.make_tokenizer(backbone.vocabulary_size),
                sequence_length=min(512, backbone.max_sequence_length),
            )
        task = cls(backbone, **cls._checkpoint_config(reader, kwargs))
        if load_weights:
            reader.load_weights(task)
        return task

    @classmethod
    def _checkpoint_config(
        cls, reader: CheckpointReader, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Returns the task's arguments, with those of the checkpoint's head."""
        return arguments
