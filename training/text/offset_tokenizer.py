"""Tokenizers that return the characters of each token.

keras-hub's tokenizers run in TensorFlow graphs and return only ids. The package
`tokenizers` returns the same ids for the same vocabulary, with their positions
in the text.
"""

import keras_hub
from tokenizers import NormalizedString
from tokenizers import PreTokenizedString
from tokenizers import Regex
from tokenizers import Tokenizer
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from tokenizers import processors

from keras_pkm.text.transformers_tokenizers import TransformersTokenizer
from training.runs.user_error import UserError

# keras-hub's patterns for the boundaries of words.
from keras_hub.src.tokenizers.word_piece_tokenizer import (  # isort: skip
    PUNCTUATION_AND_CJK_REGEX,
    PUNCTUATION_REGEX,
    WHITESPACE_REGEX,
)

# Offsets exclude the space that a token begins with.
_TRIM_OFFSETS = processors.ByteLevel(trim_offsets=True)


def make_offset_tokenizer(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> Tokenizer:
    """Returns a tokenizer with the same vocabulary that keeps offsets.

    Its `encode(text, add_special_tokens=False)` has `ids` and `offsets`: the
    first character of each token and the one after its last.
    """
    if isinstance(tokenizer, TransformersTokenizer):
        result = Tokenizer.from_str(tokenizer.library_tokenizer.to_str())
        if isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
            result.post_processor = _TRIM_OFFSETS
        return result
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        return _word_piece(tokenizer)
    if isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
        return _byte_pair(tokenizer)
    raise UserError(
        "the model must have a WordPiece or byte-pair tokenizer, received "
        f"{type(tokenizer).__name__}: use a BERT, DistilBERT or RoBERTa"
    )


def _word_piece(
    tokenizer: keras_hub.tokenizers.WordPieceTokenizer,
) -> Tokenizer:
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
    words_of_their_own = (
        PUNCTUATION_AND_CJK_REGEX
        if tokenizer.split_on_cjk
        else PUNCTUATION_REGEX
    )
    if tokenizer.strip_accents:
        result.normalizer = normalizers.Sequence(
            [normalizers.NFD(), normalizers.Replace(Regex(r"\p{Mn}"), "")]
        )
    # Here spaces include those beyond ASCII. TensorFlow's do not, and turn two
    # known words into an unknown one.
    words: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.Split(Regex(WHITESPACE_REGEX), "removed"),
        pre_tokenizers.Split(Regex(words_of_their_own), "isolated"),
    ]
    if tokenizer.lowercase:
        words.append(pre_tokenizers.PreTokenizer.custom(_FoldCase()))
    result.pre_tokenizer = pre_tokenizers.Sequence(words)
    return result


class _FoldCase:
    """Folds the case of words as keras-hub does.

    It is Unicode's NFKC_Casefold, word by word, while BERT only lowercases: ß
    becomes ss, ½ becomes 1⁄2, ς becomes σ.
    """

    def pre_tokenize(self, words: PreTokenizedString) -> None:
        words.normalize(self._fold)

    @staticmethod
    def _fold(word: NormalizedString) -> None:
        if not word.normalized.isascii():
            word.nfkc()
        word.lowercase()
        word.replace("ß", "ss")
        word.replace("ς", "σ")


def _byte_pair(tokenizer: keras_hub.tokenizers.BytePairTokenizer) -> Tokenizer:
    merges = [tuple(merge.split(" ")) for merge in tokenizer.merges]
    result = Tokenizer(models.BPE(dict(tokenizer.vocabulary), merges))
    result.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    result.post_processor = _TRIM_OFFSETS
    return result
