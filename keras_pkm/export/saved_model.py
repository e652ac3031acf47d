"""Writes a model as a SavedModel that needs none of our code."""

import dataclasses
import functools
import os
import pathlib
import tempfile
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras_hub
import tensorflow as tf

from keras_pkm.export.arguments import ArgumentError
from keras_pkm.export.arguments import check_new_directory
from keras_pkm.export.arguments import check_options
from keras_pkm.export.arguments import check_texts
from keras_pkm.export.encoder import INPUTS
from keras_pkm.export.encoder import Encoder
from keras_pkm.export.memories_file import write_memories
from keras_pkm.export.model_card import CARD
from keras_pkm.export.model_card import format_model_card
from keras_pkm.export.modules.saved_encoder import SavedEncoder
from keras_pkm.export.modules.saved_masked_lm import SavedMaskedLM
from keras_pkm.export.modules.saved_preprocessor import SavedPreprocessor
from keras_pkm.export.modules.saved_question_answerer import (
    SavedQuestionAnswerer,
)
from keras_pkm.export.modules.saved_text_classifier import SavedTextClassifier
from keras_pkm.export.smaller import Progress
from keras_pkm.export.smaller import make_encoder
from keras_pkm.export.smaller import silent
from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.whole_files import new_directory
from keras_pkm.layers.fact_memory import FactMemory
from keras_pkm.layers.memories import memories
from keras_pkm.models import QuestionAnswerer
from keras_pkm.text.tokenize import why_not_in_graphs
from keras_pkm.text.windows import WindowSizes

#: The tasks that can be exported with text as inputs, by `what`.
TASKS = {
    "mlm": keras_hub.models.MaskedLM,
    "classifier": keras_hub.models.TextClassifier,
    "qa": QuestionAnswerer,
}
_PREPROCESSING = (
    keras_hub.models.Preprocessor,
    keras_hub.tokenizers.Tokenizer,
)
# Tokens of an input, if no preprocessor defines it.
_LENGTH = 128


@dataclasses.dataclass(frozen=True)
class Exported:
    """What `saved_model` wrote.

    Attributes:
        path: The directory.
        what: The kind of model.
        size: Its number of bytes on disk.
        change: A Markdown table that compares it with the given model; empty
            if `compare` and `prune_unused` were empty.
    """

    path: pathlib.Path
    what: str
    size: int
    change: str


