import pytest

from keras_pkm.runs.user_error import UserError
from training.facts.fact_file import read_fact_file

LINES = "Paris\tcapital of\tFrance\n\nOslo\tcapital of\tNorway \r\n"


def read(tmp_path, text):
    path = tmp_path / "facts.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_fact_file(path)


@pytest.mark.parametrize("header", ["", "Subject\trelation\tvalue\n", "\ufeff"])
def test_facts(tmp_path, header):
    found = read(tmp_path, header + LINES + LINES)
    assert [(f.subject, f.relation, f.value) for f in found] == [
        ("Paris", "capital of", "France"),
        ("Oslo", "capital of", "Norway"),
    ]
    first = 1 + header.count("\n")
    assert found[0].place == f"{tmp_path / 'facts.tsv'}, line {first}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINES + "a\tb", "line 4: a fact must have three columns.*received 2"),
        (LINES + "a\tb\t \n", "line 4: the value must not be empty"),
        (
            LINES + "Oslo\tcapital of\tSweden\n",
            "line 4: .*'capital of' of 'Oslo' is 'Sweden' here, and 'Norway' "
            "in .*line 3",
        ),
        (b"a\tb\tc\n\xff\tb\tc\n", r"line 2: facts must be UTF-8.*xff"),
        ("\n\n", "must contain facts, but has none"),
    ],
)
def test_mistakes(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_fact_file(tmp_path / "none.tsv")
