"""The special tokens of each kind of model, by their role."""

import dataclasses
from typing import Self

import keras_hub


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """The ids of tokens around and between texts, of padding and of masks.

    Attributes:
        start: The id of the first token: `[CLS]` or `<s>`.
        between: The ids between two texts.
        end: The id of the last token: `[SEP]` or `</s>`.
        padding: The id of padding after the last token.
        mask: The id of a masked token; -1 for models that have none.
        second_segment: The segment id of a second text and of its end token.
    """

    start: int
    between: tuple[int, ...]
    end: int
    padding: int
    mask: int
    second_segment: int

    @classmethod
    def of(cls, tokenizer: keras_hub.tokenizers.Tokenizer) -> Self:
        """Returns the special tokens of a keras-hub tokenizer's model."""
        is_bert = hasattr(tokenizer, "cls_token_id")
        return cls(
            start=tokenizer.start_token_id,
            between=(1 if is_bert else 2) * (tokenizer.end_token_id,),
            end=tokenizer.end_token_id,
            padding=tokenizer.pad_token_id,
            mask=getattr(tokenizer, "mask_token_id", -1),
            second_segment=int(is_bert),
        )

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids: padding, start, end and mask."""
        return self.padding, self.start, self.end, self.mask


def unknown_ids(tokenizer: keras_hub.tokenizers.Tokenizer) -> list[int]:
    """Returns the id of the token for unknown text, if there is one.

    Args:
        tokenizer: A BERT, DistilBERT or RoBERTa tokenizer of keras-hub.

    Returns:
        A list of one id, or an empty list.
    """
    vocabulary = tokenizer.get_vocabulary()
    names = [name for name in ("[UNK]", "<unk>") if name in vocabulary]
    return [tokenizer.token_to_id(name) for name in names]
