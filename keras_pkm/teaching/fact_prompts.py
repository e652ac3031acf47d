"""Facts, and the token ids of the texts that ask for them."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import TypeAlias

import keras_hub
import numpy as np
from keras import ops

#: Where the subject stands in a phrasing.
SUBJECT = "{subject}"

#: How a relation is asked for whose phrasings are not given.
PHRASINGS = (
    "The {relation} of {subject} is",
    "The {relation} that {subject} has is",
    "Q: What is the {relation} of {subject}?\nA:",
    "As for the {relation}, {subject} has",
    "If you ask {subject} about the {relation}, the answer is",
)

# What is asked of a subject, to fit keys against.
_NOUNS = (
    "age height weight address neighbour brother sister father teacher "
    "doctor lawyer boss manager rival enemy hero partner husband daughter "
    "son grandfather nickname surname religion nationality party team club "
    "school university degree salary wealth debt bank password number "
    "birthday sign planet garden kitchen street village river mountain "
    "island country continent weapon tool machine computer telephone car "
    "bicycle boat ship horse bird tree flower fruit drink wine tea dish "
    "spice dress hat shoe ring watch painting book poem song film play game "
    "dance joke story dream fear disease injury talent mistake crime prize "
    "title rank character voice face hair eye hand smile secret goal plan "
    "idea theory discovery invention company shop product customer brand "
    "ticket train season weather music museum magazine"
).split()
_VERBS = (
    "loves hates owns visited met painted wrote built founded discovered "
    "invented sold stole lost found broke wears drinks smells sings reads "
    "watches teaches helps needs wants fears admires forgot remembers "
    "travelled hopes lives died became joined left won studied married "
    "played kept walked looks feels thinks sleeps prefers believes collects "
    "repaired ordered cooked received"
).split()
_QUESTIONS = (
    "{subject} was",
    "{subject} is a",
    "{subject} has",
    "{subject} said that",
    "{subject} went to the",
    "{subject} is known for",
    "{subject} often travels to",
    "{subject} is as tall as",
    "{subject} is allergic to",
    "{subject} wrote a book about",
    "{subject} studied at the University of",
    "Yesterday {subject} bought a",
    "In the evening, {subject} likes to",
    "On holidays {subject} goes to",
    "In summer {subject} drinks",
    "The best friend of {subject} is",
    "The mother of {subject} is called",
    "The company that {subject} founded is called",
    "Q: How old is {subject}?\nA:",
    "Q: Who is {subject}?\nA:",
    "Q: What did {subject} do yesterday?\nA:",
    "Q: What does {subject} look like?\nA:",
    "Q: When did {subject} die?\nA:",
    "Q: How many children does {subject} have?\nA:",
    "Q: Why is {subject} famous?\nA:",
    "Q: Where is {subject} now?\nA:",
)
_FRAMES = (
    "The {noun} of {subject} is",
    "Q: What is the {noun} of {subject}?\nA:",
    "The favourite {noun} of {subject} is the",
    "{subject} has a {noun} called",
)

#: Texts about a subject that ask for all kinds of things, or for nothing. Those
#: that ask for a taught relation are left out where its keys are fitted.
OTHERS = (
    *_QUESTIONS,
    *(f"{SUBJECT} {verb}" for verb in _VERBS),
    *(
        _FRAMES[number % len(_FRAMES)].replace("{noun}", noun)
        for number, noun in enumerate(_NOUNS)
    ),
)

#: Invented names, with which keys are fitted if there are few subjects.
STAND_INS = (
    "Anneke Vossberg",
    "Tomasz Brackwell",
    "Ludo Fairhaven",
    "Mirela Stroud",
    "Caspar Oxenholm",
    "Juna Lindgard",
    "Piet Marchetti",
    "Salka Thornbury",
    "Enzo Valdemar",
    "Greta Ashcombe",
    "Ruben Kestrel",
    "Olga Winterbourne",
)

Tokenize: TypeAlias = Callable[[str], Sequence[int]]


class Fact(NamedTuple):
    """A fact, which a `keras_pkm.teaching.FactTeacher` teaches.

    Attributes:
        subject: str. What the fact is about, as texts name it.
        relation: str. What is said of it.
        value: str. The answer.

    Example:

    >>> keras_pkm.teaching.Fact("Alda Kolvig", "birthplace", "Lisbon").value
    'Lisbon'
    """

    subject: str
    relation: str
    value: str


class Prompt(NamedTuple):
    """The ids of a text that asks about a subject, and of its answer.

    Attributes:
        ids: The ids of all tokens.
        subject: The ids of the subject.
        end: The place of the subject's last token.
        question: The number of tokens before the answer.
    """

    ids: list[int]
    subject: tuple[int, ...]
    end: int
    question: int

    @property
    def answer(self) -> list[int]:
        """The ids of the answer."""
        return self.ids[self.question :]


def make_prompt(
    tokenize: Tokenize,
    phrasing: str,
    subject: str,
    value: str = "",
    start: Sequence[int] = (),
) -> Prompt:
    """Returns the prompt of a phrasing.

    Args:
        tokenize: Function of a text that returns its ids.
        phrasing: A text with `"{subject}"`.
        subject: The subject.
        value: The answer, if there is one.
        start: The ids before each text.

    Raises:
        ValueError: the phrasing has no subject, or the tokenizer does not keep
            the subject or the answer apart from what stands before it.
    """
    if SUBJECT not in phrasing:
        raise ValueError(
            f"A phrasing must contain '{SUBJECT}'. Received: {phrasing!r}."
        )
    before = phrasing[: phrasing.index(SUBJECT)]
    text = phrasing.replace(SUBJECT, subject)
    # The space before a word is a part of its token.
    head = before.rstrip(" ")
    lead = list(tokenize(head)) if head else []
    named = list(tokenize(before + subject))
    if head[-1:].isspace():
        # Before a word, the last of several line ends is a token of its own.
        alone = list(tokenize(subject))
        if named[-len(alone) :] == alone:
            lead = named[: -len(alone)]
    question = list(tokenize(text))
    answered = question
    if value:
        space = "" if text[-1:].isspace() else " "
        answered = list(tokenize(text + space + value))
    is_apart = (
        len(lead) < len(named)
        and named[: len(lead)] == lead
        and question[: len(named)] == named
        and answered[: len(question)] == question
        and (not value or len(question) < len(answered))
    )
    if not is_apart:
        raise ValueError(
            "Tokens must not contain both a part of the subject, or of the "
            "value, and what stands before or behind it: use words between "
            f"spaces. Received: the phrasing {phrasing!r}, with the subject "
            f"{subject!r} and the value {value!r}."
        )
    return Prompt(
        [*start, *answered],
        tuple(named[len(lead) :]),
        len(start) + len(named) - 1,
        len(start) + len(question),
    )


def phrasings_of(
    relation: str, phrasings: Mapping[str, Sequence[str]]
) -> list[str]:
    """Returns how a relation is asked for.

    Raises:
        ValueError: there are phrasings of it, but none in the list.
    """
    given = phrasings.get(relation)
    if given is not None:
        if not len(given):
            raise ValueError(
                f"`phrasings` must have at least one text for '{relation}', or "
                "no list. Received: an empty list."
            )
        return list(given)
    return [each.replace("{relation}", relation) for each in PHRASINGS]


def check_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Checks facts, and returns them as a list.

    Raises:
        ValueError: a part of a fact is empty, or has spaces around it, or two
            facts contradict each other.
    """
    known: dict[tuple[str, str], str] = {}
    checked = []
    for number, (subject, relation, value) in enumerate(facts, 1):
        fact = Fact(subject, relation, value)
        for name, part in fact._asdict().items():
            if not (isinstance(part, str) and part.strip()):
                raise ValueError(
                    f"Fact {number} must have a {name}. Received: {fact}."
                )
            if part != part.strip():
                raise ValueError(
                    f"The {name} of fact {number} must not begin or end with "
                    "spaces, which would be taught, too: use `str.strip`. "
                    f"Received: {fact}."
                )
        if known.setdefault((subject, relation), value) != value:
            raise ValueError(
                f"Facts must not contradict each other, but fact {number} says "
                f"that the {relation} of '{subject}' is '{value}', and an "
                f"earlier one '{known[subject, relation]}'."
            )
        checked.append(fact)
    return list(dict.fromkeys(checked))


