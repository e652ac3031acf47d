import json

import pytest

from keras_pkm.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.squad import load_squad
from training.tasks.squad import read_squad


def entry(question="Who?", answers=(("Ann", 0),), number="q1"):
    return {
        "id": number,
        "question": question,
        "answers": [
            {"text": text, "answer_start": start} for text, start in answers
        ],
    }


def write_entries(path, *entries, context="Ann met Bob."):
    paragraphs = [{"context": context, "qas": list(entries)}]
    data = {"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(data))
    return path


def test_the_real_files(shared_data):
    examples = load_squad(str(shared_data / "squad"), None, BadRows())
    assert len(examples["train"]) == 11_190
    assert len(examples["dev"]) == 10_570
    first = examples["dev"][0]
    assert first.id == "56be4db0acb8001400a502ec"
    assert first.question.startswith("Which NFL team represented the AFC")
    assert first.answers == ("Denver Broncos",) * 3
    assert len({example.id for example in examples["dev"]}) == 10_570


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (entry(answers=[("Bob", 7)]), "'Bob' .* at its answer_start, 7, rec.*"
         "' Bo' there; it is at 8"),
        (entry(answers=[("Eve", 0)]), "'Eve' .* received 'Ann' there. Mend"),
        (entry(answers=[("Ann", -12)]), "answer_start, -12"),
        (entry(answers=[("", 0)]), "the answer '' must"),
        (entry(answers=[]), "must have an answer, received none"),
        (entry(question=" "), "a question must not be empty"),
    ],
)  # fmt: skip
def test_faulty_questions(tmp_path, faulty, message):
    path = write_entries(tmp_path / "dev.json", entry(number="q0"), faulty)
    with pytest.raises(UserError, match=f"dev.json, question q1: .*{message}"):
        read_squad(path, BadRows())
    bad_rows = BadRows(skip=True)
    (kept,) = read_squad(path, bad_rows)
    assert kept.id == "q0"
    assert [row.place for row in bad_rows.rows] == ["question q1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"data": [\n{"title": "a', "line 2, column 11: must be JSON"),
        ("", "line 1, column 1: must be JSON.*pass SQuAD 1.1's own"),
        ("[]", "must hold an object with the entry 'data'"),
        ('{"version": "1.1"}', "must hold an object with the entry 'data'"),
        ('{"data": []}', "must hold questions, but has none"),
        ('{"data": [{"title": "a"}]}', "an entry without 'paragraphs'"),
    ],
)
def test_files_of_another_kind(tmp_path, text, message):
    path = tmp_path / "dev.json"
    path.write_text(text)
    with pytest.raises(UserError, match=f"dev.json.*{message}"):
        read_squad(path, BadRows())


def test_a_truncated_real_file(shared_data, tmp_path):
    whole = (shared_data / "squad" / "dev-v1.1.json").read_bytes()
    path = tmp_path / "dev-v1.1.json"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="line 1, column .*not copied whole"):
        read_squad(path, BadRows())


def test_missing_files(tmp_path):
    with pytest.raises(UserError, match="train-v1.1.json cannot be read"):
        load_squad(str(tmp_path), None, BadRows())


def test_a_missing_entry_is_named(tmp_path):
    faulty = entry()
    del faulty["answers"][0]["answer_start"]
    path = write_entries(tmp_path / "dev.json", entry(), faulty)
    with pytest.raises(
        UserError, match="after 1 questions received an entry without 'answer_s"
    ):
        read_squad(path, BadRows())
