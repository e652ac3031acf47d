"""Loads models of Hugging Face's transformers, with memories or without."""

import inspect
import os
from collections.abc import Iterable
from typing import Any

import keras
import keras_hub

from keras_pkm.converters.hugging_face import HuggingFaceDirectory
from keras_pkm.converters.hugging_face_hub import local_directory
from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.models.families import KINDS
from keras_pkm.models.families import backbone_class
from keras_pkm.models.families import plain_task_class
from keras_pkm.models.families import task_class
from keras_pkm.ops.arguments import only_known
from keras_pkm.ops.arguments import positive_ints


def from_transformers(
    directory: str | os.PathLike[str],
    memory_layers: Iterable[int] = (),
    memory: MemoryTemplate = None,
    memory_block: str = "resm",
    share_table: bool = False,
    task: type[keras_hub.models.Task] | None = None,
    load_weights: bool = True,
    dropout: float | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    **kwargs: Any,
) -> keras_hub.models.Backbone | keras_hub.models.Task:
    """Loads a BERT, DistilBERT or RoBERTa of Hugging Face's transformers.

    The model computes the same as in transformers: it has the activation and
    the epsilons of the checkpoint, also in its config, and a tokenizer that
    gives the same ids. One warning names the tensors of the directory that
    have no place in the model, and the weights of the model that are new.

    Args:
        directory: str or path. A directory with `config.json`,
            `model.safetensors` or its shards, and the files of a tokenizer; or
            a model of the Hugging Face Hub, as `hf://user/name`. Loading needs
            the package `safetensors`.
        memory_layers: tuple of int. The layers with a memory, counted from 1.
            Defaults to none: a plain model that trains like those with memory.
        memory: optional, see `keras_pkm.models.add_memory`.
        memory_block: `"resm"`, `"pkm"`, `"ffn"` or `"serial"`, see
            `keras_pkm.models.add_memory`. Defaults to `"resm"`.
        share_table: bool. Whether all memories read one table of values.
            Defaults to `False`.
        task: optional. The kind of task: `keras_hub.models.MaskedLM`,
            `keras_hub.models.TextClassifier` or
            `keras_pkm.models.QuestionAnswerer`. The head is loaded if the
            directory has one of this kind. Defaults to the backbone alone.
        load_weights: bool. Whether to load the weights, too. Defaults to
            `True`.
        dropout: optional float. The dropout rate of all layers of the
            backbone. Defaults to the directory's.
        dtype: optional dtype policy of the backbone.
        **kwargs: arguments of the task, such as `num_classes` and
            `preprocessor`.

    Returns:
        A `keras_pkm.models.MemoryBackbone`, or a task around one.

    Raises:
        ValueError: the directory lacks tensors of the backbone or a
            tokenizer, or has features that are not supported; or an argument
            is invalid.

    Example:

    ```python
    classifier = keras_pkm.models.from_transformers(
        "path/of/a/bert",
        memory_layers=(4, 8),
        task=keras_hub.models.TextClassifier,
        num_classes=2,
    )
    ```

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    """
    if task is None and kwargs:
        raise ValueError(
            f"`{'`, `'.join(kwargs)}` can be given with `task` only. "
            "Received: task=None."
        )
    memory_layers = tuple(positive_ints("memory_layers", memory_layers))
    if not memory_layers and (memory is not None or share_table):
        raise ValueError(
            "`memory_layers` must name the layers that get a memory. Received: "
            "none, with `memory` or `share_table`."
        )
    if task is not None and task not in KINDS:
        kinds = ", ".join(f"`{kind.__name__}`" for kind in KINDS[1:])
        raise ValueError(
            f"`task` must be one of the classes {kinds}. Received: {task!r}."
        )
    reader = HuggingFaceDirectory(local_directory(directory))
    plain_cls = reader.family.backbone
    model: Any = backbone_class(plain_cls)(
        plain_cls(**reader.backbone_config(dropout), dtype=dtype),
        memory_layers,
        memory,
        memory_block,
        share_table,
        **reader.architecture(),
    )
    if task is not None:
        plain_task = plain_task_class(task, plain_cls)
        cls = task_class(plain_task)
        of_task = {*inspect.signature(plain_task).parameters} - {"kwargs"}
        of_keras = {"name", "trainable", "compile"}
        only_known(kwargs, of_task - {"backbone"} | of_keras)
        if "preprocessor" not in kwargs:
            kwargs["preprocessor"] = cls.preprocessor_cls(
                reader.make_tokenizer(model.vocabulary_size),
                sequence_length=min(512, model.max_sequence_length),
            )
        if task is keras_hub.models.TextClassifier:
            kwargs = reader.classifier_config(**kwargs)
        model = cls(model, **kwargs)
    if load_weights:
        reader.load_weights(model)
    return model
