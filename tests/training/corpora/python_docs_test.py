import pytest

from training.corpora.python_docs import _join_wrapped_lines
from training.corpora.python_docs import _module_docstrings
from training.corpora.python_docs import python_documents


@pytest.mark.slow
def test_documents_are_many_words_of_english():
    documents = python_documents()
    words = sum(len(document.split()) for document in documents)
    assert words > 250_000
    assert len(set(documents)) == len(documents)
    assert any("assert statements" in text.lower() for text in documents)
    # A docstring of the standard library, wrapped there.
    assert any(
        "JSON (JavaScript Object Notation) <https://json.org> is a subset of"
        in text
        for text in documents
    )


def test_documents_hold_no_blank_or_wrapped_lines():
    for document in python_documents():
        assert document
        for line in document.split("\n"):
            assert line == " ".join(line.split()) != ""


def test_join_wrapped_lines():
    text = "Heading\n*******\n\nOne paragraph,\nwrapped.\n\n\n  Another.\n"
    joined = "Heading\nOne paragraph, wrapped.\nAnother."
    assert _join_wrapped_lines(text) == joined


def test_module_docstrings(write):
    path = write('"""Module."""\nclass A:\n  """Class."""\n  x = "\\d"\n')
    assert _module_docstrings_of(path) == "Module.\n\nClass."
    assert _module_docstrings_of(write("def broken(:")) == ""
    assert _module_docstrings_of(write(b"x = '\0'")) == ""


def _module_docstrings_of(path):
    from pathlib import Path

    return _module_docstrings(Path(path))
