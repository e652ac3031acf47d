"""Makes the module to save, for each `--what`."""

import keras_hub
import tensorflow as tf

from export.graph.encoder import Encoder
from export.modules.saved_encoder import SavedEncoder
from export.modules.saved_masked_lm import SavedMaskedLM
from export.modules.saved_preprocessor import SavedPreprocessor
from export.modules.saved_question_answerer import SavedQuestionAnswerer
from export.modules.saved_text_classifier import SavedTextClassifier
from export.trained.recipe import ExportRecipe
from export.trained.source import Source
from export.trained.trained_model import TrainedModel
from keras_pkm.text.window_sizes import WindowSizes
from training.runs.user_error import UserError


def make_module(
    model: TrainedModel, recipe: ExportRecipe, encoder: Encoder | None
) -> tf.train.Checkpoint:
    """Returns the module to save, with `signatures_to_save`."""
    length = model.sequence_length
    if encoder is None:  # of a preprocessor alone
        return SavedPreprocessor(model.tokenizer, length)
    if recipe.what == "encoder":
        return SavedEncoder(encoder, model.task)
    if recipe.what == "mlm":
        return SavedMaskedLM(encoder, model.task, model.tokenizer, length)
    if recipe.what == "classifier":
        labels, texts = _classes_of(model.task, model.source, recipe)
        return SavedTextClassifier(
            encoder, model.task, model.tokenizer, length, labels, texts
        )
    defaults = WindowSizes()
    trained = model.source.recipe
    sizes = WindowSizes(
        length,
        recipe.stride or trained.get("stride", defaults.stride),
        recipe.answer_length
        or trained.get("answer_length", defaults.answer_length),
    )
    return SavedQuestionAnswerer(encoder, model.task, model.tokenizer, sizes)


def _classes_of(
    task: keras_hub.models.Task, source: Source, recipe: ExportRecipe
) -> tuple[list[str], int]:
    """The names of a classifier's classes, and the number of texts it takes."""
    trained = source.results
    count = task.num_classes
    labels = recipe.labels or trained.get("classes") or map(str, range(count))
    labels = list(labels)
    if len(labels) != count:
        raise UserError(
            f"--labels must name the model's {count} classes, received "
            f"{len(labels)}: {' '.join(labels)}"
        )
    return labels, recipe.texts or trained.get("texts", 1)
