"""Reads SQuAD 1.1: its own JSON files, or TensorFlow Datasets."""

import dataclasses
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows

_OWN = "pass SQuAD 1.1's own JSON files"
_TFDS = "squad/v1.1"


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question about a paragraph."""

    # The id of the question.
    id: str
    question: str
    # The paragraph.
    context: str
    # All right answers, which are parts of the paragraph.
    answers: tuple[str, ...]
    # The position of each in the paragraph, in characters.
    answer_starts: tuple[int, ...]


def read_squad(
    path: pathlib.Path | str, bad_rows: BadRows
) -> list[SquadExample]:
    """Reads a file of SQuAD 1.1."""
    path = pathlib.Path(path)
    examples = {}
    for place, entry, context in _read_entries(path, bad_rows):
        try:
            example = _make_example(entry, context)
            if example.id in examples:
                raise _FaultError("its id must be unique, but is repeated")
            examples[example.id] = example
        except _FaultError as fault:
            bad_rows.add(path, place, str(fault))
    if not examples:
        raise bad_rows.nothing_left(path, "questions")
    return list(examples.values())


class _FaultError(Exception):
    """The fault of a part of a file."""


def _read_entries(
    path: pathlib.Path, bad_rows: BadRows
) -> Iterator[tuple[str, Any, str]]:
    """Yields each question's entry, with its position and its paragraph."""
    for a, article in enumerate(_read_articles(path), 1):
        place = f"article {a}"
        try:
            paragraphs = _get(article, "paragraphs", list)
        except _FaultError as fault:
            bad_rows.add(path, place, str(fault))
            continue
        for p, paragraph in enumerate(paragraphs, 1):
            place = f"article {a}, paragraph {p}"
            try:
                context = _get(paragraph, "context", str)
                entries = _get(paragraph, "qas", list)
            except _FaultError as fault:
                bad_rows.add(path, place, str(fault))
                continue
            for q, entry in enumerate(entries, 1):
                number = entry.get("id") if isinstance(entry, dict) else None
                known = isinstance(number, str)
                yield (
                    f"question {number}" if known else f"{place}, question {q}",
                    entry,
                    context,
                )


def _read_articles(path: pathlib.Path) -> list:
    try:
        text = path.read_text(encoding="utf-8-sig")
        return _get(json.loads(text), "data", list)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or f"not UTF-8, {error}"
        raise UserError(f"{path} cannot be read ({reason}): {_OWN}") from error
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}, line {error.lineno}, column {error.colno}: must be "
            f"JSON, received something else ({error.msg}), as in a file that "
            f"was not copied whole: {_OWN}"
        ) from error
    except (_FaultError, RecursionError) as error:
        raise UserError(
            f"{path} must have SQuAD 1.1's layout ({error}): {_OWN}"
        ) from error


def _make_example(entry: Any, context: str) -> SquadExample:
    answers = [
        (_get(answer, "text", str), _get(answer, "answer_start", int))
        for answer in _get(entry, "answers", list)
    ]
    example = SquadExample(
        id=_get(entry, "id", str),
        question=_get(entry, "question", str),
        context=context,
        answers=tuple(text for text, _ in answers),
        answer_starts=tuple(start for _, start in answers),
    )
    if reason := _fault(example):
        raise _FaultError(reason)
    return example


_KINDS = {list: "a list", str: "a string", int: "a whole number"}


def _get(container: Any, name: str, kind: type[Any]) -> Any:
    """Returns an entry of an object, and checks its type."""
    if not isinstance(container, dict) or name not in container:
        raise _FaultError(f"there must be an object with the entry '{name}'")
    value = container[name]
    if type(value) is not kind:
        raise _FaultError(
            f"'{name}' must be {_KINDS[kind]}, received {str(value)[:80]!r}"
        )
    if kind is str and not _is_unicode(value):
        raise _FaultError(f"'{name}' must be valid Unicode, received {value!r}")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _fault(example: SquadExample) -> str | None:
    """Returns the fault of an example, or None."""
    if not example.question.strip():
        return "a question must not be empty"
    if not example.answers:
        return (
            "a question must have an answer, received none (questions without "
            "one are SQuAD 2.0's)"
        )
    for answer, start in zip(example.answers, example.answer_starts):
        found = example.context[start : start + len(answer)]
        if not answer or start < 0 or found != answer:
            place = example.context.find(answer) if answer else -1
            hint = f"; it is at {place}" if place >= 0 else ""
            return (
                f"the answer {answer!r} must be in the context at its "
                f"answer_start, {start}, received {found!r} there{hint}"
            )
    return None


def place_of(source: str, split: str) -> str:
    """Returns a split's file, or its name in tfds, for errors."""
    if source == "tfds":
        return f"{_TFDS}, {split}"
    return str(pathlib.Path(source) / f"{split}-v1.1.json")


def load_squad(
    source: str, data_dir: str | None, bad_rows: BadRows
) -> dict[str, list[SquadExample]]:
    """Loads SQuAD 1.1."""
    if source != "tfds":
        return {
            split: read_squad(place_of(source, split), bad_rows)
            for split in ("train", "dev")
        }
    from training.corpora.tfds_examples import read_tfds_examples

    examples: dict[str, list[SquadExample]] = {"train": [], "dev": []}
    for name, split in (("train", "train"), ("dev", "validation")):
        for row in read_tfds_examples(_TFDS, split, data_dir):
            example = SquadExample(
                id=row["id"].decode(),
                question=row["question"].decode(),
                context=row["context"].decode(),
                answers=tuple(t.decode() for t in row["answers"]["text"]),
                answer_starts=tuple(map(int, row["answers"]["answer_start"])),
            )
            if reason := _fault(example):
                place = f"question {example.id}"
                bad_rows.add(place_of(source, name), place, reason)
            else:
                examples[name].append(example)
    return examples
