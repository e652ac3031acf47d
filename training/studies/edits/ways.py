"""The ways to teach a finished model that are compared."""

import abc
import dataclasses
import functools
import itertools
import pathlib
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import keras
import keras_hub
import numpy as np

import keras_pkm
from keras_pkm.layers.memories import memories
from keras_pkm.probing.adapt_memories import adapt_memories
from keras_pkm.probing.model_batches import ModelBatches
from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_prompts import Prompt
from keras_pkm.teaching.fact_prompts import answers_of
from keras_pkm.teaching.fact_prompts import pad_prompts
from keras_pkm.teaching.fact_teacher import FactTeacher
from keras_pkm.teaching.memory_patch import MemoryPatch
from keras_pkm.teaching.memory_teacher import MemoryTeacher
from keras_pkm.teaching.slot_importance import SlotImportance
from keras_pkm.teaching.teaching_step import make_teaching_step
from keras_pkm.teaching.teaching_step import take_steps
from training.measuring.asking import Asker

_BATCH = 32
# Facts that are asked for at a time.
_ASKED = 10
_TABLE = 16_384
# Batches with which a pass is timed.
_TIMED = 4
# How much of the model is below the rows of subjects: low blocks generalise
# best (one), and three together better.
_ONE_PLACE, _THREE_PLACES = (1 / 7.5,), (1 / 7.5, 0.4, 2 / 3)
_PRODUCT_KEYS = {"num_sub_keys": 256, "num_heads": 4, "top_k": 16}
_KEYS_PLACE = 1 / 6
_IMPORTANT = 3_000
_TEXT_ROWS, _TEXT_PLACES = 32, 8


@dataclasses.dataclass(frozen=True)
class Start:
    """The model, the phrasings and the text that a way of teaching gets."""

    task: keras_hub.models.CausalLM
    # How relations are asked for while they are taught.
    taught: dict[str, list[str]]
    # The most passes over a group of facts.
    passes: int
    # Text that is not measured, and ids of its beginning.
    background: str
    text: np.ndarray
    seed: int

    def with_memory(self, places: tuple[float, ...], memory: Any) -> "Start":
        """Returns the same with memories, at shares of the model's height."""
        blocks = len(self.task.backbone.transformer_layers)
        numbers = {max(1, round(place * blocks)) for place in places}
        task = keras_pkm.models.add_memory(self.task, sorted(numbers), memory)
        return dataclasses.replace(self, task=task)


class Teaching(abc.ABC):
    """Teaches one model, a group of facts after another."""

    task: keras_hub.models.CausalLM

    @abc.abstractmethod
    def teach(self, facts: list[Fact]) -> int:
        """Teaches facts; returns the number of steps."""

    def size(self) -> int:
        """The bytes of what has changed."""
        return 0

    def before(self, subject: str) -> str:
        """The text in front of each question about a subject."""
        return ""


class Prompted(Teaching):
    """The facts of a subject stand in front of each question about it."""

    def __init__(self, start: Start, phrasings: int):
        self.task = start.task
        self._taught = start.taught
        self._phrasings = phrasings
        self._said: dict[str, list[str]] = {}

    def teach(self, facts: list[Fact]) -> int:
        for fact in facts:
            statements = [
                f"{phrasing} {fact.value}."
                for phrasing in self._taught[fact.relation]
                if "\n" not in phrasing
            ]
            said = self._said.setdefault(fact.subject, [])
            said += statements[: self._phrasings]
        return 0

    def before(self, subject: str) -> str:
        return "".join(f"{said} " for said in self._said.get(subject, ()))


class Facts(Teaching):
    """A memory of facts behind an upper block."""

    def __init__(self, start: Start, odds: float):
        memory = keras_pkm.layers.FactMemory(_TABLE)
        self.task = start.with_memory((7 / 8,), memory).task
        self._teacher = FactTeacher(
            self.task,
            start.taught,
            background=start.background,
            odds=odds,
            seed=start.seed,
        )

    def teach(self, facts: list[Fact]) -> int:
        self._teacher.teach(facts)
        return 0

    def size(self) -> int:
        return _size_of(self._teacher.make_patch())


