"""WordPiece vocabularies: loading, training, and the tokenizer made of one."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator

import keras_hub
from tokenizers import Tokenizer
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from tokenizers import trainers
from tqdm import tqdm

from training.runs.user_error import UserError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# The number of known characters. Rarer ones are unknown: an alphabet of all of
# Unicode would leave no space for words. BERT's vocabulary has about as many.
_ALPHABET_SIZE = 1000
_WORDS_PER_LINE = 1000
# Longer words are unknown to the tokenizer, and the time of training grows with
# the square of their length.
_LONGEST_WORD = 100


def load_vocabulary(path: str) -> list[str]:
    """Reads a vocabulary file: one token a line, the line number its id."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            tokens = [line.rstrip() for line in file.read().split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UserError(
            f"the vocabulary {path!r} cannot be read ({reason}): pass a text "
            "file with one token a line"
        ) from error
    while tokens and not tokens[-1]:
        tokens.pop()
    missing = [token for token in SPECIAL_TOKENS if token not in tokens]
    if missing:
        raise UserError(
            f"the vocabulary {path!r} must contain {' '.join(SPECIAL_TOKENS)}, "
            f"but lacks {' '.join(missing)}: add a line for each"
        )
    twice = [token for token, count in Counter(tokens).items() if count > 1]
    if twice:
        raise UserError(
            f"the vocabulary {path!r} must contain each token once, but has "
            f"{len(twice)} more than once, {twice[0]!r} first: remove the "
            "second line of each"
        )
    words = (token for token in tokens if token.removeprefix("##").isalpha())
    cased = [word for word in words if word != word.lower()]
    # A few may be special tokens.
    if len(cased) > len(tokens) / 100:
        raise UserError(
            f"the vocabulary {path!r} must be uncased, because text is "
            f"lower-cased, but of its {len(tokens):,} tokens {len(cased):,} "
            f"have capital letters, such as {cased[-1]!r}: pass an uncased "
            "one, or go on from a cased model, which has its own tokenizer, by "
            "--init-from"
        )
    return tokens


def make_tokenizer(
    vocabulary: list[str], cls: type = keras_hub.models.BertTokenizer
) -> keras_hub.tokenizers.WordPieceTokenizer:
    """Returns the tokenizer of the uncased models, which strips accents."""
    return cls(vocabulary, lowercase=True, strip_accents=True)


def train_vocabulary(
    documents: Iterable[str], size: int, progress: bool = True
) -> list[str]:
    """Trains an uncased WordPiece vocabulary.

    The result depends only on the documents and the size. The documents are
    read once.
    """
    counts = _count_words(
        tqdm(documents, "Vocabulary", unit=" documents", disable=not progress)
    )
    if not counts:
        raise UserError(
            "the vocabulary needs a corpus with words, received none: pass "
            "another corpus"
        )
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    ranked = sorted(characters, key=lambda c: (-characters[c], c))
    alphabet = sorted(ranked[:_ALPHABET_SIZE])
    inner = {character for word in counts for character in word[1:]}
    pieces = [f"##{character}" for character in alphabet if character in inner]
    reserved = [*SPECIAL_TOKENS, *alphabet, *pieces]
    if len(reserved) > size:
        raise UserError(
            f"the vocabulary must contain at least the corpus's characters, "
            f"{len(reserved)} tokens, received size {size}: raise the size"
        )
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(
        _repeat_words(counts),
        trainers.WordPieceTrainer(
            vocab_size=size,
            # The trainer breaks ties by id, and gives ids to characters in a
            # random order unless they are in this list.
            special_tokens=reserved,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        ),
    )
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _count_words(documents: Iterable[str]) -> Counter:
    """Returns how often each word occurs, as BERT splits text into words."""
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for document in documents:
        text = normalizer.normalize_str(document)
        counts.update(
            word[:_LONGEST_WORD] for word, _ in splitter.pre_tokenize_str(text)
        )
    return counts


def _repeat_words(counts: Counter) -> Iterator[str]:
    """Yields lines in which each word occurs as often as it was counted."""
    for word, count in counts.items():
        for first in range(0, count, _WORDS_PER_LINE):
            times = min(_WORDS_PER_LINE, count - first)
            yield " ".join([word] * times)
