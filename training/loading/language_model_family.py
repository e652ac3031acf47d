"""One kind of language model, and how its text is tokenized."""

import dataclasses
from collections.abc import Iterable

import keras_hub

from training.text.byte_pairs import load_byte_pairs
from training.text.byte_pairs import train_byte_pairs
from training.text.word_pieces import load_vocabulary
from training.text.word_pieces import make_tokenizer
from training.text.word_pieces import train_vocabulary


@dataclasses.dataclass(frozen=True)
class LanguageModelFamily:
    """The classes of one kind of model, and how its text is tokenized."""

    # Its name.
    title: str
    # The backbone of keras-hub.
    plain: type
    # Turns text into ids.
    tokenizer: type

    @property
    def has_byte_pairs(self) -> bool:
        """Whether its tokens are byte pairs, not word pieces."""
        return issubclass(
            self.tokenizer, keras_hub.tokenizers.BytePairTokenizer
        )

    def load_tokenizer(self, path: str) -> keras_hub.tokenizers.Tokenizer:
        """Makes a tokenizer of a vocabulary file."""
        if self.has_byte_pairs:
            return load_byte_pairs(path, self.tokenizer)
        return make_tokenizer(load_vocabulary(path), self.tokenizer)

    def train_tokenizer(
        self, documents: Iterable[str], size: int
    ) -> keras_hub.tokenizers.Tokenizer:
        """Makes a tokenizer of `size` tokens for the documents."""
        if self.has_byte_pairs:
            return train_byte_pairs(documents, size, self.tokenizer)
        return make_tokenizer(train_vocabulary(documents, size), self.tokenizer)
