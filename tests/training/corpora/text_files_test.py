import errno
import logging

import pytest

from training.corpora.text_files import check_text_files
from training.corpora.text_files import find_text_files
from training.corpora.text_files import read_documents
from training.runs.user_error import UserError


def test_blank_lines_end_documents(write):
    path = write("\n\n one \n  two\n \t \n\nthree\n")
    assert list(read_documents([path])) == ["one\ntwo", "three"]


def test_documents_do_not_cross_files(write):
    paths = [write("one", "a.txt"), write("two", "b.txt")]
    assert list(read_documents(paths)) == ["one", "two"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_mark(write, end):
    path = write("\ufeff" + end.join(["one", "two", "", "three"]))
    check_text_files([path])
    assert list(read_documents([path])) == ["one\ntwo", "three"]


def test_a_file_without_blank_lines_is_cut(write):
    line = "word " * 20_000
    path = write(f"{line}\n" * 40)
    documents = list(read_documents([path]))
    assert max(map(len, documents)) < 2**20 + 2 * len(line)
    assert "\n".join(documents).split() == ["word"] * 20_000 * 40


def test_a_long_line_is_one_document(write):
    path = write("word " * 2_000_000)  # 10 MB
    check_text_files([path])
    (document,) = read_documents([path])
    assert len(document) == 9_999_999


def test_few_unreadable_bytes_are_replaced_and_warned_of_once(write, caplog):
    text = "a" * 500
    good = write(text, "good.txt")
    # A Latin-1 é, a NUL, and a character that the end of the file cuts.
    bad = write(text.encode() + b" \xe9 \0 \xe2\x82", "bad.txt")
    with caplog.at_level(logging.WARNING, "keras_pkm"):
        check_text_files([bad, good])
        documents = list(read_documents([bad]))
    (record,) = caplog.records
    assert record.getMessage().startswith("4 bytes")
    assert bad in record.getMessage() and good not in record.getMessage()
    assert documents == [f"{text} \ufffd \ufffd \ufffd\ufffd"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\xff" + b"a" * 200, 1),
        (b"a\n" * 100 + b"na\xefve\n \xff", 101),
        # Across chunks, and cut by the end of the file.
        (b"abc\n" * 2**19 + b"\xff", 2**19 + 1),
        (b"a" * 200 + b"\n\n\xe2\x82", 3),
    ],
)
def test_the_first_line_that_cannot_be_read_is_named(
    content, line, write, caplog
):
    path = write(content)
    with caplog.at_level(logging.WARNING, "keras_pkm"):
        check_text_files([path])
    assert f"{path} (first in line {line:,})" in caplog.text


def test_a_character_across_chunks_is_readable(write, caplog):
    path = write("a" * (2**20 - 1) + "é")
    check_text_files([path])
    assert not caplog.records


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b" \r\n\t\n", "is empty"),
        (b"ab\xff" * 100, "100 of its 300 bytes"),
        (b"\0" * 100, "100 of its 100 bytes"),
        ("text".encode("utf-16"), "must be UTF-8 text"),
    ],
)
def test_a_file_that_is_no_text_is_refused(write, content, rule):
    path = write(content)
    with pytest.raises(UserError, match=rule) as error:
        check_text_files([path])
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file(tmp_path):
    path = str(tmp_path / "none.txt")
    assert find_text_files(path) == (path,)
    with pytest.raises(UserError, match=r"none\.txt' does not exist"):
        check_text_files([path])


def test_folder(tmp_path):
    with pytest.raises(UserError, match="must be made of regular files"):
        check_text_files([str(tmp_path)])


def test_unreadable_file(write, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(
        "training.corpora.text_files.open", refuse, raising=False
    )
    with pytest.raises(UserError, match="cannot be read .Permission denied"):
        check_text_files([write("text")])


def test_find_text_files(write, tmp_path):
    b = write("b", "b.txt")
    a = write("a", "a.txt")
    comma = write("c", "c,d.txt")
    brackets = write("e", "e[1].txt")
    (tmp_path / "folder.txt").mkdir()
    assert find_text_files(f"{tmp_path}/?.txt") == (a, b)
    assert find_text_files(f"{b}, {tmp_path}/?.txt,{b}") == (b, a)
    assert find_text_files(comma) == (comma,)
    assert find_text_files(brackets) == (brackets,)


@pytest.mark.parametrize("spec", ["", " , "])
def test_no_file_named(spec):
    with pytest.raises(UserError, match="must name a text file"):
        find_text_files(spec)


def test_glob_without_match(tmp_path):
    with pytest.raises(UserError, match="matches none"):
        find_text_files(f"{tmp_path}/*.txt")
