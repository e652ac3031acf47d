"""Windows of SQuAD's paragraphs with their questions, and their answers."""

import dataclasses
import unicodedata

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_pkm.export.encoder import INPUTS
from keras_pkm.text import windows
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.windows import WindowSizes
from training.corpora.offset_tokenizer import OffsetTokenizer
from training.corpora.offset_tokenizer import ragged_rows
from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.squad import SquadExample

# Questions that are laid out at a time.
_QUESTIONS = 512


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows of some questions, as arrays with one row each."""

    # Int32 of shape `(windows, sequence_length)`.
    token_ids: np.ndarray
    # Int32, likewise.
    segment_ids: np.ndarray
    # Int32, likewise, 1 at tokens.
    padding_mask: np.ndarray
    # Int32, likewise: the first character of each token of the paragraph, -1
    # elsewhere.
    starts: np.ndarray
    # Int32, likewise: the character after its last.
    ends: np.ndarray
    # Bool, likewise: whether no other window of the question has more context
    # around the token.
    in_the_middle: np.ndarray
    # Int32 of shape `(windows,)`: the question's number.
    examples: np.ndarray
    # Int32 of shape `(windows, 2)`: first and last token of the first answer;
    # both 0 in windows that do not contain all of it.
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.examples)

    @classmethod
    def concatenate(cls, parts: list["Windows"]) -> "Windows":
        """Returns the windows of all parts, concatenated."""
        arrays = zip(*(vars(part).values() for part in parts))
        return cls(*map(np.concatenate, arrays))


def make_windows(
    examples: list[SquadExample],
    tokenizer: OffsetTokenizer,
    special: SpecialTokens,
    sizes: WindowSizes,
    path: str,
    bad_rows: BadRows,
    progress: bool = True,
) -> Windows:
    """Lays out all questions with their paragraphs, as exported models do."""
    parts = []
    for first in tqdm(
        range(0, len(examples), _QUESTIONS),
        "Windows",
        disable=None if progress else True,
    ):
        some = examples[first : first + _QUESTIONS]
        questions = tokenizer.ids([example.question for example in some])
        fits = []
        for example, question in zip(some, questions):
            around = 2 + len(special.between)
            fits.append(len(question) + around < sizes.sequence_length)
            if not fits[-1]:
                bad_rows.add(
                    path,
                    f"question {example.id}",
                    f"a question must leave room for its paragraph in "
                    f"{sizes.sequence_length} tokens, received one of "
                    f"{len(question)} tokens: raise --sequence-length",
                )
        numbers = np.flatnonzero(fits)
        if len(numbers):
            parts.append(
                _windows_of(
                    [some[number] for number in numbers],
                    first + numbers,
                    [questions[number] for number in numbers],
                    tokenizer,
                    special,
                    sizes,
                )
            )
    if not parts:
        raise UserError(
            f"{path} must contain a question that leaves room for its "
            f"paragraph in {sizes.sequence_length} tokens, but has none: raise "
            "--sequence-length"
        )
    return Windows.concatenate(parts)


def _windows_of(
    examples: list[SquadExample],
    numbers: np.ndarray,
    questions: list[list[int]],
    tokenizer: OffsetTokenizer,
    special: SpecialTokens,
    sizes: WindowSizes,
) -> Windows:
    """The windows of some questions, which have these numbers."""
    # Many questions share a paragraph.
    contexts = list(dict.fromkeys(example.context for example in examples))
    places = {context: number for number, context in enumerate(contexts)}
    owners = np.array([places[example.context] for example in examples])
    ids, *offsets = tokenizer.with_offsets(contexts)
    made = windows.make_windows(
        ragged_rows(questions), tf.gather(ids, owners), sizes, special
    )
    rows, tokens = made.examples.numpy(), made.tokens.numpy()
    inside = tokens >= 0
    # One more column: contexts may have no tokens.
    starts, ends = (
        np.pad(each.to_tensor(-1).numpy(), [(0, 0), (0, 1)], constant_values=-1)
        for each in offsets
    )
    spans = [
        _token_span(
            starts[owner],
            ends[owner],
            example.answer_starts[0],
            example.answer_starts[0] + len(example.answers[0]),
        )
        for owner, example in zip(owners, examples)
    ]
    is_label = [
        inside & (tokens == np.array(side)[rows][:, None])
        for side in zip(*spans)
    ]
    has_all = is_label[0].any(1) & is_label[1].any(1)
    labels = [each.argmax(1) * has_all for each in is_label]
    return Windows(
        **{
            name: made.inputs[theirs].numpy() for theirs, name in INPUTS.items()
        },
        # At the number -1 is the column that was added.
        starts=starts[owners[rows][:, None], tokens],
        ends=ends[owners[rows][:, None], tokens],
        in_the_middle=made.in_the_middle.numpy(),
        examples=numbers[rows].astype("int32"),
        labels=np.stack(labels, 1).astype("int32"),
    )


def _token_span(
    starts: np.ndarray, ends: np.ndarray, first: int, last: int
) -> tuple[int, int]:
    """The first and last token with a character in [first, last), or -2s."""
    found = np.flatnonzero((starts < last) & (first < ends))
    return (found[0], found[-1]) if len(found) else (-2, -2)


def best_answers(
    examples: list[SquadExample],
    windows: Windows,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    sizes: WindowSizes,
    best: int = 20,
) -> dict[str, list[dict]]:
    """Finds the best answers of each question, over all its windows."""
    found: list[list[tuple[float, tuple[int, int]]]] = [[] for _ in examples]
    for row, number in enumerate(windows.examples):
        starts = _best_places(
            start_logits[row], windows.in_the_middle[row], best
        )
        ends = _best_places(end_logits[row], windows.starts[row] >= 0, best)
        for a in starts:
            for b in ends:
                if a <= b < a + sizes.answer_length:
                    logit = float(start_logits[row, a] + end_logits[row, b])
                    span = windows.starts[row, a], windows.ends[row, b]
                    found[number].append((logit, span))
    answers = {}
    for example, candidates in zip(examples, found):
        candidates = sorted(candidates, key=lambda c: -c[0])
        logits: dict[str, float] = {}
        for logit, (start, end) in candidates:
            end += _count_marks(example.context, end)
            logits.setdefault(example.context[start:end], logit)
        items = list(logits.items())[:best] or [("", 0.0)]
        weights = np.exp([logit - items[0][1] for _, logit in items])
        answers[example.id] = [
            {"text": text, "logit": logit, "probability": float(p)}
            for (text, logit), p in zip(items, weights / weights.sum())
        ]
    return answers


def _count_marks(context: str, end: int) -> int:
    """The number of combining marks behind an answer.

    A tokenizer that strips accents has no token for them.
    """
    count = 0
    for letter in context[end:]:
        if not unicodedata.category(letter).startswith("M"):
            break
        count += 1
    return count


def _best_places(
    logits: np.ndarray, allowed: np.ndarray, count: int
) -> np.ndarray:
    """The positions of the largest allowed logits, best first."""
    places = np.flatnonzero(allowed)
    order = np.argsort(-logits[places], kind="stable")[:count]
    return places[order]
