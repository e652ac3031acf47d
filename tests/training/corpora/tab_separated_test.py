import pytest

from training.corpora.tab_separated import find_broken_cell
from training.corpora.tab_separated import has_spreadsheet_quotes
from training.corpora.tab_separated import is_quoted
from training.corpora.tab_separated import unquote


@pytest.mark.parametrize(
    ("cell", "content"),
    [
        ('""', ""),
        ('"a"', "a"),
        ('"a ""b"""', 'a "b"'),
        ('""""', '"'),
        ('"', None),
        ('"a', None),
        ('a"', None),
        ('"a" b"', None),
        ('"""', None),
        ("a", None),
    ],
)
def test_cells_in_quotes(cell, content):
    assert is_quoted(cell) == (content is not None)
    assert unquote(cell) == (cell if content is None else content)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a", "b, c"], False),
        (["a", 'b "c"'], False),
        (['"a"', '"b" c'], False),
        (['"a ""b"""', "c, d"], True),
        (['"a ""b"""', '"c, d"', "e"], True),
        (['"a ""b"""', '"c, d"', "e, f"], None),
        (['"c, d"', "e"], None),
        (['"c, d"', "e, f"], False),
        ([*(f'"c, {n}"' for n in range(10)), "e"], True),
        ([*(f'"c, {n}"' for n in range(10)), '"e"', "f"], False),
        (['"a"', '"b"'], None),
        (['"a"', "b"], False),
    ],
)
def test_whose_quotes_they_are(cells, expected):
    found = has_spreadsheet_quotes(("text", "x"), [(c, "1") for c in cells])
    assert found is expected


def test_all_cells_in_quotes():
    rows = [('"a"', "1"), ('"b"', "2.5"), ("", "3")]
    assert has_spreadsheet_quotes(('"text"', '"x"'), rows)


def test_cells_with_tabs_and_line_ends():
    assert find_broken_cell(["a\tb", '"c', 'd"\te'], 2) == 1
    assert find_broken_cell(["a\tb", '"c\td"\te', "f"], 2) == 1
    assert find_broken_cell(["a", 'b\t"c', "", 'd"'], 2) == 1
    # A row that lacks a cell, and quotes that are text.
    assert find_broken_cell(['"a\tb', "c", '"d\te', 'f"\tg'], 2) is None
    assert find_broken_cell(['"a\tb', 'c"\td'], 2) is None
