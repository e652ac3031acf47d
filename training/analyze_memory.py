"""Shows how a model uses its memories, as a page with plots and tables.

    python training/analyze_memory.py --model runs/books --data held-out.txt

writes a directory with `report.html`, which opens offline, the plots as PNG and
SVG, and `report.json` with every number.
"""

import dataclasses
import itertools
import logging
import pathlib
import sys
import tempfile
from typing import Literal

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tqdm import tqdm

from keras_pkm.probing.memory_access import read_backbone
from keras_pkm.probing.served_model import ServedModel
from keras_pkm.runs.user_error import UserError
from training.batches.labelled import dev_batches
from training.batches.labelled import encode_texts
from training.batches.masked_lm import held_out_batches
from training.batches.masking import Masking
from training.commands.recipe_checks import check_at_least
from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import out_of_range
from training.loading.pretrained_model import load_pretrained
from training.measuring.class_reads import compare_classes
from training.measuring.memory_reads import collect_reads
from training.measuring.slot_tokens import find_readers
from training.pretraining.logs import is_pretraining_run
from training.pretraining.logs import read_curves_of_runs
from training.pretraining.logs import read_staleness
from training.reports.memory_report import MemoryReport
from training.tasks.bad_rows import BadRows
from training.tasks.glue import GLUE
from training.tasks.glue import load_glue
from training.text.corpus import open_corpus
from training.text.packed_text import tokenize_and_pack

# Of the text in which it is shown who reads which slots.
_KEPT_TOKENS = 500_000


@dataclasses.dataclass(frozen=True)
class AnalysisRecipe:
    """Show how a model uses its memories."""

    # The directory of a run, whose best model it is; a preset with memory; or
    # an exported model, of which the tokens are not known.
    model: str
    # Held-out text: files or globs separated by commas, tfds:NAME, or
    # python-docs.
    data: str
    # Directory of the report: new, or empty.
    out: pathlib.Path
    # Directory of an exported preprocessor, for exported encoders.
    preprocessor: str | None = None
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Tokens of an input. Default: as many as the model takes, at most 512.
    sequence_length: int | None = None
    # Use only so many inputs, the first ones.
    limit: int | None = None
    # Share of the tokens that are masked, as when perplexity is measured.
    mask_rate: float = 0.15
    # Of the masks.
    seed: int = 0
    # Inputs in a batch.
    batch_size: int = 64
    # Other pretraining runs, whose curves are drawn beside the model's own.
    runs: tuple[str, ...] = ()

    # --- Classes of examples (figure 4) ---

    # GLUE task whose first two classes are compared.
    task: Literal["sst2", "cola", "mnli", "qqp", "qnli"] | None = None
    # GLUE's directory of TSV files, or tfds.
    glue: str = "tfds"
    # The same model after fine-tuning, to compare.
    fine_tuned: str | None = None


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    logging.basicConfig(format="%(message)s")
    try:
        analyze(tyro.cli(AnalysisRecipe, args=args))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def analyze(recipe: AnalysisRecipe) -> MemoryReport:
    """Measures as the recipe says, and writes the report.

    Raises:
        UserError: the recipe cannot be carried out; nothing is written then.
    """
    check_at_least(recipe, sequence_length=8, batch_size=1, limit=1)
    check_between_0_and_1(recipe, "mask_rate")
    if recipe.out.exists() and any(recipe.out.iterdir()):
        raise UserError(
            f"--out must be new or empty, but '{recipe.out}' is not: pass "
            "another one, or remove it"
        )
    own = [recipe.model] if is_pretraining_run(recipe.model) else []
    curves = read_curves_of_runs([*own, *recipe.runs])
    corpus = open_corpus(recipe.data, recipe.data_dir)
    corpus.check()
    readers, class_names, classes = {}, None, {}
    if (pathlib.Path(recipe.model) / "saved_model.pb").exists():
        reads = _ask_served_model(recipe, corpus)
    else:
        model = _load(recipe.model, "--model")
        reads = _read_text(recipe, model, corpus)
        readers = {
            number: find_readers(
                reads.token_ids, reads.is_token, memory.top1, model.tokenizer
            )
            for number, memory in reads.memories.items()
        }
        class_names, classes = _compare_classes(recipe, model)
    report = MemoryReport(
        model=pathlib.Path(recipe.model).name,
        data=corpus.name,
        reads=reads,
        readers=readers,
        staleness=read_staleness(recipe.model) if own else {},
        curves=curves,
        classes=classes,
        class_names=class_names,
    )
    report.write(recipe.out)
    print(f"The report is in {recipe.out / 'report.html'}.")
    return report


def _ask_served_model(recipe, corpus):
    if recipe.task is not None:
        raise UserError(
            "--task needs a model that was not exported: pass the run that it "
            "was exported from"
        )
    try:
        model = ServedModel(recipe.model, recipe.preprocessor)
    except ValueError as error:
        raise UserError(
            f"--model, or --preprocessor, cannot be used: {error}"
        ) from error
    lines = (
        line.strip() for document in corpus for line in document.split("\n")
    )
    lines = itertools.islice(filter(None, lines), recipe.limit)

    def batches():
        while batch := list(itertools.islice(lines, recipe.batch_size)):
            yield batch

    return collect_reads(
        model.read(tqdm(batches(), "Reading", disable=None)), kept_tokens=0
    )


def _load(name, flag):
    model = load_pretrained(name, None)
    if not getattr(model.backbone, "memory_outputs", None):
        raise UserError(
            f"{flag} must have a memory, but '{name}' has none: pass a model "
            "with one"
        )
    return model


def _read_text(recipe, model, corpus):
    longest = model.backbone.max_sequence_length
    length = recipe.sequence_length or min(512, longest)
    if length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    with tempfile.TemporaryDirectory() as folder:
        packed = tokenize_and_pack(
            corpus,
            model.tokenizer,
            length,
            str(pathlib.Path(folder) / "packed"),
            progress_label=corpus.name,
        )[: recipe.limit]
        batches = held_out_batches(
            packed,
            batch_size=recipe.batch_size,
            seed=recipe.seed,
            masking=Masking.from_tokenizer(
                model.tokenizer, length, recipe.mask_rate
            ),
        )
        return collect_reads(
            read_backbone(
                model.backbone, tqdm(batches, "Reading", disable=None)
            ),
            kept_tokens=_KEPT_TOKENS,
        )


def _compare_classes(recipe, model):
    if recipe.task is None:
        return None, {}
    task = GLUE[recipe.task]
    models = {"pretrained": model}
    if recipe.fine_tuned is not None:
        models["fine-tuned"] = _load(recipe.fine_tuned, "--fine-tuned")
    examples = load_glue(task, recipe.glue, recipe.data_dir, BadRows())
    examples = examples[f"dev{task.dev[0]}"]
    classes = {}
    for name, some in models.items():
        preprocessor = some.family.preprocessor(
            some.tokenizer,
            sequence_length=recipe.sequence_length
            or min(128, some.backbone.max_sequence_length),
        )
        data = encode_texts(examples, preprocessor, f"{task.title}, {name}")
        classes[name] = compare_classes(
            read_backbone(
                some.backbone, dev_batches(data, batch_size=recipe.batch_size)
            ),
            examples.labels,
        )
    return task.classes[:2], classes


if __name__ == "__main__":
    sys.exit(main())
