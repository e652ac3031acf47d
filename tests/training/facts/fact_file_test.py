import csv
import io

import pytest

from training.facts.fact_file import read_fact_file
from training.runs.user_error import UserError

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
        (b"a\tb\tc\n\xff\tb\tc\n", r"line 2: it must be UTF-8.*xff"),
        ("\n\n", "must contain facts, but has none"),
        ("a,b,c\nd,e,f\n", "line 1: .*not by commas"),
        ("a;b;c\n", "line 1: .*not by semicolons"),
        ('"a, b",c,"d ""e"""\n', "line 1: .*not by commas"),
        (LINES + "a\tb\tc\t\n", "line 4: .*received 4, since a tab ends the"),
        ("a\tb\tc\rd\te\tf\r", "line 1: .*line ends of old Macs"),
        (LINES + '"so\tb\tc\n', """line 4: a cell that begins.*'"so'"""),
        (LINES + 'a\tb\t"so" on\n', 'line 4: a cell.*write """so"" on"'),
        (LINES + 'a\tb\t"so"on""\n', "line 4: a cell that begins with a"),
        (LINES + 'a\tb\t"\n', "line 4: a cell that begins with a quote"),
        (LINES + 'a\t"b\nb"\tc\n', "line 4: .*tabs or line ends, not even"),
        (LINES + 'a\t"b\tb"\tc\n', "line 4: .*tabs or line ends, not even"),
        (LINES + 'a\tb\t""\n', "line 4: the value must not be empty"),
        (LINES + 'a\tb\t"\u00a0"\n', "line 4: the value must not be empty"),
        ("a\tb\tc\n".encode("utf-16-le"), "line 1: .*UTF-16"),
        ("a\tb\tc\n".encode("utf-16")[:-1], "damaged UTF-16"),
    ],
)
def test_mistakes(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_fact_file(tmp_path / "none.tsv")


FACTS = [
    ("Paris", "capital of", "France"),
    ('the "Heroes" album', "by", 'David "Ziggy" Bowie'),
    ('"Heroes"', "song, by", "Bowie, David"),
    ('5" disk', "size", "5 1/4 inches"),
    ('12"', "is", "one foot"),
]
DIALECTS = {
    "minimal": {},
    "all": {"quoting": csv.QUOTE_ALL},
    "Windows": {"lineterminator": "\r\n"},
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_spreadsheet_s_quotes_are_taken_off(tmp_path, dialect, encoding):
    file = io.StringIO()
    options = {"lineterminator": "\n", **DIALECTS[dialect]}
    writer = csv.writer(file, "excel-tab", **options)
    writer.writerows([("Subject", "Relation", "Value"), *FACTS])
    found = read(tmp_path, file.getvalue().encode(encoding))
    assert [(f.subject, f.relation, f.value) for f in found] == FACTS
    assert found[0].place.endswith("line 2")


def test_quotes_within_cells_are_text_and_empty_rows_are_skipped(tmp_path):
    found = read(tmp_path, '\t\t\n5" disk\tsize\ta "b"\n\u00a0\t\t\n')
    assert [(f.subject, f.value) for f in found] == [('5" disk', 'a "b"')]
    # A cell with a comma, as Excel writes it.
    (fact,) = read(tmp_path, 'a\tb\t"c, d "\n')
    assert fact.value == "c, d"
