import json

import keras_hub
import pytest

from training.corpora.byte_pairs import SPECIAL_TOKENS
from training.corpora.byte_pairs import load_byte_pairs
from training.corpora.byte_pairs import train_byte_pairs
from training.corpora.offset_tokenizer import OffsetTokenizer
from training.corpora.tokenized_documents import tokenize_sentences
from training.runs.user_error import UserError

TEXT = (
    "The dog met a fox; \u201cWhy\u201d said the dog. It's a caf\u00e9\u2026 "
    "Well \U0001f98a!"
)
KIND = keras_hub.models.RobertaTokenizer


@pytest.fixture(scope="module", params=SPECIAL_TOKENS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind):
    return train_byte_pairs([TEXT] * 3, 300, kind, progress=False)


def test_trained_tokenizer(tokenizer, kind):
    assert isinstance(tokenizer, kind)
    assert 290 <= tokenizer.vocabulary_size() <= 300
    first = [tokenizer.id_to_token(number) for number in range(6)]
    assert set(SPECIAL_TOKENS[kind]) <= set(first)
    assert tokenizer.end_token_id != tokenizer.pad_token_id
    ids = tokenizer(TEXT)
    assert len(ids) < len(TEXT)
    assert tokenizer.detokenize(ids) == TEXT
    again = train_byte_pairs([TEXT] * 3, 300, kind, progress=False)
    assert again.vocabulary == tokenizer.vocabulary
    assert again.merges == tokenizer.merges


def test_sentences_of_a_line_are_the_line(tokenizer):
    (sentences,) = tokenize_sentences([f"{TEXT}\n{TEXT}"], tokenizer)
    ids = [token for sentence in sentences for token in sentence]
    assert ids == 2 * list(tokenizer(TEXT))
    (ids,) = OffsetTokenizer(tokenizer).ids([TEXT])
    assert ids == list(tokenizer(TEXT))


def test_files(tokenizer, kind, tmp_path):
    tokenizer.save_assets(str(tmp_path))
    loaded = load_byte_pairs(str(tmp_path / "vocabulary.json"), kind)
    assert list(loaded(TEXT)) == list(tokenizer(TEXT))
    merges = tmp_path / "merges.txt"
    merges.write_text(f"#version: 0.2\n{merges.read_text()}")
    loaded = load_byte_pairs(str(tmp_path / "vocabulary.json"), kind)
    assert list(loaded(TEXT)) == list(tokenizer(TEXT))


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        (None, "", "No such file"),
        ("{", "", "cannot be read"),
        ("[]", "", "must give ids to <s> <pad>"),
        ('{"a": 0}', "", "must give ids to <s> <pad>"),
        ({"a": 5, "b": 6}, "#version: 0.2\na b\n", "merges.txt, line 2: must"),
        ({"a": 5}, None, "with merges.txt beside it"),
    ],
)
def test_mistakes(tmp_path, vocabulary, merges, message):
    path = tmp_path / "vocabulary.json"
    if isinstance(vocabulary, dict):
        special = {token: i for i, token in enumerate(SPECIAL_TOKENS[KIND])}
        vocabulary = json.dumps({**special, **vocabulary})
    if vocabulary is not None:
        path.write_text(vocabulary)
    if merges is not None:
        (tmp_path / "merges.txt").write_text(merges)
    with pytest.raises(UserError, match=message):
        load_byte_pairs(str(path), KIND)


def test_size_has_place_for_all_bytes():
    with pytest.raises(UserError, match="at least all bytes, 261 tokens"):
        train_byte_pairs(["a"], 200, KIND, progress=False)


def test_long_words_are_trained_on_in_pieces():
    """Else training takes minutes: time grows with the square of the length."""
    trained = train_byte_pairs(["ab" * 100_000], 300, KIND)
    assert max(map(len, trained.get_vocabulary())) == 100
