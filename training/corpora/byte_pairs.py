"""Byte-pair vocabularies: loading, training, and the tokenizer made of one."""

import json
import pathlib
from collections.abc import Iterable

import keras_hub
from tokenizers import Regex
from tokenizers import Tokenizer
from tokenizers import models
from tokenizers import pre_tokenizers
from tokenizers import trainers
from tqdm import tqdm

from training.runs.user_error import UserError

# Longer words are split for training, whose time grows with the square of their
# length.
_PIECES = Regex(".{1,100}")

SPECIAL_TOKENS = {
    keras_hub.models.RobertaTokenizer: (
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
    ),
    keras_hub.models.GPT2Tokenizer: ("<|endoftext|>",),
    keras_hub.models.GPTNeoXTokenizer: ("<|endoftext|>",),
    keras_hub.models.OPTTokenizer: ("<pad>", "</s>"),
}
# GPT-2's tokenizer pads with id 0. If that were the end token, generation would
# mistake padding for the end of the text.
_PADDING = {
    keras_hub.models.GPT2Tokenizer: ("<|pad|>",),
    keras_hub.models.GPTNeoXTokenizer: ("<|pad|>",),
}


def load_byte_pairs(
    path: str | pathlib.Path,
    kind: type[keras_hub.tokenizers.BytePairTokenizer],
) -> keras_hub.tokenizers.BytePairTokenizer:
    """Reads a JSON file of tokens and their ids, and `merges.txt` beside it."""
    path = pathlib.Path(path)
    merges_path = path.with_name("merges.txt")
    try:
        vocabulary = json.loads(path.read_text(encoding="utf-8-sig"))
        merges = merges_path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, RecursionError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"the vocabulary '{path}' cannot be read ({reason}): pass a JSON "
            "file of tokens and their ids, with merges.txt beside it"
        ) from error
    if not isinstance(vocabulary, dict) or any(
        token not in vocabulary for token in SPECIAL_TOKENS[kind]
    ):
        raise UserError(
            f"the vocabulary '{path}' must give ids to "
            f"{' '.join(SPECIAL_TOKENS[kind])}: add them, or use another one"
        )
    first = 1 if merges and merges[0].startswith("#version") else 0
    for number, line in enumerate(merges[first:], start=first + 1):
        parts = line.split(" ")
        if len(parts) != 2 or "".join(parts) not in vocabulary:
            raise UserError(
                f"{merges_path}, line {number}: must be two parts of a token "
                f"of '{path.name}', received {line!r}: use the two files that "
                "belong together"
            )
    return kind(vocabulary, merges[first:])


def train_byte_pairs(
    documents: Iterable[str],
    size: int,
    kind: type[keras_hub.tokenizers.BytePairTokenizer],
    progress: bool = True,
) -> keras_hub.tokenizers.BytePairTokenizer:
    """Trains a byte-pair vocabulary that keeps case, as for RoBERTa and GPT-2.

    The documents are read once.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = [*_PADDING.get(kind, ()), *SPECIAL_TOKENS[kind]]
    least = len(alphabet) + len(special)
    if size < least:
        raise UserError(
            f"the vocabulary must contain at least all bytes, {least} tokens, "
            f"received size {size}: raise the size"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Split(_PIECES, "isolated"),
        ]
    )
    tokenizer.train_from_iterator(
        tqdm(documents, "Vocabulary", unit=" documents", disable=not progress),
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=special,
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    model = json.loads(tokenizer.to_str())["model"]
    merges = [" ".join(merge) for merge in model["merges"]]
    return kind(model["vocab"], merges)
