"""Training objectives: masked tokens, or the next token."""

import dataclasses
from typing import Protocol

import keras_hub
import numpy as np
import tensorflow as tf

from training.batches import causal_lm
from training.batches import masked_lm
from training.batches.masking import Masking
from training.batches.model_inputs import keep_inputs
from training.corpora.row_layouts import RowLayout
from training.corpora.row_layouts import sentence_rows
from training.corpora.row_layouts import stream_rows


class Objective(Protocol):
    """Cuts text into rows, and makes batches of them.

    Attributes:
        tokenizer: The tokenizer of the text.
        sequence_length: Number of tokens of a row.
        layout: The function that cuts text into rows.
        special_token_ids: Ids that are never predicted.
    """

    @property
    def tokenizer(self) -> keras_hub.tokenizers.Tokenizer: ...

    @property
    def sequence_length(self) -> int: ...

    @property
    def layout(self) -> RowLayout: ...

    @property
    def special_token_ids(self) -> tuple[int, ...]: ...

    def training_batches(
        self,
        rows: np.ndarray,
        *,
        batch_size: int,
        seed: int,
        first_step: int = 0,
        num_steps: int | None = None,
    ) -> tf.data.Dataset:
        """Returns shuffled batches, `num_steps` of them or endless."""

    def held_out_batches(
        self, rows: np.ndarray, *, batch_size: int, seed: int
    ) -> tf.data.Dataset:
        """Returns each row once; the same seed gives the same batches."""

    def predictable(self, rows: np.ndarray) -> np.ndarray:
        """Returns the part of the rows that may be predicted."""

    def count_bytes(self, rows: np.ndarray) -> int | None:
        """Returns the UTF-8 bytes of the rows, if all tokens are predicted."""


@dataclasses.dataclass(frozen=True)
class MaskedTokens:
    """Masked tokens are predicted from all other tokens, as by BERT."""

    # The tokenizer of the text.
    tokenizer: keras_hub.tokenizers.Tokenizer
    # Number of tokens of a row.
    sequence_length: int
    # The settings of the masks.
    masking: Masking
    # The features that the model's backbone takes.
    input_names: tuple[str, ...]

    @property
    def layout(self) -> RowLayout:
        return sentence_rows

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        return self.masking.special_token_ids

    def training_batches(
        self,
        rows: np.ndarray,
        *,
        batch_size: int,
        seed: int,
        first_step: int = 0,
        num_steps: int | None = None,
    ) -> tf.data.Dataset:
        batches = masked_lm.training_batches(
            rows,
            batch_size=batch_size,
            seed=seed,
            masking=self.masking,
            first_step=first_step,
            num_steps=num_steps,
        )
        return keep_inputs((*self.input_names, "mask_positions"), batches)

    def held_out_batches(
        self, rows: np.ndarray, *, batch_size: int, seed: int
    ) -> tf.data.Dataset:
        batches = masked_lm.held_out_batches(
            rows, batch_size=batch_size, seed=seed, masking=self.masking
        )
        return keep_inputs((*self.input_names, "mask_positions"), batches)

    def predictable(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def count_bytes(self, rows: np.ndarray) -> None:
        return None


@dataclasses.dataclass(frozen=True)
class NextTokens:
    """Each token is predicted from the tokens before it, as by GPT-2."""

    # The byte-pair tokenizer of the text.
    tokenizer: keras_hub.tokenizers.BytePairTokenizer
    # Number of tokens of a row.
    sequence_length: int

    @property
    def layout(self) -> RowLayout:
        return stream_rows

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        # The end of a document is predicted, too.
        return ()

    def training_batches(
        self,
        rows: np.ndarray,
        *,
        batch_size: int,
        seed: int,
        first_step: int = 0,
        num_steps: int | None = None,
    ) -> tf.data.Dataset:
        return causal_lm.training_batches(
            rows,
            batch_size=batch_size,
            seed=seed,
            end_id=self.tokenizer.end_token_id,
            first_step=first_step,
            num_steps=num_steps,
        )

    def held_out_batches(
        self, rows: np.ndarray, *, batch_size: int, seed: int
    ) -> tf.data.Dataset:
        # They do not depend on the seed.
        return causal_lm.held_out_batches(
            rows, batch_size=batch_size, end_id=self.tokenizer.end_token_id
        )

    def predictable(self, rows: np.ndarray) -> np.ndarray:
        # A row begins with the start token.
        return rows[:, 1:]

    def count_bytes(self, rows: np.ndarray) -> int:
        sizes = np.zeros(self.tokenizer.vocabulary_size(), np.int64)
        for token, number in self.tokenizer.vocabulary.items():
            # Each byte is written as one character.
            sizes[number] = len(token)
        sizes[self.tokenizer.special_token_ids] = 0
        return int(sizes[self.predictable(rows)].sum())
