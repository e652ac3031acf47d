"""Tokenizers that say which characters a token stands for.

keras-hub's tokenizers run in TensorFlow graphs and give ids alone. The same
vocabulary in the package `tokenizers` gives the same ids, with their places.
"""

import keras_hub
from tokenizers import Regex
from tokenizers import Tokenizer
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from tokenizers import processors

from training.user_error import UserError

# As keras-hub splits words, but that it knows no space beyond ASCII: there, a
# no-break space makes one unknown word of two known ones.
_SPACES = r"[\p{Z}\p{Cc}\p{Cf}]"
_WORDS_OF_THEIR_OWN = (
    r"[!-/:-@\[-`{-~\p{P}\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}"
    r"\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}"
    r"\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)


def make_offset_tokenizer(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> Tokenizer:
    """Returns a tokenizer of the same vocabulary that keeps offsets.

    Its `encode(text, add_special_tokens=False)` has `ids` and `offsets`, the
    first character of each token and that after its last.

    Args:
        tokenizer: that of a BERT, DistilBERT or RoBERTa of keras-hub.

    Raises:
        UserError: it is of another kind.
    """
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        return _word_piece(tokenizer)
    if isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
        return _byte_pair(tokenizer)
    raise UserError(
        "the model must have a WordPiece or byte-pair tokenizer, received "
        f"{type(tokenizer).__name__}: use a BERT, DistilBERT or RoBERTa"
    )


def _word_piece(tokenizer):
    ids = {
        token: number for number, token in enumerate(tokenizer.get_vocabulary())
    }
    result = Tokenizer(
        models.WordPiece(
            ids,
            unk_token=tokenizer.oov_token,
            continuing_subword_prefix=tokenizer.suffix_indicator,
        )
    )
    if tokenizer.strip_accents:
        result.normalizer = normalizers.Sequence(
            [normalizers.NFD(), normalizers.Replace(Regex(r"\p{Mn}"), "")]
        )
    words = [
        pre_tokenizers.Split(Regex(_SPACES), "removed"),
        pre_tokenizers.Split(Regex(_WORDS_OF_THEIR_OWN), "isolated"),
    ]
    if tokenizer.lowercase:
        words.append(pre_tokenizers.PreTokenizer.custom(_FoldCase()))
    result.pre_tokenizer = pre_tokenizers.Sequence(words)
    return result


class _FoldCase:
    """Folds the case of words as keras-hub does.

    That is Unicode's NFKC_Casefold, word by word, where BERT only lowercases: ß
    becomes ss, ½ becomes 1⁄2, ς becomes σ.
    """

    def pre_tokenize(self, words):
        words.normalize(self._fold)

    @staticmethod
    def _fold(word):
        if not word.normalized.isascii():
            word.nfkc()
        word.lowercase()
        word.replace("ß", "ss")
        word.replace("ς", "σ")


def _byte_pair(tokenizer):
    merges = [tuple(merge.split(" ")) for merge in tokenizer.merges]
    result = Tokenizer(models.BPE(dict(tokenizer.vocabulary), merges))
    result.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    # Offsets leave out the space that a token begins with.
    result.post_processor = processors.ByteLevel(trim_offsets=True)
    return result
