"""Measures how an exported model uses its memories."""

import itertools
import os
from collections.abc import Sequence

import tensorflow as tf

from keras_pkm.export.arguments import ArgumentError
from keras_pkm.export.arguments import check_texts
from keras_pkm.export.arguments import check_unchanged
from keras_pkm.export.smaller import Progress
from keras_pkm.export.smaller import silent
from keras_pkm.probing.served_model import ServedModel
from keras_pkm.probing.usage_counter import UsageCounter


def memory_usage(
    model: str | os.PathLike[str],
    text: Sequence[str],
    *,
    preprocessor: str | os.PathLike[str] | None = None,
    batch_size: int = 32,
    progress: Progress = silent,
) -> tuple[dict[int, dict[str, float]], dict[int, int]]:
    """Measures how an exported model uses its memories, on text.

    It calls the signature `memory_access`, as any client could.

    Args:
        model: The directory of a model with memory that `saved_model` wrote.
        text: Strings. Each is one input: a text, the context of a question
            answerer, or the first text of a pair. Texts that are too long for
            the model are cut, except contexts.
        preprocessor: The directory of an exported preprocessor. Encoders need
            one, because they take no text.
        batch_size: Number of texts in a batch.
        progress: A function that takes the batches and a title and returns the
            batches, such as `tqdm.tqdm`. By default no progress is shown.

    Returns:
        Two dicts, keyed by the number of a memory's layer, counted from 1: the
        figures of `keras_pkm.metrics.MemoryUsage`, as Python numbers; and the
        number of slots.

    Raises:
        ValueError: An argument is invalid, or names no such exported model.
        RuntimeError: Keras uses another backend than TensorFlow.

    Example:

    >>> import tempfile
    >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] good film".split()
    >>> task = keras_pkm.models.add_memory(
    ...     keras_hub.models.BertMaskedLM(
    ...         keras_hub.models.BertBackbone(len(words), 2, 2, 16, 32),
    ...         keras_hub.models.BertMaskedLMPreprocessor(
    ...             keras_hub.models.BertTokenizer(words), sequence_length=8
    ...         ),
    ...     ),
    ...     (1,),
    ...     {"num_sub_keys": 16, "top_k": 4, "key_dim": 8},
    ... )
    >>> folder = tempfile.TemporaryDirectory()
    >>> served = f"{folder.name}/served"
    >>> exported = keras_pkm.export.saved_model(task, served)
    >>> usage, num_slots = keras_pkm.export.memory_usage(served, ["good film"])
    >>> num_slots
    {1: 256}
    >>> 0 < usage[1]["mu"] < 1
    True
    >>> folder.cleanup()
    """
    check_texts("text", text)
    if not text:
        raise ArgumentError("`text` must contain text, received none")
    if batch_size < 1:
        raise ArgumentError(
            f"`batch_size` must be at least 1, received {batch_size}"
        )
    for name, path in (("model", model), ("preprocessor", preprocessor)):
        if path is not None:
            check_unchanged(name, path)
    try:
        served = ServedModel(model, preprocessor)
    except ValueError as error:
        raise ArgumentError(
            f"`model`, or `preprocessor`, cannot be used: {error}"
        ) from error
    batches = [
        list(text[first : first + batch_size])
        for first in range(0, len(text), batch_size)
    ]
    accesses = iter(served.read(progress(batches, "Usage")))
    try:
        # There is one, since there is text.
        first = next(accesses)
    except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ArgumentError(
            f"`model` and `preprocessor` must suit each other, received "
            f"'{model}' and '{preprocessor}': {reason}"
        ) from error
    usage = UsageCounter(first.num_slots)
    for access in itertools.chain([first], accesses):
        usage.update(access.memories, access.is_token)
    return usage.figures, usage.num_slots
