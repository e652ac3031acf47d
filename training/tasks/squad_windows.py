"""Cuts paragraphs into windows with their question, and finds answers."""

import dataclasses

import numpy as np
from tokenizers import Encoding
from tokenizers import Tokenizer
from tqdm import tqdm

from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.windows import WindowSizes
from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.squad import SquadExample


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
    def empty(cls, count: int, length: int, padding: int) -> "Windows":
        """Returns windows of nothing but padding."""
        shape = count, length
        return cls(
            token_ids=np.full(shape, padding, "int32"),
            segment_ids=np.zeros(shape, "int32"),
            padding_mask=np.zeros(shape, "int32"),
            starts=np.full(shape, -1, "int32"),
            ends=np.full(shape, -1, "int32"),
            in_the_middle=np.zeros(shape, bool),
            examples=np.zeros(count, "int32"),
            labels=np.zeros((count, 2), "int32"),
        )

    @classmethod
    def concatenate(cls, parts: list["Windows"]) -> "Windows":
        """Returns the windows of all parts, concatenated."""
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(
            *(
                np.concatenate([getattr(p, name) for p in parts])
                for name in names
            )
        )


def make_windows(
    examples: list[SquadExample],
    tokenizer: Tokenizer,
    special: SpecialTokens,
    sizes: WindowSizes,
    path: str,
    bad_rows: BadRows,
    progress: bool = True,
) -> Windows:
    """Lays out all questions with their paragraphs."""
    parts = []
    paragraphs = {}
    for number, example in enumerate(
        tqdm(examples, "Windows", disable=None if progress else True)
    ):
        question = tokenizer.encode(
            example.question, add_special_tokens=False
        ).ids
        # The questions of a paragraph are consecutive.
        if example.context not in paragraphs:
            paragraphs = {
                example.context: tokenizer.encode(
                    example.context, add_special_tokens=False
                )
            }
        paragraph = paragraphs[example.context]
        before = 1 + len(question) + len(special.between)
        room = sizes.sequence_length - before - 1
        if room < 1:
            bad_rows.add(
                path,
                f"question {example.id}",
                f"a question must leave room for its paragraph in "
                f"{sizes.sequence_length} tokens, received one of "
                f"{len(question)} tokens: raise --sequence-length",
            )
            continue
        head = [special.start, *question, *special.between]
        parts.append(
            _windows_of(number, example, head, paragraph, room, special, sizes)
        )
    if not parts:
        raise UserError(
            f"{path} must contain a question that leaves room for its "
            f"paragraph in {sizes.sequence_length} tokens, but has none: raise "
            "--sequence-length"
        )
    return Windows.concatenate(parts)


def _windows_of(
    number: int,
    example: SquadExample,
    head: list[int],
    paragraph: Encoding,
    room: int,
    special: SpecialTokens,
    sizes: WindowSizes,
) -> Windows:
    """The windows of one question."""
    ids = np.array(paragraph.ids, "int32")
    offsets = np.array(paragraph.offsets, "int32").reshape(-1, 2)
    step = min(sizes.stride, room)
    middle = most_context(len(ids), room, step)
    answer = _token_span(
        offsets,
        example.answer_starts[0],
        example.answer_starts[0] + len(example.answers[0]),
    )
    count = num_windows(len(ids), room, step)
    windows = Windows.empty(count, sizes.sequence_length, special.padding)
    windows.examples[:] = number
    windows.token_ids[:, : len(head)] = head
    for row in range(count):
        first = row * step
        last = min(first + room, len(ids))
        end = len(head) + last - first
        inside = slice(len(head), end)
        windows.token_ids[row, inside] = ids[first:last]
        windows.token_ids[row, end] = special.end
        windows.segment_ids[row, len(head) : end + 1] = special.second_segment
        windows.padding_mask[row, : end + 1] = 1
        windows.starts[row, inside] = offsets[first:last, 0]
        windows.ends[row, inside] = offsets[first:last, 1]
        windows.in_the_middle[row, inside] = middle[first:last] == row
        if answer and first <= answer[0] and answer[1] < last:
            windows.labels[row] = [len(head) + t - first for t in answer]
    return windows


def most_context(length: int, room: int, step: int) -> np.ndarray:
    """Returns, for each token, the window that has most context around it.

    A window begins every `step` tokens, up to the first window that reaches the
    end. A token's context is the smaller of the numbers of tokens to its left
    and to its right, plus a hundredth of the window's length. Of equal windows
    the first one counts.

    All windows but the last have the same length. The best of them is one of
    the two whose middles enclose the token, so that there are three candidates
    for each token.
    """
    tokens = np.arange(length)
    last = num_windows(length, room, step) - 1
    before = (tokens - room // 2) // step
    candidates = np.clip([before, before + 1, np.full(length, last)], 0, last)
    firsts = candidates * step
    ends = np.minimum(firsts + room, length)
    context = np.minimum(tokens - firsts, ends - 1 - tokens)
    scores = np.where(context < 0, -1.0, context + 0.01 * (ends - firsts))
    best = scores == scores.max(0)
    return np.where(best, candidates, last).min(0)


def num_windows(length: int, room: int, step: int) -> int:
    """Returns the number of windows of a paragraph; see `most_context`."""
    return 1 + max(0, -(-(length - room) // step))


def _token_span(
    offsets: np.ndarray, start: int, end: int
) -> tuple[int, int] | None:
    """Returns the first and last token with a character in [start, end)."""
    inside = np.flatnonzero((offsets[:, 0] < end) & (start < offsets[:, 1]))
    return (inside[0], inside[-1]) if len(inside) else None


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
            logits.setdefault(example.context[start:end], logit)
        items = list(logits.items())[:best] or [("", 0.0)]
        weights = np.exp([logit - items[0][1] for _, logit in items])
        answers[example.id] = [
            {"text": text, "logit": logit, "probability": float(p)}
            for (text, logit), p in zip(items, weights / weights.sum())
        ]
    return answers


def _best_places(
    logits: np.ndarray, allowed: np.ndarray, count: int
) -> np.ndarray:
    """The positions of the largest allowed logits, best first."""
    places = np.flatnonzero(allowed)
    order = np.argsort(-logits[places], kind="stable")[:count]
    return places[order]
