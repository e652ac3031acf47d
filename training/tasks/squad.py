"""Reads SQuAD 1.1: its own JSON files, or TensorFlow Datasets."""

import dataclasses
import json
import pathlib

from keras_pkm.runs.user_error import UserError
from training.tasks.bad_rows import BadRows

_OWN = "pass SQuAD 1.1's own JSON files"
_TFDS = "squad/v1.1"


@dataclasses.dataclass(frozen=True)
class SquadExample:
    """A question about a paragraph.

    Attributes:
        id: The question's.
        question: str.
        context: The paragraph.
        answers: All right answers, parts of the paragraph.
        answer_starts: Where they begin in it, in characters.
    """

    id: str
    question: str
    context: str
    answers: tuple[str, ...]
    answer_starts: tuple[int, ...]


def read_squad(path: pathlib.Path, bad_rows: BadRows) -> list[SquadExample]:
    """Reads a file of SQuAD 1.1.

    Args:
        path: The JSON file.
        bad_rows: takes questions that cannot be used.

    Raises:
        UserError: it cannot be read as SQuAD 1.1, or has no question.
    """
    path = pathlib.Path(path)
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or f"not UTF-8, {error}"
        raise UserError(f"{path} cannot be read ({reason}): {_OWN}") from error
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}, line {error.lineno}, column {error.colno}: must be "
            f"JSON, received something else ({error.msg}), as in a file that "
            f"was not copied whole: {_OWN}"
        ) from error
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{path} must hold an object with the entry 'data': {_OWN}"
        ) from error
    examples = []
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                for entry in paragraph["qas"]:
                    example = SquadExample(
                        id=entry["id"],
                        question=entry["question"],
                        context=context,
                        answers=tuple(a["text"] for a in entry["answers"]),
                        answer_starts=tuple(
                            a["answer_start"] for a in entry["answers"]
                        ),
                    )
                    if reason := _fault(example):
                        bad_rows.add(path, f"question {example.id}", reason)
                    else:
                        examples.append(example)
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{path} must have SQuAD 1.1's layout (data, paragraphs, context, "
            f"qas, id, question, answers, text, answer_start), after "
            f"{len(examples):,} questions received an entry without {error}: "
            f"{_OWN}"
        ) from error
    if not examples:
        raise UserError(f"{path} must hold questions, but has none: {_OWN}")
    return examples


def _fault(example):
    """What is wrong with an example, or None."""
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
    """Where a split is: its file, or what errors call it in tfds."""
    if source == "tfds":
        return f"{_TFDS}, {split}"
    return str(pathlib.Path(source) / f"{split}-v1.1.json")


def load_squad(
    source: str, data_dir: str | None, bad_rows: BadRows
) -> dict[str, list[SquadExample]]:
    """Loads SQuAD 1.1.

    Args:
        source: `"tfds"`, or a directory with `train-v1.1.json` and
            `dev-v1.1.json`.
        data_dir: directory of prepared TensorFlow Datasets, or None to
            download.
        bad_rows: takes questions that cannot be used.

    Returns:
        A dict with `"train"` and `"dev"`.

    Raises:
        UserError: a file is missing or cannot be used.
    """
    if source != "tfds":
        return {
            split: read_squad(place_of(source, split), bad_rows)
            for split in ("train", "dev")
        }
    from training.text.tfds_examples import read_tfds_examples

    examples = {"train": [], "dev": []}
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