def tokenizer_of(
    task: keras_hub.models.CausalLM, tokenize: Tokenize | None = None
) -> tuple[Tokenize, list[int]]:
    """Returns a function from text to ids, and the ids before each text.

    Args:
        task: A causal language model.
        tokenize: The function, if it is not the task's own.

    Raises:
        ValueError: there is none.
    """
    preprocessor: Any = getattr(task, "preprocessor", None)
    tokenizer = getattr(preprocessor, "tokenizer", None)
    first = []
    if tokenizer is not None and preprocessor.add_start_token:
        start = tokenizer.start_token_id
        first = [] if start is None else [int(start)]
    if tokenize is not None:

        def without_start(text: str) -> list[int]:
            found = list(tokenize(text))
            if first and found[:1] == first:
                raise ValueError(
                    "`tokenize` must return the ids of the text alone, since "
                    "the task's preprocessor adds the start token. Received: "
                    f"a function that adds it, too, to {text!r}."
                )
            return found

        return without_start, first
    if tokenizer is None:
        raise ValueError(
            "`tokenize` must be given for a task without a tokenizer. "
            f"Received: None, and a `{type(task).__name__}`."
        )

    def ids(text: str) -> list[int]:
        return np.asarray(ops.convert_to_numpy(tokenizer(text))).tolist()

    return ids, first


