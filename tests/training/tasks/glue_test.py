import csv
import functools
import io

import numpy as np
import pytest

from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.glue import GLUE
from training.tasks.glue import load_glue
from training.tasks.glue import read_tsv


@pytest.fixture
def glue(shared_data):
    return shared_data / "glue"


@pytest.mark.parametrize(
    "name, sizes, majority",
    [
        ("sst2", {"train": 64_464, "dev": 872}, 0.509),
        ("cola", {"train": 8_551, "dev": 1_043}, 0.691),
        (
            "mnli",
            {"train": 10_000, "dev_matched": 9_815, "dev_mismatched": 1_000},
            0.354,
        ),
        ("qqp", {"train": 8_907, "dev": 1_000}, 0.617),
        ("qnli", {"train": 8_755, "dev": 5_463}, 0.505),
    ],
)
def test_all_rows_of_glue_s_files(glue, name, sizes, majority):
    examples = load_glue(GLUE[name], str(glue), None, BadRows())
    assert {split: len(part) for split, part in examples.items()} == sizes
    for part in examples.values():
        assert all(len(texts) == len(part) for texts in part.texts)
        assert set(part.labels) == set(range(len(GLUE[name].labels)))
    first_dev = next(part for split, part in examples.items() if "dev" in split)
    assert first_dev.majority_share == pytest.approx(majority, abs=0.001)


def test_known_rows(glue):
    dev = read_tsv(glue / "CoLA" / "dev.tsv", GLUE["cola"], BadRows())
    assert dev.texts[0][0] == "The sailors rode the breeze clear of the rocks."
    assert dev.labels[0] == 1
    quoted = read_tsv(glue / "QQP" / "train.tsv", GLUE["qqp"], BadRows())
    assert any('"' in text for text in quoted.texts[0])
    task_directory = load_glue(
        GLUE["sst2"], str(glue / "SST-2"), None, BadRows()
    )
    assert task_directory["dev"].texts[0][0].startswith("it 's a charming")


def test_both_forms_of_mnli_s_dev_set_agree(glue):
    whole = read_tsv(glue / "MNLI/dev_matched.tsv", GLUE["mnli"], BadRows())
    sample = read_tsv(
        glue / "MNLI/original_columns_sample/dev_matched.tsv",
        GLUE["mnli"],
        BadRows(),
    )
    rows = set(zip(*whole.texts, whole.labels))
    assert len(sample) == 1000
    assert (
        sum(row not in rows for row in zip(*sample.texts, sample.labels)) == 0
    )


def write(tmp_path, text):
    path = tmp_path / "dev.tsv"
    path.write_bytes(text.encode())
    return path


def test_quotes_carriage_returns_and_a_byte_order_mark(tmp_path):
    text = '\ufeffsentence\tlabel\r\n"so\t1\r\na "b"\t0\r\nodd\rone\t1'
    examples = read_tsv(write(tmp_path, text), GLUE["sst2"], BadRows())
    assert examples.texts == (['"so', 'a "b"', "odd\rone"],)
    np.testing.assert_array_equal(examples.labels, [1, 0, 1])


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: the header must name sentence label, received"),
        ("text\tlabel\na\t1\n", "line 1: the header must name sentence, "),
        ("sentence\tlabel\n", "must contain examples, but has none"),
        ("sentence\tlabel\na\t1\nb\t2\n", "line 3: label must be one of 0 1"),
        ("sentence\tlabel\na\t\n", "line 2: label must be one of.*received ''"),
        ("sentence\tlabel\na\n", "line 2: a row must have 2 columns, rec.* 1"),
        (
            'sentence\tlabel\n"a\nb"\t1\n',
            "line 2: a row must.*not even in quotes",
        ),
        ("sentence\tlabel\na\tb\t1\n", "line 2: a row must have 2.*received 3"),
        ("sentence\tlabel\n \t1\n", "line 2: sentence must not be empty"),
        ("sentence\tlabel\n\na\t1\n", "line 2: a row must have 2 columns"),
    ],
)
def test_bad_files(tmp_path, text, message):
    with pytest.raises(UserError, match=f"dev.tsv.*{message}"):
        read_tsv(write(tmp_path, text), GLUE["sst2"], BadRows())


def test_bad_bytes_and_missing_files(tmp_path):
    path = tmp_path / "dev.tsv"
    with pytest.raises(UserError, match="dev.tsv.*No such file.*GLUE's own"):
        read_tsv(path, GLUE["sst2"], BadRows())
    path.write_bytes(b"sentence\tlabel\nna\xefve\t1\n")
    with pytest.raises(UserError, match="dev.tsv, line 2: a row must be UTF-8"):
        read_tsv(path, GLUE["sst2"], BadRows())
    with pytest.raises(UserError, match="all 1 were left out.*must be UTF-8"):
        read_tsv(path, GLUE["sst2"], BadRows(skip=True))


def test_skipped_rows_are_listed(tmp_path):
    text = "sentence\tlabel\na\t1\nb\t7\nc\nd\t0\n"
    bad_rows = BadRows(skip=True)
    examples = read_tsv(write(tmp_path, text), GLUE["sst2"], bad_rows)
    assert examples.texts == (["a", "d"],)
    assert [row.place for row in bad_rows.rows] == ["line 3", "line 4"]
    report = bad_rows.report(shown=1)
    assert report.startswith("2 bad rows were left out:\n- ")
    assert "line 3: label must be one of 0 1, received '7'" in report
    assert report.endswith("and 1 more")


TEXTS = ['he said "no", twice', "plain, so", '"quoted"', 'a "b"', '"', "x"]


