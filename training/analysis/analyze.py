"""Makes the report on a model's memories that a recipe describes."""

import pathlib

from training.analysis.read_model import load_with_memory
from training.analysis.read_model import masked_batches
from training.analysis.read_model import read_classes
from training.analysis.read_model import read_served_model
from training.analysis.read_model import read_trained_model
from training.analysis.recipe import AnalysisRecipe
from training.analysis.recipe import is_served
from training.commands.fields import check_data_dir
from training.corpora.corpus import Corpus
from training.corpora.corpus import open_corpus
from training.loading.pretrained_model import load_language_model
from training.measuring.ablation import ablated_memory
from training.measuring.perplexity import LanguageModelEvaluator
from training.measuring.slot_tokens import SlotReaders
from training.measuring.slot_tokens import find_readers
from training.pretraining.logs import read_curves_of_runs
from training.pretraining.logs import read_staleness
from training.reports.memory_report import MemoryReport
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError


def analyze(recipe: AnalysisRecipe) -> MemoryReport:
    """Measures what the recipe asks for, and returns the report."""
    recipe.check()
    check_data_dir(recipe, recipe.text, recipe.task and recipe.glue)
    is_run = RunDirectory(recipe.model).is_pretraining_run
    own = [recipe.model] if is_run else []
    curves = read_curves_of_runs([*own, *recipe.runs])
    corpus = open_corpus(recipe.text, recipe.data_dir)
    readers: dict[int, list[SlotReaders]] = {}
    class_names = None
    classes: dict[str, dict] = {}
    if is_served(recipe.model):
        reads = read_served_model(recipe, corpus)
    else:
        model = load_with_memory(recipe.model, "--model")
        reads = read_trained_model(recipe, model, corpus)
        token_ids, is_token = reads.token_ids, reads.is_token
        if token_ids is not None and is_token is not None:
            readers = {
                number: find_readers(
                    token_ids, is_token, memory.top1, model.tokenizer
                )
                for number, memory in reads.memories.items()
                if memory.top1 is not None
            }
        class_names, classes = read_classes(recipe, model)
    return MemoryReport(
        model=pathlib.Path(recipe.model).name,
        data=corpus.name,
        reads=reads,
        readers=readers,
        ablations=measure_ablations(recipe, corpus),
        staleness=read_staleness(recipe.model) if is_run else {},
        curves=curves,
        classes=classes,
        class_names=class_names,
    )


def measure_ablations(
    recipe: AnalysisRecipe, corpus: Corpus
) -> dict[str, dict[str, float | None]]:
    """Measures the trained model and the ablations of `--ablate-memory`."""
    if not recipe.ablate_memory:
        return {}
    if is_served(recipe.model):
        raise UserError(
            "--ablate-memory needs a model that was not exported: pass the "
            "run that it was exported from"
        )
    model = load_language_model(recipe.model)
    evaluator = LanguageModelEvaluator(model.task)
    found: dict[str, dict[str, float | None]] = {}
    with masked_batches(recipe, model, corpus) as batches:
        for how in (None, *recipe.ablate_memory):
            with ablated_memory(model.task, how):
                evaluation = evaluator.evaluate(batches, "Ablation")
            found[how or "trained"] = {
                "perplexity": evaluation.perplexity,
                "standard_error": evaluation.standard_error,
            }
    return found
