"""Teaches facts to a finished causal language model."""

import contextlib
import itertools
import pathlib
import time
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import keras_hub
import tokenizers

from keras_pkm import models
from keras_pkm.layers.fact_memory import FactMemory
from keras_pkm.models.llama3_tokenizer import WholeLlama3Tokenizer
from keras_pkm.teaching import fact_prompts
from keras_pkm.teaching.fact_teacher import FactTeacher
from keras_pkm.teaching.memory_patch import MemoryPatch
from training.commands.fields import check_unused
from training.corpora.corpus import open_corpus
from training.facts.fact_file import read_fact_file
from training.facts.phrasing_file import read_phrasing_file
from training.facts.text_facts import Fact as Line
from training.loading.causal_checkpoint import match_config
from training.loading.pretrained_model import is_causal_preset
from training.loading.pretrained_model import saying_why
from training.measuring.asking import Asker
from training.measuring.drawn_text import draw_documents
from training.measuring.drawn_text import draw_windows
from training.measuring.drawn_text import ids_of
from training.runs.files import check_unchanged
from training.runs.files import read_json
from training.runs.run_directory import find_preset
from training.runs.user_error import UserError
from training.teaching.edit_measures import measure_edit
from training.teaching.recipe import TeachingRecipe

# Flags that only other ways of teaching have.
_OTHERS = (
    *("text", "keep", "group_size", "sequence_length", "batch_size"),
    *("rule", "slots", "template", "fall", "mask_rate"),
)
#: Flags of the memory that a finished model gets.
OF_NEW_MEMORY = ("memory_layer", "num_slots")
OF_FACTS = ("phrasings", "odds", "measure", "asked")
#: Flags that a patch has no use for.
OF_TEACHING = (
    *("keep", "method", "rule", "learning_rate", "slots", "background"),
    *("steps", "group_size", "template", "fall", "sequence_length"),
    *("batch_size", "seed", "mask_rate"),
)
_NUM_SLOTS = 16_384
_BACKGROUND_CHARACTERS = 200_000


def is_finished(model: str, is_plain: bool = False) -> bool:
    """Whether a model is a causal one without memory, or with one of facts.

    Args:
        model: A directory of transformers, a preset, or a run.
        is_plain: Whether it must have none at all.
    """
    preset = find_preset(model)
    path = pathlib.Path(preset)
    config = read_json(path / "config.json", default={})
    if "model_type" in config:
        classes = config.get("architectures") or ()
        causal = ("ForCausalLM", "LMHeadModel")
        return any(name.endswith(causal) for name in classes)
    arguments = config.get("config", {})
    memory = arguments.get("memory") or {}
    has_other = bool(arguments.get("memory_layers")) and (
        is_plain or memory.get("class_name") != FactMemory.__name__
    )
    return is_causal_preset(preset) and not has_other


def load_finished(model: str) -> keras_hub.models.CausalLM:
    """Loads such a model."""
    preset = find_preset(model)
    check_unchanged(pathlib.Path(preset), "--model")
    with saying_why(model, "--model", "a causal language model"):
        task = keras_hub.models.CausalLM.from_preset(preset, dtype="float32")
        match_config(task, pathlib.Path(preset))
        tokenizer = getattr(task.preprocessor, "tokenizer", None)
        # Otherwise the taught model could not be loaded again.
        if type(tokenizer) is keras_hub.tokenizers.Llama3Tokenizer:
            task.preprocessor.tokenizer = WholeLlama3Tokenizer.of(tokenizer)
        return task


