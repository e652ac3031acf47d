import json

import pytest

from training.runs.user_error import UserError
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
        (entry(answers=[("Eve", 0)]), "'Eve' .* received 'Ann' there. Correct"),
        (entry(answers=[("Ann", -12)]), "answer_start, -12"),
        (entry(answers=[("", 0)]), "the answer '' must"),
        (entry(answers=[]), "must have an answer, received none"),
        (entry(question=" "), "a question must not be empty"),
        (entry(question=None), "'question' must be a string, received 'None'"),
        (entry(question=7), "'question' must be a string, received '7'"),
        (entry(question="\ud800"), "'question' must be valid Unicode"),
        (entry(answers=[("Ann", True)]), "'answer_start' must be a whole num"),
        ({"id": "q1", "question": "?"}, "object with the entry 'answers'"),
        ({"id": "q1", "question": "?", "answers": [3]}, "the entry 'text'"),
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
        ("[]", "layout .there must be an object with the entry 'data'"),
        ('{"version": "1.1"}', "an object with the entry 'data'"),
        ('{"data": {}}', "'data' must be a list"),
        ("[" * 100_000, "layout .maximum recursion depth exceeded"),
        ('{"data": []}', "must contain questions, but has none"),
        ('{"data": [{"title": "a"}]}', "article 1: .* the entry 'paragraphs'"),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [1]}]}]}',
            "article 1, paragraph 1, question 1: there must be an object",
        ),
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


@pytest.mark.parametrize("number", [None, 7, ["q1"]])
def test_ids_that_are_no_strings(number, tmp_path):
    path = write_entries(tmp_path / "dev.json", entry(number=number))
    with pytest.raises(
        UserError, match="paragraph 1, question 1: 'id' must be"
    ):
        read_squad(path, BadRows())


def test_an_id_of_two_questions(tmp_path):
    path = write_entries(tmp_path / "dev.json", entry(), entry("Why?"))
    with pytest.raises(UserError, match="question q1: its id must be unique"):
        read_squad(path, BadRows())
    (kept,) = read_squad(path, BadRows(skip=True))
    assert kept.question == "Who?"


def test_what_is_left_out_is_said(tmp_path):
    path = write_entries(tmp_path / "dev.json", entry(number="q0"), entry(" "))
    bad_rows = BadRows(skip=True)
    content = json.loads(path.read_text())
    content["data"] += [None, {"paragraphs": [{"qas": []}]}]
    # Windows' editors write a byte order mark.
    path.write_text(json.dumps(content), encoding="utf-8-sig")
    assert [kept.id for kept in read_squad(path, bad_rows)] == ["q0"]
    places = [row.place for row in bad_rows.rows]
    assert places == ["question q1", "article 2", "article 3, paragraph 1"]

    path = write_entries(tmp_path / "none.json", entry(" "))
    with pytest.raises(UserError, match="all 1 were left out.*must not be emp"):
        read_squad(path, bad_rows)
