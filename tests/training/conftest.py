from pathlib import Path

import pytest

from training.corpora.word_pieces import make_tokenizer
from training.corpora.word_pieces import train_vocabulary

_SHARED_DATA = Path(__file__).parents[2].parent / "shared" / "data"

SENTENCES = (
    "The quick brown fox jumped over the lazy dog.",
    "A café in the old town sells the best coffee.",
    "Nobody knows why the dog did not bark!",
    "Was it asleep?",
)


@pytest.fixture(scope="session")
def shared_data():
    if not _SHARED_DATA.is_dir():
        pytest.skip(f"the real data sets are not in {_SHARED_DATA}")
    return _SHARED_DATA


@pytest.fixture(scope="session")
def tokenizer():
    return make_tokenizer(train_vocabulary(SENTENCES, 120, progress=False))


@pytest.fixture
def write(tmp_path):
    """Writes bytes or text to a file and returns its path."""

    def write(content, name="corpus.txt"):
        path = tmp_path / name
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return str(path)

    return write
