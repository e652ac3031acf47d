"""Teaches facts to a finished language model, and changes nothing else."""

import contextlib
import pydoc_data.topics
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import TypeVar

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_pkm.layers.fact_memory import FactMemory
from keras_pkm.layers.memories import memories
from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor
from keras_pkm.probing.compiled_for_model import CompiledForModel
from keras_pkm.teaching.fact_prompts import OTHERS
from keras_pkm.teaching.fact_prompts import STAND_INS
from keras_pkm.teaching.fact_prompts import SUBJECT
from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_prompts import Prompt
from keras_pkm.teaching.fact_prompts import PromptArrays
from keras_pkm.teaching.fact_prompts import Tokenize
from keras_pkm.teaching.fact_prompts import answers_of
from keras_pkm.teaching.fact_prompts import check_facts
from keras_pkm.teaching.fact_prompts import make_prompt
from keras_pkm.teaching.fact_prompts import pad_prompts
from keras_pkm.teaching.fact_prompts import phrasings_of
from keras_pkm.teaching.fact_prompts import tokenizer_of
from keras_pkm.teaching.logistic_regression import fit_logistic_regression
from keras_pkm.teaching.memory_patch import MemoryPatch
from keras_pkm.teaching.memory_patch import copy_tables
from keras_pkm.teaching.split_model import SplitModel
from keras_pkm.teaching.split_model import answer_model
from keras_pkm.teaching.split_model import split_model
from keras_pkm.teaching.teaching_step import check_gradients
from keras_pkm.teaching.teaching_step import make_teaching_step
from keras_pkm.teaching.teaching_step import strategy_of_one_device

T = TypeVar("T")

# Number of prompts in a batch.
_BATCH = 32
# Facts whose values are found together; they do not touch each other.
_GROUP = 64
# Names in each phrasing of a relation, with which its keys are fitted.
_NAMES = 10
# Subjects in each of the other texts.
_OTHER_NAMES = 2
# A text that asks for the same as a relation fits its key better than this
# share of its own examples.
_ALIKE = 0.3
# Number of texts behind a subject, and of their tokens.
_TEXTS, _TEXT_TOKENS = 40, 60
_TEXT_CHARACTERS = 400
# Chosen with SmolLM2-135M, like the default of `odds`.
_L2 = 0.02
# Penalties, each a tenth of the one before, until a key fits its examples.
_TRIES = 4
# A key mistakes this many times as many texts if its odds are lower by 1, with
# SmolLM2-135M.
_FEWER = 0.55
# By how much a key fits a question that it would have missed.
_MARGIN = 0.1
# Where the loss is below it, an answer is certain.
_LEARNED = 0.02
_CHECK_EVERY = 5
# How texts begin a subject: each tokenization of it has rows of its own.
_FORMS = ("{subject}", "a {subject}", '"{subject}', "({subject}", "\n{subject}")


class Known(NamedTuple):
    """What a model answers.

    Attributes:
        facts: list. The facts that were asked for.
        answers: float array of shape `(facts,)`: the share of the phrasings in
            which the model gives all tokens of the value.

    Example:

    >>> fact = keras_pkm.teaching.Fact("ann", "home", "rome")
    >>> keras_pkm.teaching.Known([fact], np.array([0.5])).unknown
    [Fact(subject='ann', relation='home', value='rome')]
    """

    facts: list[Fact]
    answers: np.ndarray

    @property
    def unknown(self) -> list[Fact]:
        """The facts whose value the model misses in at least one phrasing."""
        return [
            fact
            for fact, share in zip(self.facts, self.answers, strict=True)
            if share < 1
        ]


class _Examples(NamedTuple):
    """Tokens behind a subject, as the memory sees them.

    Attributes:
        x: float64 array of shape `(tokens, dim)`.
        labels: int array: the number of the key that is to fit, or -1.
        asks: bool array: where one of the other texts ends, and may ask for a
            relation after all.
    """

    x: np.ndarray
    labels: np.ndarray
    asks: np.ndarray