def save(rows, **options):
    """A table as a spreadsheet writes it."""
    file = io.StringIO()
    csv.writer(file, "excel-tab", **options).writerows(rows)
    return file.getvalue()


def excel(rows):
    """Excel puts cells with commas in quotes, too."""
    return "".join(
        "\t".join(
            '"' + cell.replace('"', '""') + '"'
            if any(character in cell for character in '",')
            else cell
            for cell in row
        )
        + "\r\n"
        for row in rows
    )


@pytest.mark.parametrize(
    "write_table",
    [
        save,
        excel,
        functools.partial(save, quoting=csv.QUOTE_ALL),
        functools.partial(save, lineterminator="\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_spreadsheet_s_quotes_are_taken_off(tmp_path, write_table, encoding):
    rows = [("sentence", "label"), *((text, "1") for text in TEXTS)]
    path = tmp_path / "dev.tsv"
    path.write_bytes(write_table(rows).encode(encoding))
    assert read_tsv(path, GLUE["sst2"], BadRows()).texts == (TEXTS,)
    # CoLA has no header.
    rows = [("source", "1", "", text) for text in TEXTS]
    path.write_bytes(write_table(rows).encode(encoding))
    assert read_tsv(path, GLUE["cola"], BadRows()).texts == (TEXTS,)


def test_glue_s_own_quotes_are_text(tmp_path):
    """As they stand in MNLI, QNLI and QQP."""
    for texts in (
        ['"So," he said.', '"No, sir."', "plain"],
        ['"No, sir."', "well, plain"],
        ['"No sir."', "plain"],
        ['"', '"so" and "so"', 'a ""b"" c'],
    ):
        rows = "".join(f"{text}\t1\n" for text in texts)
        path = write(tmp_path, f"sentence\tlabel\n{rows}")
        assert read_tsv(path, GLUE["sst2"], BadRows()).texts == (texts,)
    question = '"Why ""INRI""?"'
    columns = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    path = write(tmp_path, f"{columns}1\t2\t3\t{question}\twhy?\t1\n")
    examples = read_tsv(path, GLUE["qqp"], BadRows())
    assert examples.texts == ([question], ["why?"])
    # A spreadsheet that puts all cells in quotes can be told.
    rows = [columns.strip().split("\t"), ["1", "2", "3", question, "why?", "1"]]
    path = write(tmp_path, save(rows, quoting=csv.QUOTE_ALL))
    examples = read_tsv(path, GLUE["qqp"], BadRows())
    assert examples.texts == ([question], ["why?"])


@pytest.mark.parametrize("name", list(GLUE))
def test_real_rows_saved_by_a_spreadsheet_are_the_same(glue, tmp_path, name):
    task = GLUE[name]
    source = glue / task.title / f"dev{task.dev[0]}.tsv"
    expected = read_tsv(source, task, BadRows())
    rows = [
        line.split("\t")
        for line in source.read_text(encoding="utf-8").split("\n")
        if line
    ]
    ways = [functools.partial(save, quoting=csv.QUOTE_ALL)]
    if not task.has_own_quotes:
        ways += [save, excel]
    for write_table in ways:
        path = write(tmp_path, write_table(rows))
        found = read_tsv(path, task, BadRows())
        assert found.texts == expected.texts
        np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize(
    "texts",
    [
        # Excel's, of a text with a comma; or a text in quotes.
        ['"so nice, really"', "plain"],
        ['"so ""nice"""', '"plain"', "other"],
        ['"so nice"', '"plain"'],
    ],
)
def test_quotes_of_unknown_origin_are_refused(tmp_path, texts):
    rows = "".join(f"{text}\t1\n" for text in texts)
    path = write(tmp_path, f"sentence\tlabel\n{rows}")
    for bad_rows in (BadRows(), BadRows(skip=True)):
        with pytest.raises(
            UserError, match="cannot be told whether cells in q"
        ):
            read_tsv(path, GLUE["sst2"], bad_rows)


@pytest.mark.parametrize(
    "text, message",
    [
        ("sentence,label\na,1\n", "line 1: .*not by commas"),
        ("sentence;label\na;1\n", "line 1: .*not by semicolons"),
        ("sentence\tlabel\na,1\n", "line 2: .*not by commas"),
        ("sentence\tlabel\na\t1\t\n", "line 2: .*since a tab ends the line"),
        ("sentence\tlabel\ra\t1\r", "line 1: .*line ends of old Macs"),
    ],
)
def test_causes_are_named(tmp_path, text, message):
    with pytest.raises(UserError, match=f"dev.tsv, {message}"):
        read_tsv(write(tmp_path, text), GLUE["sst2"], BadRows())


@pytest.mark.parametrize("cell", ['"a\nb"', '"a\n\n""b"""', '"a\tb"'])
@pytest.mark.parametrize("skip", [False, True])
def test_cells_with_line_ends_are_refused_even_if_bad_rows_are_skipped(
    tmp_path, cell, skip
):
    """Their parts would pass for texts."""
    text = f'sentence\tlabel\n"x ""y"""\t0\n{cell}\t1\nz\nz\t1\n'
    with pytest.raises(UserError, match="line 3: .*not even in quotes"):
        read_tsv(write(tmp_path, text), GLUE["sst2"], BadRows(skip=skip))


def test_utf_16_without_a_mark_is_refused(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_bytes("sentence\tlabel\na\t1\n".encode("utf-16-le"))
    with pytest.raises(UserError, match="dev.tsv, line 1: .*UTF-16"):
        read_tsv(path, GLUE["sst2"], BadRows())
