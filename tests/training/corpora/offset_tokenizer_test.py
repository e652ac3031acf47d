import sys
import unicodedata

import keras_hub
import pytest

from keras_pkm.text.transformers_tokenizers import TransformersBertTokenizer
from training.corpora.offset_tokenizer import OffsetTokenizer
from training.corpora.word_pieces import make_tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.mark.slow
def test_splits_at_the_characters_at_which_keras_hub_does():
    words = ["0", "##0", "a", "##a", "s", "##s", "1", "##2", "\u2044", "-"]
    theirs = make_tokenizer(
        [*SPECIAL, *words], keras_hub.tokenizers.BertTokenizer
    )
    ours = OffsetTokenizer(theirs)
    characters = [
        some
        for some in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(some) not in ("Cn", "Co", "Cs")
    ]
    texts = [f"0{some}0" for some in characters]
    found = ours.ids(texts)
    assert ours.with_offsets(texts)[0].to_list() == found
    differing = [
        some
        for some, their_ids, our_ids in zip(characters, theirs(texts), found)
        if list(their_ids) != our_ids
    ]
    # keras-hub splits at ASCII's spaces alone.
    spaces = [
        some
        for some in characters
        if unicodedata.category(some).startswith("Z") and some != " "
    ]
    assert differing == spaces


@pytest.mark.parametrize(
    ("kind", "words", "offsets"),
    [
        (
            keras_hub.models.BertTokenizer,
            ["the", "fox", "dog"],
            [(0, 3), (4, 7), (8, 11)],
        ),
        # BERT drops NUL.
        pytest.param(
            *(TransformersBertTokenizer, ["the", "foxdog"], [(0, 3), (4, 11)]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_spaces_beyond_ascii_and_nul(kind, words, offsets):
    vocabulary = [*SPECIAL, "the", "fox", "dog", "foxdog"]
    tokenizer = OffsetTokenizer(kind(vocabulary, lowercase=True))
    texts = ["the\u3000fox\0dog", "the\u00a0fox\0dog"]
    expected = [[vocabulary.index(word) for word in words]] * 2
    assert tokenizer.ids(texts) == expected
    ids, starts, ends = tokenizer.with_offsets(texts)
    assert ids.to_list() == expected
    for row in zip(starts.to_list(), ends.to_list()):
        assert list(zip(*row)) == offsets


def test_what_graphs_cannot_do_the_library_does():
    """Here a token that takes the space before it."""
    vocabulary = [*SPECIAL, "the", "<fox>"]
    tokenizer = TransformersBertTokenizer(
        vocabulary, added_tokens=[{"content": "<fox>", "lstrip": True}]
    )
    ids, starts, ends = OffsetTokenizer(tokenizer).with_offsets(["the <fox>"])
    assert ids.to_list() == [[5, 6]] == tokenizer(["the <fox>"])
    assert starts.to_list() == [[0, 3]]
    assert ends.to_list() == [[3, 9]]
