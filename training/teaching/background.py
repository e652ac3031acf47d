"""Finds how often a run's training text reads each slot."""

import contextlib
import logging
from collections.abc import Iterator

from keras_pkm.teaching.slot_importance import SlotImportance
from training.corpora.corpus import open_corpus
from training.corpora.packed_text import open_packed
from training.loading.pretrained_model import LanguageModel
from training.measuring.memory_reads import count_background
from training.measuring.text_batches import PackedText
from training.measuring.text_batches import pack_text
from training.runs.files import check_unchanged
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError
from training.teaching.methods import Method

_LOGGER = logging.getLogger(__name__)
_SEED = 20_000
_MASK_RATE = 0.15


def check_background(name: str, background: str | None) -> None:
    """Checks that there is training text for the importance of slots."""
    run = RunDirectory(name)
    has_data = run.is_pretraining_run and run.has_data
    if background is None and not (
        run.document_frequencies.exists() or has_data
    ):
        raise UserError(
            "--method slots needs text that the model was trained on, but "
            f"'{run.root}' contains none: pass --background TEXT, or --method "
            "values"
        )


def find_importance(
    name: str,
    model: LanguageModel,
    *,
    background: str | None,
    data_dir: str | None,
    batch_size: int,
) -> SlotImportance:
    """Returns the importance of slots against a model's training text.

    It is counted on the text of `--background`, if there is one. Otherwise it
    is read from the run, or counted on the run's packed text.
    """
    check_background(name, background)
    run = RunDirectory(name)
    if background is None and run.document_frequencies.exists():
        check_unchanged(run.document_frequencies, "--model")
        try:
            return SlotImportance.load(run.document_frequencies)
        except ValueError as error:
            raise UserError(f"--model must be a whole run: {error}") from error
    with _open_text(run, model, background, data_dir) as text:
        batches = text.objective.training_batches(
            text.rows, batch_size=batch_size, seed=_SEED
        )
        return count_background(model.task, batches)


def choose_method(importance: SlotImportance, slots: int) -> Method:
    """Returns `"slots"` if a model's memories have enough slots to choose from.

    A slot that all batches of the background read is never chosen.
    """
    for number, read_by in importance.document_frequencies.items():
        specific = int((read_by < importance.num_batches).sum())
        if specific < slots:
            _LOGGER.warning(
                f"All values that are read are trained, as with --method "
                f"values: {len(read_by) - specific:,} of the {len(read_by):,} "
                f"slots of memory {number} are read by all text, which leaves "
                f"fewer than --slots {slots} to choose from."
            )
            return "values"
    return "slots"


@contextlib.contextmanager
def _open_text(
    run: RunDirectory,
    model: LanguageModel,
    background: str | None,
    data_dir: str | None,
) -> Iterator[PackedText]:
    _, family, tokenizer = model
    if background is None:
        check_unchanged(run.data, "--model")
        length = run.read_recipe()["sequence_length"]
        size = tokenizer.vocabulary_size()
        rows = open_packed(run.packed_train, length, size)
        objective = family.make_objective(tokenizer, length, _MASK_RATE)
        yield PackedText(rows, objective)
        return
    corpus = open_corpus(background, data_dir)
    length = min(128, model.backbone.max_sequence_length)
    objective = family.make_objective(tokenizer, length, _MASK_RATE)
    with pack_text(corpus, objective, limit=None) as text:
        yield text