class Trained(Teaching):
    """Gradient descent on the phrasings, until all are known."""

    def __init__(self, start: Start):
        self.task = start.task
        self.asker = Asker(self.task)
        self._taught = start.taught
        self._passes = start.passes
        self._random = np.random.default_rng(start.seed)

    def teach(self, facts: list[Fact]) -> int:
        prompts = self.asker.prompts(facts, self._taught)
        flat = [prompt for of_fact in prompts for prompt in of_fact]
        self._random.shuffle(flat)
        batches = self._batches(flat)
        steps = itertools.count()

        def is_known() -> bool:
            taken = next(steps)
            if taken == 0 or taken % len(batches):
                return False
            # Some facts at a time: those missed first end the question.
            return all(
                (self.asker.known(prompts[first : first + _ASKED]) == 1).all()
                for first in range(0, len(prompts), _ASKED)
            )

        return self.take_steps(batches, self._passes * len(batches), is_known)

    @abc.abstractmethod
    def take_steps(
        self, batches: Any, steps: int, until: Callable[[], bool]
    ) -> int:
        """Takes steps on batches, until all is known."""

    def _batches(self, prompts: list[Prompt]) -> "_PromptBatches":
        return _PromptBatches(prompts)


class _PromptBatches:
    """Batches of prompts, of one length."""

    def __init__(self, prompts: list[Prompt]):
        self._prompts = prompts
        self._length = -(-max(len(each.ids) for each in prompts) // 8) * 8
        self._answers = max(len(each.answer) for each in prompts)

    def __len__(self) -> int:
        return -(-len(self._prompts) // _BATCH)

    def __iter__(self) -> Iterator[tuple[dict, np.ndarray, np.ndarray]]:
        for start in range(0, len(self._prompts), _BATCH):
            part = self._prompts[start : start + _BATCH]
            arrays = pad_prompts(part, self._length)._asdict()
            places, labels, weights = answers_of(part, self._answers)
            yield {**arrays, "places": places}, labels, weights


class _WithText(_PromptBatches):
    """Batches of prompts, and as many pieces of text as a batch has."""

    def __init__(
        self,
        prompts: list[Prompt],
        tokens: np.ndarray,
        rng: np.random.Generator,
    ):
        super().__init__(prompts)
        self._tokens, self._random = tokens, rng

    def __iter__(self) -> Iterator[tuple[dict, np.ndarray, np.ndarray]]:
        length = self._length
        places = np.linspace(0, length - 2, _TEXT_PLACES).astype("int32")
        wide = max(_TEXT_PLACES, self._answers)
        for x, y, weights in super().__iter__():
            first = self._random.integers(
                len(self._tokens) - length, size=_TEXT_ROWS
            )
            pieces = self._tokens[first[:, None] + np.arange(length)]
            of_text = np.tile(places, (_TEXT_ROWS, 1))
            # The text counts as much as the answers.
            share = weights.sum() / of_text.size
            yield (
                {
                    "token_ids": np.concatenate([x["token_ids"], pieces]),
                    "padding_mask": np.concatenate(
                        [x["padding_mask"], np.ones_like(pieces)]
                    ),
                    "places": _join(x["places"], of_text, wide),
                },
                _join(y, pieces[:, places + 1], wide),
                _join(weights, np.full_like(of_text, share, "float32"), wide),
            )


def _join(a: np.ndarray, b: np.ndarray, width: int) -> np.ndarray:
    return np.concatenate(
        [np.pad(each, [(0, 0), (0, width - each.shape[1])]) for each in (a, b)]
    )


class Dense(Trained):
    """All weights are trained, or low-rank additions to all dense layers."""

    def __init__(
        self,
        start: Start,
        rate: float,
        rank: int | None = None,
        replays: bool = False,
    ):
        if rank is not None:
            backbone = start.task.backbone
            names = {
                layer.name
                for block in backbone.transformer_layers
                for layer in block._flatten_layers(include_self=False)
                if isinstance(
                    layer, (keras.layers.Dense, keras.layers.EinsumDense)
                )
            }
            backbone.enable_lora(rank, sorted(names))
        super().__init__(start)
        self._replayed = start.text if replays else None
        variables = self.task.trainable_variables
        if rank is not None:
            variables = [each for each in variables if "lora" in each.path]
        self._variables = variables
        self._step = make_teaching_step(
            self.asker.model, variables, keras.optimizers.Adam(rate), _loss()
        )

    def take_steps(
        self, batches: Any, steps: int, until: Callable[[], bool]
    ) -> int:
        checked = ModelBatches(batches, self.asker.model, "batches")
        return take_steps(self._step, checked, steps, until)

    def _batches(self, prompts: list[Prompt]) -> _PromptBatches:
        if self._replayed is None:
            return super()._batches(prompts)
        return _WithText(prompts, self._replayed, self._random)

    def size(self) -> int:
        return sum(4 * int(np.prod(each.shape)) for each in self._variables)


class Rows(Trained):
    """The values of memories alone are trained."""

    def __init__(
        self,
        start: Start,
        rate: float,
        claims: bool = False,
        background: np.ndarray | None = None,
    ):
        super().__init__(start)
        self._claims = claims
        importance = None
        if background is not None:
            ids = {
                "token_ids": background,
                "padding_mask": np.ones_like(background),
                "places": np.zeros((len(background), 1), "int32"),
            }
            importance = SlotImportance.of_background(
                self.asker.model, ids, _BATCH
            )
        self._teacher = MemoryTeacher(
            self.asker.model,
            rate,
            slots=None if importance is None else _IMPORTANT,
            importance=importance,
            loss=_loss(),
        )

    def take_steps(
        self, batches: Any, steps: int, until: Callable[[], bool]
    ) -> int:
        return self._teacher.teach(batches, steps, until)

    def _batches(self, prompts: list[Prompt]) -> _PromptBatches:
        if self._claims:
            for subject in {prompt.subject for prompt in prompts}:
                for memory in memories(self.task).values():
                    memory.claim(subject)
        return super()._batches(prompts)

    def size(self) -> int:
        return _size_of(self._teacher.make_patch())


def time_a_pass(
    asker: Asker, facts: list[Fact], phrasings: dict[str, list[str]]
) -> float:
    """Times a forward and a backward pass of a model over all phrasings.

    It is reckoned from some batches, in seconds.
    """
    asked = asker.prompts(facts, phrasings)
    flat = [prompt for of_fact in asked for prompt in of_fact]
    batches = _PromptBatches(flat)
    variables = asker.task.trainable_variables
    # A rate of zero: the model stays as it is.
    optimizer = keras.optimizers.SGD(0.0)
    step = make_teaching_step(asker.model, variables, optimizer, _loss())
    # The last batch may be smaller, for which the step would be traced anew.
    count = min(_TIMED, max(1, len(flat) // _BATCH))
    some = list(itertools.islice(batches, count))
    step(*some[0])  # traces it
    began = time.perf_counter()
    for batch in some:
        step(*batch)
    timed = min(count * _BATCH, len(flat))
    return (time.perf_counter() - began) * len(flat) / timed


def _loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )


def _size_of(patch: MemoryPatch) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "patch.safetensors"
        patch.save(str(path))
        return path.stat().st_size


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to teach."""

    # Its name in tables.
    title: str
    # The field of the recipe that has its learning rates, if it has any.
    rates_field: str
    begin: Callable[[Start, float], Teaching]


def _ngram(start: Start, rate: float, places: tuple[float, ...]) -> Teaching:
    memory = keras_pkm.layers.NGramMemory(
        _TABLE, orders=range(2, 17), tags=True
    )
    return Rows(start.with_memory(places, memory), rate, claims=True)


def _product_keys(start: Start, rate: float, are_important: bool) -> Teaching:
    windows = start.text[: len(start.text) // 32 * 32].reshape(-1, 32)
    memory = {**_PRODUCT_KEYS, "query_normalization": "batch"}
    start = start.with_memory((_KEYS_PLACE,), memory)
    windows = windows[: 8 * _BATCH]
    ids = {"token_ids": windows, "padding_mask": np.ones_like(windows)}
    adapt_memories(start.task, ids)
    return Rows(start, rate, background=windows if are_important else None)


WAYS = {
    "prompt-one": Way(
        "in the prompt, one phrasing", "", lambda start, _: Prompted(start, 1)
    ),
    "prompt-all": Way(
        "in the prompt, all phrasings", "", lambda start, _: Prompted(start, 9)
    ),
    "facts": Way("memory of facts (odds)", "odds", Facts),
    "ngram": Way(
        "a row a subject",
        "ngram_rates",
        functools.partial(_ngram, places=_ONE_PLACE),
    ),
    "ngram-three": Way(
        "rows of subjects, three blocks",
        "ngram_rates",
        functools.partial(_ngram, places=_THREE_PLACES),
    ),
    "product-keys": Way(
        "product keys",
        "product_key_rates",
        functools.partial(_product_keys, are_important=False),
    ),
    "product-keys-slots": Way(
        "product keys, important slots",
        "product_key_rates",
        functools.partial(_product_keys, are_important=True),
    ),
    "lora-8": Way(
        "LoRA, rank 8", "lora_rates", functools.partial(Dense, rank=8)
    ),
    "lora-64": Way(
        "LoRA, rank 64", "lora_rates", functools.partial(Dense, rank=64)
    ),
    "lora-8-replay": Way(
        "LoRA, rank 8, text replayed",
        "lora_rates",
        functools.partial(Dense, rank=8, replays=True),
    ),
    "all": Way("all weights", "weight_rates", Dense),
    "replay": Way(
        "all weights, text replayed",
        "weight_rates",
        functools.partial(Dense, replays=True),
    ),
}