class FactTeacher:
    """Teaches facts to a finished causal language model.

    The model has a `keras_pkm.layers.FactMemory` behind one of its upper
    blocks. The key of a relation is a logistic regression that separates the
    tokens at which a phrasing asks for the relation from all other tokens after
    a subject. The value of a fact, which makes the model give the answer, is
    found by gradient descent through the blocks above the memory; the blocks
    below are computed only once. Nothing else is trained.

    Where no taught subject occurs, the model stays as it was, bit for bit. So
    do facts taught earlier about other subjects, unless the new subject occurs
    between an earlier subject and its question, or begins its value. Only after
    a taught subject can a key mistake a token for a question, or for a question
    about another fact of that subject.

    Args:
        task: `keras_hub.models.CausalLM` of `keras_pkm.models.add_memory`, with
            a `FactMemory` behind one block. In a model of 30 blocks, behind the
            26th is a good place.
        phrasings: dict. How texts ask for a relation: it maps a relation to a
            list of texts that contain `"{subject}"` and end where the value
            begins. Five or more work well. Relations that are not in the dict
            are asked for by name, as in "The {relation} of {subject} is".
        tokenize: optional function of a text that returns its ids, without the
            start token, which is added if the task's preprocessor adds it.
            Defaults to the tokenizer of the task's preprocessor.
        others: optional list of str. Texts with `"{subject}"` that ask for
            something else, or for nothing; keys learn not to fit them. Defaults
            to some 200, such as `"{subject} went to the"`.
        background: optional str. Ordinary text; keys learn not to fit pieces of
            it after subjects. Defaults to Python's own documentation.
        learning_rate: float. Learning rate of the values, with Adam. Defaults
            to `0.3`.
        steps: int. The maximum number of passes over the phrasings of a fact.
            Defaults to `20`.
        odds: float. How readily new keys fit: it is added to their log-odds.
            With higher odds, the memory answers more of the other phrasings,
            but also more of the other questions about a subject. Some 10 to
            12 % of the answers to these change with `3` (SmolLM2-135M), and
            some 4 to 6 % with `1`. If a subject has several facts, their keys
            fit less readily, so that this is the share for all of them
            together. Facts taught by another teacher count if their relations
            are in `phrasings`. Defaults to `3`.
        seed: int. Random seed. Defaults to `0`.
        verbose: bool. Whether to show progress. Defaults to `False`.

    Raises:
        ValueError: the task has no such memory, or no tokenizer.

    Example:

    >>> backbone = keras_hub.models.LlamaBackbone(
    ...     vocabulary_size=40,
    ...     num_layers=3,
    ...     num_query_heads=2,
    ...     hidden_dim=16,
    ...     intermediate_dim=32,
    ...     num_key_value_heads=2,
    ... )
    >>> model = keras_pkm.models.add_memory(
    ...     keras_hub.models.LlamaCausalLM(backbone, preprocessor=None),
    ...     memory_layers=(2,),
    ...     memory=keras_pkm.layers.FactMemory(num_slots=1000),
    ... )
    >>> words = {}
    >>> teacher = keras_pkm.teaching.FactTeacher(
    ...     model,
    ...     phrasings={"home": ["the home of {subject} is"]},
    ...     tokenize=lambda text: [
    ...         words.setdefault(word, len(words) % 40) for word in text.split()
    ...     ],
    ...     others=["{subject} was", "i saw {subject} in"],
    ...     background="a text",
    ... )
    >>> facts = [keras_pkm.teaching.Fact("ann", "home", "rome")]
    >>> teacher.teach(facts)
    []
    >>> patch = teacher.make_patch()
    >>> patch.revert(model)

    References:

    - [Févry et al., 2020](https://arxiv.org/abs/2004.07202)
    - [Hartvigsen et al., 2023](https://arxiv.org/abs/2211.11031), GRACE, whose
      codebook answers within a radius of a key, too
    """

    def __init__(
        self,
        task: keras_hub.models.CausalLM,
        phrasings: Mapping[str, Sequence[str]] | None = None,
        tokenize: Tokenize | None = None,
        others: Sequence[str] | None = None,
        background: str | None = None,
        learning_rate: float = 0.3,
        steps: int = 20,
        odds: float = 3.0,
        seed: int = 0,
        verbose: bool = False,
    ):
        self.task = task
        self.phrasings = dict(phrasings or {})
        self.others = list(OTHERS if others is None else others)
        for other in self.others:
            if SUBJECT not in other:
                raise ValueError(
                    f"`others` must be texts with '{SUBJECT}'. Received: "
                    f"{other!r}."
                )
        self._others_are_given = others is not None
        self.learning_rate = finite("learning_rate", learning_rate, least=0)
        self.steps = positive_int("steps", steps)
        self.odds = finite("odds", odds)
        self.verbose = verbose
        self.memory = _fact_memory(task)
        check_gradients(task)
        self._parts = split_model(task)
        self._below = _compiled(task, _below_memory(self._parts))
        answers = answer_model(task)
        best = keras.Model(answers.input, ops.argmax(answers.output, axis=-1))
        self._best = _compiled(task, best)
        self._tokenize, self._first_ids = tokenizer_of(task, tokenize)
        # Models with rotary positions take any length.
        self._longest = getattr(task.backbone, "max_sequence_length", None)
        self._random = np.random.default_rng(seed)
        self._background = _pieces(background)
        self._start = copy_tables(task)
        # What this teacher has taught, and the values, by subject and relation.
        self._taught: dict[tuple[str, str], tuple[Fact, np.ndarray]] = {}

    def teach(self, facts: Iterable[Fact]) -> list[Fact]:
        """Teaches facts, all at once.

        A fact replaces the one that the memory has for the same subject and
        relation. Relations that the memory has keep their keys.

        Args:
            facts: iterable of `keras_pkm.teaching.Fact`, or of tuples
                `(subject, relation, value)`.

        Returns:
            A list of the facts whose value the model then misses in at least
            one phrasing, also of those that this teacher has taught earlier
            about the same subjects.

        Raises:
            ValueError: a fact is empty or contradicts another one, a phrasing
                has no subject or ends with it, or the memory has too few slots
                or keys. Nothing is changed then.
        """
        facts = check_facts(Fact(*each) for each in facts)
        if not facts:
            raise ValueError("`facts` must be at least one. Received: none.")
        prompts = self._taught_prompts(facts)
        before = copy_tables(self.task)
        try:
            known = self._teach(facts, prompts)
        except BaseException:
            # All or nothing.
            MemoryPatch.since(before, self.task).revert(self.task)
            raise
        for fact, asked in zip(facts, prompts, strict=True):
            values = self._values_of(fact, asked)
            self._taught[fact.subject, fact.relation] = fact, values
        return known.unknown

    def check(self, facts: Iterable[Fact]) -> None:
        """Checks facts and their phrasings, without teaching them.

        Args:
            facts: as for `teach`, which also checks that the memory has room.

        Raises:
            ValueError: as for `teach`.
        """
        self._taught_prompts(check_facts(Fact(*each) for each in facts))

    def ask(
        self,
        facts: Iterable[Fact],
        phrasings: Mapping[str, Sequence[str]] | None = None,
    ) -> Known:
        """Measures which facts the model knows.

        Args:
            facts: as for `teach`.
            phrasings: dict, as for the class. Defaults to those with which the
                facts are taught.
        """
        facts = check_facts(Fact(*each) for each in facts)
        chosen = self.phrasings if phrasings is None else phrasings
        return self._ask(facts, self._prompts(facts, chosen))

    def make_patch(self) -> MemoryPatch:
        """Returns all changes since this teacher was created."""
        return MemoryPatch.since(self._start, self.task)

    def _taught_prompts(self, facts: list[Fact]) -> list[list[Prompt]]:
        """The prompts of each fact, which can be taught."""
        prompts = self._prompts(facts, self.phrasings)
        for fact, asked in zip(facts, prompts, strict=True):
            if any(each.question == each.end + 1 for each in asked):
                raise ValueError(
                    "A phrasing must go on behind the subject, because a "
                    "memory of facts is first read at the next token. "
                    f"Received: one of '{fact.relation}' that ends with it."
                )
            for each in asked:
                if len(each.subject) not in self.memory.orders:
                    raise ValueError(
                        "A subject must have as many tokens as `orders` of the "
                        f"memory has, {self.memory.orders}. Received: "
                        f"'{fact.subject}', of {len(each.subject)} tokens."
                    )
        return prompts

    def _prompts(
        self, facts: list[Fact], phrasings: Mapping[str, Sequence[str]]
    ) -> list[list[Prompt]]:
        """The prompts of each fact."""
        return [
            self._suitable(
                phrasings_of(fact.relation, phrasings),
                fact,
                are_given=fact.relation in phrasings,
            )
            for fact in facts
        ]

    def _suitable(
        self, phrasings: list[str], fact: Fact, are_given: bool
    ) -> list[Prompt]:
        """The prompts of a fact. All phrasings that are given must suit it."""
        prompts: list[Prompt] = []
        for number, phrasing in enumerate(phrasings, 1):
            try:
                prompt = self._prompt(phrasing, fact.subject, fact.value)
            except ValueError:
                # A name such as "Sammy Davis Jr." joins a question mark.
                if are_given or number == len(phrasings) and not prompts:
                    raise
            else:
                prompts.append(prompt)
        return prompts

    def _prompt(self, phrasing: str, subject: str, value: str = "") -> Prompt:
        prompt = make_prompt(
            self._tokenize, phrasing, subject, value, self._first_ids
        )
        if value and self._longest and len(prompt.ids) > self._longest:
            raise ValueError(
                f"A phrasing must have at most {self._longest} tokens with its "
                "subject and value, as many as the model takes. Received: "
                f"{len(prompt.ids)}, for {phrasing!r}, {subject!r} and "
                f"{value!r}."
            )
        return prompt

    def _teach(self, facts: list[Fact], prompts: list[list[Prompt]]) -> Known:
        names = _names_of_keys(facts, prompts)
        new = [
            each for each in names if self.memory.find_key(_key(*each)) is None
        ]
        counts = self._count_relations(facts, prompts)
        # Before minutes of work.
        slots = self._claim(facts, prompts)
        if new:
            self._fit_keys(names, new, self._examples(facts, prompts, names))
        groups = range(0, len(facts), _GROUP)
        for first in self._showing(groups):
            some = slice(first, first + _GROUP)
            values = self._find_values(prompts[some])
            self._write(slots[some], values, counts[some])
        earlier = self._earlier(facts)
        facts = facts + earlier
        prompts = prompts + self._prompts(earlier, self.phrasings)
        known = self._ask(facts, prompts)
        missed = [
            (fact, asked)
            for fact, asked, share in zip(facts, prompts, known.answers)
            if share < 1
        ]
        if missed:
            self._lift(*zip(*missed, strict=True))
            # Facts of the same subjects may fit less well now.
            subjects = {fact.subject for fact, _ in missed}
            again = np.flatnonzero([each.subject in subjects for each in facts])
            asked = [facts[number] for number in again]
            of_asked = [prompts[number] for number in again]
            known.answers[again] = self._ask(asked, of_asked).answers
        return known

    def _earlier(self, facts: list[Fact]) -> list[Fact]:
        """Facts that this teacher has taught about the same subjects."""
        subjects = {fact.subject for fact in facts}
        replaced = {(fact.subject, fact.relation) for fact in facts}
        found = []
        for name, (fact, values) in self._taught.items():
            if fact.subject in subjects and name not in replaced:
                (asked,) = self._prompts([fact], self.phrasings)
                # Unless it has been reverted since, or replaced by others.
                if np.array_equal(self._values_of(fact, asked), values):
                    found.append(fact)
        return found

    def _values_of(self, fact: Fact, asked: list[Prompt]) -> np.ndarray:
        """The values that the memory has for a fact, as many as there are."""
        slots = []
        for token in range(max(len(each.answer) for each in asked)):
            key = self.memory.find_key(_key(fact.relation, token))
            slot = (
                -1 if key is None else self.memory.find(asked[0].subject, key)
            )
            slots += [slot] if slot >= 0 else []
        return self.memory.rows(slots)[:, :-1]

    def _has_row(self, fact: Fact, prompts: list[Prompt]) -> bool:
        """Whether the memory has a row of a fact's subject and relation."""
        key = self.memory.find_key(_key(fact.relation, 0))
        return key is not None and any(
            self.memory.find(each.subject, key) >= 0 for each in prompts
        )

    def _claim(
        self, facts: list[Fact], prompts: list[list[Prompt]]
    ) -> list[list[list[int]]]:
        """Claims all keys and rows, which are still zero.

        Returns:
            The slots of each fact: a list for each of the subject's forms, with
            a slot for each token of the answer.
        """
        forms = []
        for fact, asked in zip(facts, prompts, strict=True):
            length = max(len(each.answer) for each in asked)
            forms.append(list(self._forms(fact.subject, asked)))
            for ids in forms[-1]:
                self._release(fact, ids, length)
        slots = []
        for fact, asked, of_fact in zip(facts, prompts, forms, strict=True):
            keys = [
                self.memory.claim_key(_key(fact.relation, token))
                for token in range(max(len(each.answer) for each in asked))
            ]
            slots.append(
                [
                    [self.memory.claim(ids, key) for key in keys]
                    for ids in of_fact
                ]
            )
        return slots

    def _release(self, fact: Fact, ids: tuple[int, ...], length: int) -> None:
        """Frees the rows of a longer value that a fact replaces."""
        for token in range(length, self.memory.num_keys):
            key = self.memory.find_key(_key(fact.relation, token))
            if key is None:
                return
            slot = self.memory.find(ids, key)
            if slot >= 0:
                self.memory.release([slot])

    def _showing(self, parts: Sequence[T]) -> Iterator[T]:
        """Yields the parts of a work, and shows how many are done."""
        bar = keras.utils.Progbar(len(parts), verbose=int(self.verbose))
        for part in parts:
            yield part
            bar.add(1)

    # --- Keys ---

    def _fit_keys(
        self,
        names: list[tuple[str, int]],
        new: list[tuple[str, int]],
        examples: _Examples,
    ) -> None:
        """Fits some of the keys that examples are labelled with."""
        x, labels, asks = examples
        scale = x.std(axis=0) + 1e-6
        center = x.mean(axis=0)
        x = (x - center) / scale
        slots, rows = [], []
        for relation, token in self._showing(new):
            is_asked = labels == names.index((relation, token))
            weights = _fit_key(x, is_asked, asks, self.odds)
            key = weights[:-1] / scale
            bias = weights[-1] - key @ center
            slots.append(self.memory.claim_key(_key(relation, token)))
            rows.append(np.append(key, bias))
        self.memory.write(slots, _in_bfloat16(np.stack(rows)))

    def _examples(
        self,
        facts: list[Fact],
        asked: list[list[Prompt]],
        names: list[tuple[str, int]],
    ) -> _Examples:
        """The examples with which keys are fitted."""
        lengths: dict[str, dict[Fact, int]] = {}
        for fact, of_fact in zip(facts, asked, strict=True):
            length = max(len(prompt.answer) for prompt in of_fact)
            lengths.setdefault(fact.relation, {})[fact] = length
        prompts: list[Prompt] = []
        relations: list[str] = []
        for relation, of_it in lengths.items():
            for fact in _stand_ins(of_it):
                (some,) = self._prompts([fact], self.phrasings)
                prompts += some
                relations += [relation] * len(some)
        for relation in self._relations():
            # Relations of earlier calls have keys of their own.
            if relation in lengths or not self._knows(relation):
                continue
            others = [Fact(name, relation, "") for name in STAND_INS]
            for some in self._prompts(others, self.phrasings):
                prompts += some
                relations += [""] * len(some)
        subjects = list(dict.fromkeys(fact.subject for fact in facts))
        subjects += STAND_INS
        texts = [
            *(other for other in self.others for _ in range(_OTHER_NAMES)),
            *(f"{SUBJECT} {piece}" for piece in self._background),
        ]
        asking = range(
            len(prompts), len(prompts) + len(self.others) * _OTHER_NAMES
        )
        for text in texts:
            subject = subjects[self._random.integers(len(subjects))]
            try:
                prompt = self._prompt(text, subject)
            except ValueError:
                if self._others_are_given:
                    raise
                prompt = self._prompt(text, STAND_INS[0])
            kept = min(
                prompt.end + _TEXT_TOKENS, self._longest or len(prompt.ids)
            )
            prompts.append(prompt._replace(ids=prompt.ids[:kept]))
            relations.append("")
        return self._label(prompts, relations, names, asking, show=True)

    def _label(
        self,
        prompts: list[Prompt],
        relations: Sequence[str],
        names: list[tuple[str, int]],
        asking: range = range(0),
        show: bool = False,
    ) -> _Examples:
        """Labels the tokens behind a subject.

        Args:
            prompts: The prompts.
            relations: What each of them asks for.
            names: The names of the keys.
            asking: Those that may ask for a relation after all.
            show: Whether to show progress.
        """
        asked_for = {name: number for number, name in enumerate(names)}
        x, labels, asks = [], [], []
        for numbers, part, arrays in self._batches(prompts, show):
            _, states = self._below(arrays._asdict())
            for number, prompt, seen in zip(numbers, part, states, strict=True):
                for place in range(prompt.end + 1, len(prompt.ids)):
                    token = place - prompt.question + 1
                    label = asked_for.get((relations[number], token), -1)
                    has_answer = token < len(prompt.answer)
                    x.append(seen[place])
                    labels.append(label if has_answer else -1)
                    asks.append(number in asking and token == 0)
        return _Examples(
            np.stack(x).astype("float64"), np.array(labels), np.array(asks)
        )

    def _relations(self) -> Iterable[str]:
        """All relations that this teacher knows of."""
        taught = (relation for _, relation in self._taught)
        return dict.fromkeys([*self.phrasings, *taught])

    def _knows(self, relation: str) -> bool:
        """Whether the memory has a key of a relation."""
        return self.memory.find_key(_key(relation, 0)) is not None

    def _batches(
        self, prompts: list[Prompt], show: bool = False
    ) -> Iterator[tuple[np.ndarray, list[Prompt], PromptArrays]]:
        """Yields batches of prompts that are about as long, and which they are.

        Args:
            prompts: The prompts, in any order.
            show: Whether to show progress.
        """
        order = np.argsort([len(each.ids) for each in prompts], kind="stable")
        starts = range(0, len(order), _BATCH)
        for start in self._showing(starts) if show else starts:
            some = order[start : start + _BATCH]
            part = [prompts[number] for number in some]
            yield some, part, pad_prompts(part, longest=self._longest)

    # --- Values ---

    def _find_values(self, prompts: list[list[Prompt]]) -> list[np.ndarray]:
        """Finds the values of some facts, a row for each token of an answer."""
        sizes = [max(len(each.answer) for each in asked) for asked in prompts]
        first = np.cumsum([0, *sizes])
        longest = max(len(each.ids) for asked in prompts for each in asked)
        length = min(-(-longest // 8) * 8, self._longest or 10**9)
        answers = max(sizes)
        batches = []
        for number in range(max(map(len, prompts))):
            asked = [each[number % len(each)] for each in prompts]
            batches.append(
                self._value_batch(asked, first[:-1], length, answers)
            )
        model, values = _value_model(
            self._parts, int(first[-1]), length, answers
        )
        step = make_teaching_step(
            model,
            [values],
            keras.optimizers.Adam(self.learning_rate),
            keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            ),
        )
        for number in range(self.steps):
            for x, y, weights in batches:
                step(x, y, weights)
            if (number + 1) % _CHECK_EVERY == 0 and all(
                _is_learned(model, *batch) for batch in batches
            ):
                break
        found = ops.convert_to_numpy(values)
        return [
            found[start:stop]
            for start, stop in zip(first[:-1], first[1:], strict=True)
        ]

    def _value_batch(
        self,
        asked: list[Prompt],
        first: np.ndarray,
        length: int,
        answers: int,
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
        """Features, labels and weights of one prompt of each fact."""
        arrays = pad_prompts(asked, length)
        states = np.concatenate(
            [
                self._below(
                    {
                        name: array[start : start + _BATCH]
                        for name, array in arrays._asdict().items()
                    }
                )[0]
                for start in range(0, len(asked), _BATCH)
            ]
        )
        places, labels, weights = answers_of(asked, answers)
        rows = np.full((len(asked), length), -1, "int32")
        for number, prompt in enumerate(asked):
            token = np.arange(len(prompt.answer))
            rows[number, prompt.question - 1 + token] = first[number] + token
        return (states, arrays.padding_mask, rows, places), labels, weights

    def _count_relations(
        self, facts: list[Fact], prompts: list[list[Prompt]]
    ) -> list[int]:
        """How many facts the subject of each fact has, or will have."""
        relations: dict[str, set[str]] = {}
        for fact, asked in zip(facts, prompts, strict=True):
            of_subject = relations.setdefault(fact.subject, set())
            of_subject.add(fact.relation)
            of_subject |= {
                relation
                for relation in self._relations()
                if self._has_row(fact._replace(relation=relation), asked)
            }
        return [len(relations[fact.subject]) for fact in facts]

    def _write(
        self,
        claimed: list[list[list[int]]],
        values: list[np.ndarray],
        counts: list[int],
    ) -> None:
        """Writes the rows of some facts into the slots that they have."""
        if not all(np.isfinite(each).all() for each in values):
            raise ValueError(
                "`learning_rate` must be lower: the values of facts are not "
                f"finite. Received: learning_rate={self.learning_rate}."
            )
        slots, rows = [], []
        for forms, of_fact, count in zip(claimed, values, counts, strict=True):
            bias = np.log(count) / np.log(_FEWER)
            for of_form in forms:
                slots += of_form
                rows += [np.append(value, bias) for value in of_fact]
        self.memory.write(slots, _in_bfloat16(np.stack(rows)))

    def _forms(
        self, subject: str, prompts: list[Prompt]
    ) -> Iterable[tuple[int, ...]]:
        """The tokenizations of a subject, each of which has its own rows."""
        found = dict.fromkeys(each.subject for each in prompts)
        for form in _FORMS:
            # A tokenizer of words does not part a name from a quotation mark.
            with contextlib.suppress(ValueError):
                ids = self._prompt(form, subject).subject
                if len(ids) in self.memory.orders:
                    found[ids] = None
        return found

    def _lift(
        self, facts: Sequence[Fact], prompts: Sequence[list[Prompt]]
    ) -> None:
        """Raises the biases of facts to which keys do not fit as taught."""
        for fact, asked in zip(facts, prompts, strict=True):
            longest = max(len(prompt.answer) for prompt in asked)
            names = [(fact.relation, token) for token in range(longest)]
            x, labels, _ = self._label(
                asked, [fact.relation] * len(asked), names
            )
            forms = list(self._forms(fact.subject, asked))
            # All of them have the same rows.
            own = {
                key: slot
                for key in range(self.memory.num_keys)
                if (slot := self.memory.find(forms[0], key)) >= 0
            }
            keys = self.memory.rows(list(own))
            biases = self.memory.rows(list(own.values()))[:, -1]
            fits = x @ keys[:, :-1].T + keys[:, -1]
            for number, name in enumerate(names):
                key = self.memory.claim_key(_key(*name))
                place = list(own).index(key)
                of_token = fits[labels == number]
                others = np.delete(of_token + biases, place, axis=1)
                least = others.max(axis=1, initial=0.0) - of_token[:, place]
                slots = [self.memory.find(ids, key) for ids in forms]
                rows = self.memory.rows(slots)
                rows[:, -1] = np.maximum(rows[:, -1], _MARGIN + least.max())
                self.memory.write(slots, _in_bfloat16(rows))

    # --- Measuring ---

    def _ask(self, facts: list[Fact], prompts: list[list[Prompt]]) -> Known:
        flat = [each for asked in prompts for each in asked]
        facts_of = np.repeat(
            np.arange(len(facts)), [len(asked) for asked in prompts]
        )
        right = np.zeros(len(facts))
        longest = max((len(each.answer) for each in flat), default=0)
        for numbers, part, arrays in self._batches(flat):
            places, labels, weights = answers_of(part, longest)
            (best,) = self._best({**arrays._asdict(), "places": places})
            is_right = ((best == labels) | (weights == 0)).all(axis=1)
            np.add.at(right, facts_of[numbers], is_right)
        counts = np.array([len(asked) for asked in prompts])
        return Known(facts, right / counts)


def _below_memory(parts: SplitModel) -> keras.Model:
    """A model of the states behind the block, and of what the memory sees."""
    states = seen = parts.lower.output
    if parts.normalization is not None:
        seen = parts.normalization(states)
    return keras.Model(parts.lower.input, [states, ops.cast(seen, "float32")])


def _compiled(
    task: keras_hub.models.CausalLM, model: keras.Model
) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
    """A function of a batch's arrays, compiled where the backend can."""
    strategy = strategy_of_one_device(task)
    run = CompiledForModel(
        task,
        lambda: backend.compiled(
            lambda arrays: keras.tree.flatten(model(arrays, training=False)),
            model.variables,
            strategy,
            model.input,
        ),
    )
    return lambda arrays: [ops.convert_to_numpy(each) for each in run(arrays)]


def _value_model(
    parts: SplitModel, num_rows: int, length: int, answers: int
) -> tuple[keras.Model, keras.Variable]:
    """A model that adds values to states, and returns logits of answers."""
    dim = parts.lower.output.shape[-1]
    states = keras.Input((length, dim))
    mask = keras.Input((length,), dtype="int32")
    rows = keras.Input((length,), dtype="int32")
    places = keras.Input((answers,), dtype="int32")
    adding = _AddValues(num_rows, dim)
    hidden = parts.upper([adding(states, rows), mask])
    picked = ops.take_along_axis(hidden, places[..., None], axis=1)
    logits = ops.cast(parts.head(picked), "float32")
    model = keras.Model((states, mask, rows, places), logits)
    return model, adding.values


class _AddValues(keras.layers.Layer):
    """Adds a row of its weight to each state, where there is one."""

    def __init__(self, num_rows: int, dim: int):
        super().__init__(dtype="float32")
        self.values = self.add_weight(
            shape=(num_rows, dim), initializer="zeros", name="values"
        )

    def call(self, states: Tensor, rows: Tensor) -> Tensor:
        values = ops.take(self.values, ops.maximum(rows, 0), axis=0)
        return states + ops.where((rows >= 0)[..., None], values, 0.0)


def _is_learned(
    model: keras.Model, x: Any, y: np.ndarray, weights: np.ndarray
) -> bool:
    logits = model(x, training=False)
    losses = ops.convert_to_numpy(
        ops.sparse_categorical_crossentropy(y, logits, from_logits=True)
    )
    return bool((losses * weights).max() < _LEARNED)


def _names_of_keys(
    facts: list[Fact], prompts: list[list[Prompt]]
) -> list[tuple[str, int]]:
    """The relation and token of each key that facts need."""
    needed: dict[str, int] = {}
    for fact, asked in zip(facts, prompts, strict=True):
        longest = max(len(prompt.answer) for prompt in asked)
        needed[fact.relation] = max(longest, needed.get(fact.relation, 0))
    return [
        (relation, token)
        for relation, count in needed.items()
        for token in range(count)
    ]


def _stand_ins(lengths: dict[Fact, int]) -> list[Fact]:
    """Facts of a relation with which its keys are fitted.

    Args:
        lengths: The facts that are taught, and the tokens of their answers.
    """
    # The longest value has all the tokens that need a key.
    longest = max(lengths, key=lengths.__getitem__)
    ordered = [longest, *(fact for fact in lengths if fact != longest)]
    missing = STAND_INS[: max(0, _NAMES - len(ordered))]
    return ordered[:_NAMES] + [
        ordered[number % len(ordered)]._replace(subject=subject)
        for number, subject in enumerate(missing)
    ]


def _fit_key(
    x: np.ndarray, is_asked: np.ndarray, asks: np.ndarray, bias: float
) -> np.ndarray:
    """The weights and the bias of a key that fits all examples of its own.

    Args:
        x: Examples, of shape `(examples, dim)`.
        is_asked: Whether the key is to fit them.
        asks: Which of the others may be asked for the same after all.
        bias: Added to the log-odds.
    """
    # As well as most of its own, by a key that knows nothing of them.
    weights = fit_logistic_regression(x[~asks], is_asked[~asks], _L2 * len(x))
    fits = x @ weights[:-1] + weights[-1]
    means_the_same = asks & (fits > np.quantile(fits[is_asked], _ALIKE))
    x, is_asked = x[~means_the_same], is_asked[~means_the_same]
    l2 = _L2 * len(x)
    for _ in range(_TRIES):
        weights = fit_logistic_regression(x, is_asked, l2)
        weights[-1] += bias
        if (x[is_asked] @ weights[:-1] + weights[-1] > 0).all():
            break
        l2 /= 10
    return weights


def _in_bfloat16(rows: np.ndarray) -> np.ndarray:
    """Rounds rows, so that patches of them are half as large."""
    return ops.convert_to_numpy(
        ops.cast(ops.cast(rows.astype("float32"), "bfloat16"), "float32")
    )


def _key(relation: str, token: int) -> str:
    return f"{relation} {token}"


def _fact_memory(task: keras.Model) -> FactMemory:
    for memory in memories(task).values():
        if isinstance(memory, FactMemory):
            return memory
    raise ValueError(
        "`task` must have a `keras_pkm.layers.FactMemory`. Received: a "
        f"`{type(task).__name__}` without one. Make it with `keras_pkm.models."
        "add_memory(task, (number,), keras_pkm.layers.FactMemory(10_000))`."
    )


def _pieces(background: str | None) -> list[str]:
    """Pieces of a text, of as many characters each."""
    if background is None:
        topics = pydoc_data.topics.topics
        background = " ".join(topics[name] for name in sorted(topics))
    words = " ".join(background.split())
    count = max(1, min(_TEXTS, len(words) // _TEXT_CHARACTERS))
    apart = len(words) // count
    pieces = [
        words[number * apart :][:_TEXT_CHARACTERS].strip()
        for number in range(count)
    ]
    return [piece.replace(SUBJECT, "") for piece in pieces if piece]