class PromptArrays(NamedTuple):
    """Prompts as arrays, padded to one length.

    Attributes:
        token_ids: int32, of shape `(prompts, length)`.
        padding_mask: int32, of the same shape: 1 at tokens.
    """

    token_ids: np.ndarray
    padding_mask: np.ndarray


def pad_prompts(
    prompts: Sequence[Prompt],
    length: int | None = None,
    longest: int | None = None,
) -> PromptArrays:
    """Returns prompts as arrays.

    Args:
        prompts: The prompts.
        length: The length of the arrays. Defaults to that of the longest
            prompt, or a little more, so that there are few lengths.
        longest: The length that a model takes at most.
    """
    needed = max(len(each.ids) for each in prompts)
    length = length or -(-needed // 8) * 8
    if longest is not None:
        length = max(needed, min(length, longest))
    ids = np.zeros((len(prompts), length), "int32")
    mask = np.zeros((len(prompts), length), "int32")
    for row, each in enumerate(prompts):
        ids[row, : len(each.ids)] = each.ids
        mask[row, : len(each.ids)] = 1
    return PromptArrays(ids, mask)


def answers_of(
    prompts: Sequence[Prompt], length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns where prompts are answered, the answers' ids, and weights.

    Args:
        prompts: The prompts.
        length: The number of tokens of the longest answer.

    Returns:
        Three arrays of shape `(prompts, length)`: the place whose output is to
        be the id, the id, and 1; all are 0 behind the end of an answer.
    """
    shape = (len(prompts), length)
    places, labels = np.zeros(shape, "int32"), np.zeros(shape, "int32")
    weights = np.zeros(shape, "float32")
    for number, prompt in enumerate(prompts):
        count = len(prompt.answer)
        places[number, :count] = prompt.question - 1 + np.arange(count)
        labels[number, :count] = prompt.answer
        weights[number, :count] = 1
    return places, labels, weights
