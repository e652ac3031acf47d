import sys
import unicodedata

import keras_hub

from training.text.offset_tokenizer import make_offset_tokenizer
from training.text.word_pieces import make_tokenizer

# Characters of which the Unicode tables of TensorFlow and `tokenizers` differ,
# besides those without a meaning yet: Hangul fillers, an Ahom vowel sign, new
# digits.
DISPUTED = "\u115f\u1160\u3164\uffa0\U0001171e" + "".join(
    map(chr, range(0x1FBF0, 0x1FBFA))
)


def test_splits_at_the_characters_at_which_keras_hub_does():
    words = ["0", "##0", "a", "##a", "s", "##s", "1", "##2", "\u2044", "-"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    theirs = make_tokenizer(
        [*special, *words], keras_hub.tokenizers.BertTokenizer
    )
    ours = make_offset_tokenizer(theirs)
    characters = [
        some
        for some in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(some) not in ("Cn", "Co", "Cs")
        and some not in DISPUTED
    ]
    texts = [f"0{some}0" for some in characters]
    found = [
        encoding.ids
        for encoding in ours.encode_batch(texts, add_special_tokens=False)
    ]
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