def teach_finished(
    recipe: TeachingRecipe,
) -> tuple[keras_hub.models.CausalLM, MemoryPatch, dict]:
    """Returns the taught model, the patch, and figures of what it learned."""
    reason = f"'{recipe.model}' is finished, and learns --facts"
    check_unused(recipe, _OTHERS, reason)
    # The file, with its lines, before minutes of work.
    lines = read_fact_file(_given(recipe))
    facts = [_fact_of(line) for line in lines]
    phrasings, asked = (
        {} if path is None else read_phrasing_file(path, flag)
        for path, flag in (
            (recipe.phrasings, "--phrasings"),
            (recipe.asked, "--asked"),
        )
    )
    background = None
    if recipe.background is not None:
        corpus = open_corpus(recipe.background, recipe.data_dir)
        some = itertools.islice(corpus, 1000)
        background = " ".join(some)[:_BACKGROUND_CHARACTERS]
    task = load_finished(recipe.model)
    _check_relations(facts, phrasings, "--phrasings")
    _check_relations(facts, asked, "--asked")
    _check_tokens(recipe.model, task, lines, phrasings)
    of_asked = [line for line in lines if line.relation in asked]
    _check_tokens(recipe.model, task, of_asked, asked)
    untaught = None
    if recipe.measure:
        untaught = Asker(load_finished(recipe.model))
        for line in of_asked:
            with _naming(f"--asked '{recipe.asked}': {line.place}"):
                untaught.prompts([_fact_of(line)], asked)
        text = open_corpus(recipe.background or "python-docs", recipe.data_dir)
        documents = draw_documents(text)
        ids = ids_of(documents, untaught.tokenize, "--background")
        windows = draw_windows(ids, untaught.longest)
    with _naming(f"--model '{recipe.model}'"):
        if not models.memories(task):
            blocks = len(getattr(task.backbone, "transformer_layers", ()))
            layer = recipe.memory_layer or max(1, round(7 / 8 * blocks))
            memory = FactMemory(recipe.num_slots or _NUM_SLOTS)
            task = models.add_memory(task, (layer,), memory)
        else:
            reason = f"'{recipe.model}' has its memory of facts"
            check_unused(recipe, OF_NEW_MEMORY, reason)
        teacher = FactTeacher(
            task,
            phrasings,
            background=background,
            learning_rate=recipe.learning_rate or 0.3,
            steps=recipe.steps or 20,
            odds=3.0 if recipe.odds is None else recipe.odds,
            seed=recipe.seed,
            verbose=True,
        )
    for line in lines:
        with _naming(line.place):
            teacher.check([_fact_of(line)])
    with _naming(f"--model '{recipe.model}'"):
        before = teacher.ask(facts)
        began = time.perf_counter()
        unknown = teacher.teach(facts)
        seconds = time.perf_counter() - began
    after = teacher.ask(facts)
    figures = {
        "method": "facts",
        "new": {
            "facts": len(facts),
            "known_before": float((before.answers == 1).mean()),
            "known_after": float((after.answers == 1).mean()),
            "unknown": [list(fact) for fact in unknown],
            "seconds": seconds,
        },
    }
    if untaught is not None:
        figures["edit"] = measure_edit(
            *(untaught, Asker(task), facts, phrasings, asked),
            *(windows, " ".join(" ".join(documents).split()), recipe.seed),
        )
    return task, teacher.make_patch(), figures


def _fact_of(line: Line) -> fact_prompts.Fact:
    return fact_prompts.Fact(line.subject, line.relation, line.value)


@contextlib.contextmanager
def _naming(place: str) -> Iterator[None]:
    """Says where a mistake is that the library finds."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{place}: {error}") from error


def _check_relations(
    facts: Iterable[fact_prompts.Fact],
    phrasings: Mapping[str, Sequence[str]],
    flag: str,
) -> None:
    """Checks that phrasings spell relations as facts do."""
    spelled = {relation.casefold(): relation for relation in phrasings}
    relations = list(dict.fromkeys(fact.relation for fact in facts))
    for relation in relations:
        other = spelled.get(relation.casefold(), relation)
        if relation not in phrasings and other != relation:
            raise UserError(
                f"{flag} must spell relations as --facts does, received "
                f"'{other}' for '{relation}'"
            )
    if phrasings and not set(relations) & set(phrasings):
        raise UserError(
            f"{flag} must have phrasings of the relations of --facts, such as "
            f"'{relations[0]}', received those of '{next(iter(phrasings))}'"
        )


def _check_tokens(
    model: str,
    task: keras_hub.models.CausalLM,
    lines: Iterable[Line],
    phrasings: Mapping[str, Sequence[str]],
) -> None:
    """Checks that a checkpoint's own tokenizer finds the same tokens.

    KerasHub's byte pairs part blank lines and double spaces in other ways.
    """
    path = pathlib.Path(find_preset(model))
    file = path / "tokenizer.json"
    is_of_keras = "model_type" not in read_json(path / "config.json")
    if is_of_keras or not file.exists():
        return
    own = tokenizers.Tokenizer.from_file(str(file))
    tokenize, _ = fact_prompts.tokenizer_of(task)
    for line in lines:
        for phrasing in fact_prompts.phrasings_of(line.relation, phrasings):
            text = phrasing.replace(fact_prompts.SUBJECT, line.subject)
            text += line.value if text[-1:].isspace() else f" {line.value}"
            ids = own.encode(text, add_special_tokens=False).ids
            if list(tokenize(text)) != ids:
                raise UserError(
                    f"{line.place}: texts must have the same tokens in "
                    f"KerasHub and in {file}, but {text!r} has others: use "
                    "single spaces and no blank lines in --phrasings, --asked "
                    "and --facts"
                )


def change_finished(
    model: str, patch: MemoryPatch
) -> keras_hub.models.CausalLM:
    """Loads a model that a patch of facts is for."""
    task = load_finished(model)
    if models.memories(task) or len(patch.num_slots) != 1:
        return task
    # The plain model, which has the patch's memory once it is applied.
    ((layer, num_slots),) = patch.num_slots.items()
    return models.add_memory(task, (layer,), FactMemory(num_slots))


def _given(recipe: TeachingRecipe) -> pathlib.Path:
    if recipe.facts is None:
        raise UserError(
            f"--facts must be given for '{recipe.model}', which is a finished "
            "model"
        )
    return recipe.facts
