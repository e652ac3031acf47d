"""Collects the memory reads of a trained or an exported model."""

import contextlib
import itertools
import pathlib
from collections.abc import Iterator

import tensorflow as tf
from tqdm import tqdm

from keras_pkm.probing.memory_access import read_backbone
from keras_pkm.probing.served_model import ServedModel
from training.analysis.recipe import AnalysisRecipe
from training.batches.labelled import dev_batches
from training.batches.labelled import encode_texts
from training.corpora.corpus import Corpus
from training.loading.pretrained_model import LanguageModel
from training.loading.pretrained_model import PretrainedModel
from training.loading.pretrained_model import load_pretrained
from training.measuring.memory_reads import TextReads
from training.measuring.memory_reads import collect_reads
from training.measuring.memory_reads import compare_classes
from training.measuring.text_batches import input_length
from training.measuring.text_batches import pack_text
from training.runs.files import check_unchanged
from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.glue import GLUE
from training.tasks.glue import load_glue

# Number of tokens for which the report shows who reads which slots.
_KEPT_TOKENS = 500_000


def load_with_memory(name: str, flag: str) -> PretrainedModel:
    """Loads a model that must have a memory."""
    model = load_pretrained(name, None)
    if not getattr(model.backbone, "memory_outputs", None):
        raise UserError(
            f"{flag} must have a memory, but '{name}' has none: pass a model "
            "with one"
        )
    return model


def read_served_model(recipe: AnalysisRecipe, corpus: Corpus) -> TextReads:
    """Collects the reads of an exported model, line by line of a text."""
    if recipe.task is not None:
        raise UserError(
            "--task needs a model that was not exported: pass the run that it "
            "was exported from"
        )
    for path in filter(None, (recipe.model, recipe.preprocessor)):
        check_unchanged(pathlib.Path(path), "--model, or --preprocessor,")
    try:
        model = ServedModel(recipe.model, recipe.preprocessor)
    except ValueError as error:
        raise UserError(
            f"--model, or --preprocessor, cannot be used: {error}"
        ) from error
    stripped = (
        line.strip() for document in corpus for line in document.split("\n")
    )
    lines = itertools.islice(filter(None, stripped), recipe.limit)

    def batches() -> Iterator[list[str]]:
        while batch := list(itertools.islice(lines, recipe.batch_size)):
            yield batch

    return collect_reads(
        model.read(tqdm(batches(), "Reading", disable=None)), kept_tokens=0
    )


@contextlib.contextmanager
def masked_batches(
    recipe: AnalysisRecipe,
    model: PretrainedModel | LanguageModel,
    corpus: Corpus,
) -> Iterator[tf.data.Dataset]:
    """Masks a text as for the measurement of perplexity."""
    length = input_length(recipe, model.backbone.max_sequence_length)
    objective = model.family.make_objective(
        model.tokenizer, length, recipe.mask_rate
    )
    with pack_text(corpus, objective, recipe.limit) as text:
        yield objective.held_out_batches(
            text.rows, batch_size=recipe.batch_size, seed=recipe.seed
        )


def read_trained_model(
    recipe: AnalysisRecipe, model: PretrainedModel, corpus: Corpus
) -> TextReads:
    """Collects a model's reads on a masked text, as for its perplexity."""
    with masked_batches(recipe, model, corpus) as batches:
        return collect_reads(
            read_backbone(
                model.backbone, tqdm(batches, "Reading", disable=None)
            ),
            kept_tokens=_KEPT_TOKENS,
        )


def read_classes(
    recipe: AnalysisRecipe, model: PretrainedModel
) -> tuple[tuple[str, str] | None, dict[str, dict]]:
    """Compares the reads for the first two classes of `--task`."""
    if recipe.task is None:
        return None, {}
    task = GLUE[recipe.task]
    models = {"pretrained": model}
    if recipe.fine_tuned is not None:
        models["fine-tuned"] = load_with_memory(
            recipe.fine_tuned, "--fine-tuned"
        )
    splits = load_glue(task, recipe.glue, recipe.data_dir, BadRows())
    examples = splits[f"dev{task.dev[0]}"]
    classes = {}
    for name, some in models.items():
        preprocessor = some.family.preprocessor(
            some.tokenizer,
            sequence_length=recipe.sequence_length
            or min(128, some.backbone.max_sequence_length),
        )
        data = encode_texts(
            examples.texts,
            examples.labels,
            preprocessor,
            f"{task.title}, {name}",
        )
        classes[name] = compare_classes(
            read_backbone(
                some.backbone, dev_batches(data, batch_size=recipe.batch_size)
            ),
            examples.labels,
        )
    no, yes = task.classes[:2]
    return (no, yes), classes