def saved_model(
    task: Any,
    path: str | os.PathLike[str],
    *,
    what: str | None = None,
    tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
    sequence_length: int | None = None,
    labels: Sequence[str] = (),
    texts: int | None = None,
    stride: int | None = None,
    answer_length: int | None = None,
    values_dtype: str = "float32",
    prune_unused: Sequence[str] = (),
    keep_top: float = 100.0,
    compare: Sequence[str] = (),
    name: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    report: str = "",
    progress: Progress = silent,
) -> Exported:
    """Writes a model as a SavedModel that loads without this package.

    The SavedModel contains operations of TensorFlow and TensorFlow Text only,
    and a model card, `README.md`. It is written whole or not at all. All kinds
    of memory, and models without memory, can be exported.

    Args:
        task: A masked language model, text classifier or question answerer of
            KerasHub or of this package. For `what="encoder"` a backbone is
            enough, and for `what="preprocessor"` a preprocessor or tokenizer.
        path: The directory to write; new or empty.
        what: What to export: `"mlm"` (predicts the masked tokens of a text),
            `"classifier"` (predicts the class of a text), `"qa"` (answers a
            question from its context), or `"encoder"` or `"preprocessor"`
            (both with TF Hub's API for text). Defaults to the kind of `task`.
        tokenizer: The tokenizer of the model. Defaults to that of the
            preprocessor of `task`. Unless an encoder is exported, it must be a
            WordPiece tokenizer, such as BERT's.
        sequence_length: Number of tokens of an input. Defaults to that of the
            preprocessor of `task`; without one, to 128 or the model's maximum,
            whichever is less.
        labels: Names of a classifier's classes. Default to their numbers.
        texts: Number of texts of a classifier's input: 1, or 2 for pairs.
            Defaults to 1.
        stride: Number of tokens between the starts of two windows of a
            question's context. Defaults to 128.
        answer_length: Maximum number of tokens of an answer. Defaults to 30.
        values_dtype: Format of the stored memory values: `"float32"`,
            `"bfloat16"`, or `"int8"` with a scale for each row (not for a
            `keras_pkm.layers.FactMemory`). Only float32 can be trained further.
        prune_unused: Texts. Only memory rows that these texts read are kept, by
            a masked language model also with each of their tokens masked; all
            others are replaced by a single row of zeros. Like `compare`, it
            reads single texts, and so does not work for models of two texts.
        keep_top: With `prune_unused`, only the smallest set of rows that has
            this percentage of the weights of all reads is kept.
        compare: Texts on which the exported model is compared with the given
            one. Defaults to a tenth of `prune_unused`, which is then not used
            to choose rows.
        name: The model's name in the model card. Defaults to `task.name`.
        recipe: The settings of its training, for the card; a dict that can be
            serialized as JSON.
        report: The figures of its training as Markdown, for the card.
        progress: A function that takes the batches of `prune_unused` and
            `compare` and a title, and returns the batches, such as `tqdm.tqdm`.
            By default no progress is shown.

    Returns:
        What was written: an object with the attributes `path`, `what`, `size`
        in bytes, and `change`, the result of the comparison as Markdown.

    Raises:
        ValueError: An argument is impossible, or does not fit `task`.
        OSError: `path` cannot be written.
        RuntimeError: Keras uses another backend than TensorFlow.

    Example:

    >>> import tempfile
    >>> words = "[PAD] [UNK] [CLS] [SEP] [MASK] a good film".split()
    >>> task = keras_pkm.models.add_memory(
    ...     keras_hub.models.BertTextClassifier(
    ...         keras_hub.models.BertBackbone(len(words), 2, 2, 16, 32),
    ...         num_classes=2,
    ...         preprocessor=keras_hub.models.BertTextClassifierPreprocessor(
    ...             keras_hub.models.BertTokenizer(words), sequence_length=8
    ...         ),
    ...     ),
    ...     (1,),
    ...     {"num_sub_keys": 16, "top_k": 4, "key_dim": 8},
    ... )
    >>> folder = tempfile.TemporaryDirectory()
    >>> served = f"{folder.name}/served"
    >>> keras_pkm.export.saved_model(task, served, labels=["bad", "good"]).what
    'classifier'
    >>> model = tf.saved_model.load(served)  # needs tensorflow_text alone
    >>> model(tf.constant(["a good film", "a film"]))["scores"].shape
    TensorShape([2, 2])
    >>> folder.cleanup()
    """
    path = pathlib.Path(path)
    what = what or _kind_of(task)
    check_options(
        *(what, values_dtype, sequence_length, stride, answer_length, labels),
        *(texts, keep_top, prune_unused, compare),
    )
    check_texts("labels", labels)
    check_texts("prune_unused", prune_unused)
    check_texts("compare", compare)
    check_new_directory(path)
    tokenizer, length = _preprocessing_of(task, what, tokenizer)
    length = sequence_length or length
    encoder, model, change = None, None, ""
    if what == "preprocessor":
        module = SavedPreprocessor(tokenizer, length or _LENGTH)
    else:
        backbone, head = _backbone_and_head(task, what)
        model = head or backbone
        _check_precision(model, values_dtype)
        inputs = backbone.input
        names = set(inputs) if isinstance(inputs, dict) else {"others"}
        if unknown := names - set(INPUTS.values()):
            raise ArgumentError(
                f"`task` must have the inputs {', '.join(INPUTS.values())}, or "
                f"some of them, received a `{type(backbone).__name__}` with "
                f"{', '.join(sorted(unknown))}"
            )
        # Models with relative positions take any length.
        longest = getattr(backbone, "max_sequence_length", None)
        length = length or min(_LENGTH, longest or _LENGTH)
        if longest is not None and length > longest:
            raise ArgumentError(
                f"`sequence_length` must be at most the model's {longest}, "
                f"received {length}"
            )
        if what == "classifier":
            labels = _check_labels(labels, head.num_classes)
        if what == "qa" or (what == "classifier" and texts == 2):
            _check_measured(prune_unused, compare)
        encoder, change = make_encoder(
            *(backbone, head, tokenizer, length, values_dtype),
            *(prune_unused, keep_top, compare, progress),
        )
        if values_dtype != "float32" and not encoder.tables:
            raise ArgumentError(
                "`values_dtype` needs a model with memory, but `task` has "
                "none: leave it out"
            )
        if what == "encoder":
            try:
                module = SavedEncoder(encoder, head)
            except tf.errors.OperatorNotAllowedInGraphError as error:
                raise ArgumentError(
                    "`task` must be a model that TensorFlow can trace for "
                    "inputs of any length, received a "
                    f"`{type(backbone).__name__}`"
                ) from error
        elif what == "mlm":
            module = SavedMaskedLM(encoder, head, tokenizer, length)
        elif what == "classifier":
            module = SavedTextClassifier(
                encoder, head, tokenizer, length, labels, texts or 1
            )
        else:
            usual = WindowSizes()
            sizes = WindowSizes(
                length,
                stride or usual.stride,
                answer_length or usual.answer_length,
            )
            module = SavedQuestionAnswerer(encoder, head, tokenizer, sizes)
    make_card = functools.partial(
        format_model_card,
        what=what,
        directory=path.name,
        name=name or getattr(task, "name", "") or type(task).__name__,
        mask_token=getattr(tokenizer, "mask_token", ""),
        module=module,
        encoder=encoder,
        values_dtype=values_dtype,
        change=change,
        report=report,
        recipe=recipe,
    )
    _write(path, module, make_card, tokenizer, model, encoder)
    files = [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return Exported(path, what, size, change)


def _check_precision(model: Any, values_dtype: str) -> None:
    """Checks that no row of a memory of facts would be rounded too far."""
    if values_dtype == "int8":
        for memory in memories(model).values():
            if isinstance(memory, FactMemory):
                raise ArgumentError(
                    "`values_dtype` must be float32 or bfloat16 for a memory "
                    "of facts, whose rows have a bias beside much smaller "
                    f"numbers, received {values_dtype}"
                )


def _kind_of(task: Any) -> str:
    """The kind of export that gives most of a model."""
    for kind, cls in TASKS.items():
        if isinstance(task, cls):
            return kind
    if isinstance(task, _PREPROCESSING):
        return "preprocessor"
    return "encoder"


def _preprocessing_of(
    task: Any, what: str, tokenizer: keras_hub.tokenizers.Tokenizer | None
) -> tuple[Any, int | None]:
    """A model's tokenizer and the length of its inputs, as far as known."""
    preprocessor = getattr(task, "preprocessor", None)
    if isinstance(task, keras_hub.models.Preprocessor):
        preprocessor = task
    truncate = getattr(preprocessor, "truncate", "round_robin")
    if what in ("preprocessor", "classifier") and truncate != "round_robin":
        raise ArgumentError(
            "`task` must have a preprocessor with truncate='round_robin', "
            f"received {truncate!r}: two texts that are too long together are "
            "served so"
        )
    where = "task" if tokenizer is None else "tokenizer"
    if tokenizer is None and isinstance(task, keras_hub.tokenizers.Tokenizer):
        tokenizer = task
    tokenizer = tokenizer or getattr(preprocessor, "tokenizer", None)
    if what != "encoder":
        if tokenizer is None:
            raise ArgumentError(
                "`task` must have a preprocessor with a tokenizer, but has "
                "none: pass `tokenizer`, or `what` encoder"
            )
        if missing := why_not_in_graphs(tokenizer):
            raise ArgumentError(
                f"`{where}` must have {missing}: pass `what` encoder, and "
                "tokenize outside"
            )
    return tokenizer, getattr(preprocessor, "sequence_length", None)


def _backbone_and_head(
    task: Any, what: str
) -> tuple[keras_hub.models.Backbone, Any]:
    """The backbone of a model, and the task of which the export has a head."""
    if what in TASKS:
        if isinstance(task, TASKS[what]):
            return task.backbone, task
        wanted = f"a {TASKS[what].__name__} for `what` {what}"
    else:
        if isinstance(task, keras_hub.models.Backbone):
            return task, None
        if isinstance(task, keras_hub.models.Task):
            is_masked_lm = isinstance(task, keras_hub.models.MaskedLM)
            return task.backbone, task if is_masked_lm else None
        wanted = "a task or a backbone of KerasHub"
    raise ArgumentError(
        f"`task` must be {wanted}, received a {type(task).__name__}: pass "
        "another model, or another `what`"
    )


def _check_measured(
    prune_unused: Sequence[str], compare: Sequence[str]
) -> None:
    """Checks that no model of two texts is measured on single ones."""
    given = {"prune_unused": prune_unused, "compare": compare}
    for name, some in given.items():
        if some:
            raise ArgumentError(
                f"`{name}` must be left out for models of two texts, which "
                f"single texts say nothing about, received {len(some)}: export "
                "the encoder with it, or another `values_dtype`"
            )


def _check_labels(labels: Sequence[str], count: int) -> list[str]:
    """The names of a classifier's classes."""
    if count < 2:
        raise ArgumentError(
            f"`task` must have at least two classes, received {count}: a "
            "number, such as that of a regression, has no label"
        )
    labels = list(labels) or [str(number) for number in range(count)]
    if len(labels) != count:
        raise ArgumentError(
            f"`labels` must name the model's {count} classes, received "
            f"{len(labels)}: {' '.join(labels)}"
        )
    return labels


def _write(
    path: pathlib.Path,
    module: tf.train.Checkpoint,
    make_card: Callable[..., str],
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
    model: keras_hub.models.Backbone | keras_hub.models.Task | None,
    encoder: Encoder | None,
) -> None:
    """Writes all files of an export, whole or not at all."""
    with (
        tempfile.TemporaryDirectory() as assets,
        new_directory(path) as partial,
    ):
        if tokenizer is not None:
            tokenizer.save_assets(assets)
        for file in sorted(pathlib.Path(assets).iterdir()):
            setattr(module, file.stem, tf.saved_model.Asset(str(file)))
        tf.saved_model.save(module, str(partial), module.signatures_to_save)
        card = make_card(saved=partial)
        (partial / CARD).write_text(card, encoding="utf-8")
        if encoder is not None and encoder.tables:
            write_memories(partial, model, encoder)
        seal_directory(partial, but=(CARD,))
