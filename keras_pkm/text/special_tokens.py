"""The special tokens of each kind of model, by what they are for."""

import dataclasses
from typing import Self

import keras_hub


@dataclasses.dataclass(frozen=True)
class SpecialTokens:
    """What stands around and between texts, and in the place of tokens.

    Attributes:
        start: The first token's id: `[CLS]` or `<s>`.
        between: The ids between two texts.
        end: The last token's id: `[SEP]` or `</s>`.
        padding: The id of what follows.
        mask: The id of a masked token.
        second_segment: The segment of a second text and what ends it.
    """

    start: int
    between: tuple[int, ...]
    end: int
    padding: int
    mask: int
    second_segment: int

    @classmethod
    def of(cls, tokenizer: keras_hub.tokenizers.Tokenizer) -> Self:
        """Those that a keras-hub tokenizer's model was trained with."""
        if hasattr(tokenizer, "cls_token_id"):
            return cls(
                start=tokenizer.cls_token_id,
                between=(tokenizer.sep_token_id,),
                end=tokenizer.sep_token_id,
                padding=tokenizer.pad_token_id,
                mask=tokenizer.mask_token_id,
                second_segment=1,
            )
        return cls(
            start=tokenizer.start_token_id,
            between=2 * (tokenizer.end_token_id,),
            end=tokenizer.end_token_id,
            padding=tokenizer.pad_token_id,
            mask=tokenizer.mask_token_id,
            second_segment=0,
        )

    @property
    def ids(self) -> tuple[int, ...]:
        """All of them."""
        return self.padding, self.start, self.end, self.mask


def unknown_ids(tokenizer: keras_hub.tokenizers.Tokenizer) -> list[int]:
    """Returns the id of the token for unknown text, if there is one.

    Args:
        tokenizer: That of a BERT, DistilBERT or RoBERTa of keras-hub.

    Returns:
        A list of one id, or of none.
    """
    vocabulary = tokenizer.get_vocabulary()
    names = [name for name in ("[UNK]", "<unk>") if name in vocabulary]
    return [tokenizer.token_to_id(name) for name in names]
