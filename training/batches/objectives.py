"""Training objectives: masked tokens, or the next token."""

import abc
import dataclasses
import pathlib
from typing import Any

import keras_hub
import numpy as np
import tensorflow as tf

from training.batches.masking import Masking
from training.batches.masking import mask_tokens
from training.batches.row_order import seeds
from training.batches.row_order import shuffled_rows
from training.batches.step_batches import step_batches
from training.corpora.corpus import Corpus
from training.corpora.packed_text import tokenize_and_pack
from training.corpora.row_layouts import RowLayout
from training.corpora.row_layouts import sentence_rows
from training.corpora.row_layouts import stream_rows


@dataclasses.dataclass(frozen=True)
class Objective(abc.ABC):
    """Cuts text into rows, and makes batches of them."""

    # The tokenizer of the text.
    tokenizer: keras_hub.tokenizers.Tokenizer
    # Number of tokens of a row.
    sequence_length: int

    @property
    @abc.abstractmethod
    def layout(self) -> RowLayout:
        """The function that cuts text into rows."""

    @property
    @abc.abstractmethod
    def special_token_ids(self) -> tuple[int, ...]:
        """Ids that are never predicted."""

    @property
    @abc.abstractmethod
    def filler_id(self) -> int:
        """The id of rows that fill up a batch, whose weights are 0."""

    @abc.abstractmethod
    def make_batch(self, token_ids: tf.Tensor, row_seeds: tf.Tensor) -> Any:
        """Returns features, labels and weights of packed rows.

        Args:
            token_ids: int32 of shape `(batch_size, sequence_length)`.
            row_seeds: A seed of each row.
        """

    def pack(
        self, corpus: Corpus, path: pathlib.Path, limit: int | None = None
    ) -> np.ndarray:
        """Writes the rows of a corpus to a file, and returns them."""
        return tokenize_and_pack(
            corpus,
            self.tokenizer,
            self.sequence_length,
            path,
            progress_label=corpus.name,
            limit=limit,
            layout=self.layout,
        )

    def training_batches(
        self,
        rows: np.ndarray,
        *,
        batch_size: int,
        seed: int,
        first_step: int = 0,
        num_steps: int | None = None,
    ) -> tf.data.Dataset:
        """Returns shuffled batches, `num_steps` of them or endless.

        The row at each position of the stream, and its seed, depend only on
        `seed` and the position. So a run that resumes at `first_step` gets
        exactly the batches of an uninterrupted one, and starts without delay.
        The last batch of an epoch is filled from the next epoch.
        """

        def batch(step: tf.Tensor) -> Any:
            chosen, places = shuffled_rows(len(rows), batch_size, seed, step)
            ids = _read(rows, chosen, batch_size)
            return self.make_batch(ids, seeds(seed, places))

        last_step = np.iinfo(np.int64).max // batch_size
        if num_steps is not None:
            last_step = first_step + num_steps
        return step_batches(tf.data.Dataset.range(first_step, last_step), batch)

    def held_out_batches(
        self, rows: np.ndarray, *, batch_size: int, seed: int
    ) -> tf.data.Dataset:
        """Returns each row once, in order; the same seed gives the same.

        The last batch is filled up with rows whose weights are 0. So nothing is
        dropped or counted twice, and all batches have the same shape, which the
        replicas of a `tf.distribute` strategy can share.
        """

        def batch(step: tf.Tensor) -> Any:
            places = step * batch_size + tf.range(batch_size, dtype=tf.int64)
            ids = _read(rows, tf.minimum(places, len(rows) - 1), batch_size)
            ids = tf.where(places[:, None] < len(rows), ids, self.filler_id)
            return self.make_batch(ids, seeds(seed, places))

        steps = tf.data.Dataset.range(-(-len(rows) // batch_size))
        return step_batches(steps, batch)

    def predictable(self, rows: np.ndarray) -> np.ndarray:
        """Returns the part of the rows that may be predicted."""
        return rows

    def count_bytes(self, rows: np.ndarray) -> int | None:
        """Returns the UTF-8 bytes of the rows, if all tokens are predicted."""
        return None


@dataclasses.dataclass(frozen=True)
class MaskedTokens(Objective):
    """Masked tokens are predicted from all other tokens, as by BERT.

    A batch has the inputs of the backbone, of shape `(batch_size,
    sequence_length)`, and `"mask_positions"` of shape `(batch_size,
    mask_selection_length)`, all int32; and the ids before masking and their
    weights, of the latter shape. Weight 0 marks unused entries.
    """

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

    @property
    def filler_id(self) -> int:
        return self.masking.pad_token_id

    def make_batch(
        self, token_ids: tf.Tensor, row_seeds: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        masked_ids, positions, label_ids, weights = mask_tokens(
            token_ids, row_seeds, self.masking
        )
        is_token = token_ids != self.masking.pad_token_id
        features = {
            "token_ids": masked_ids,
            "segment_ids": tf.zeros_like(token_ids),
            "padding_mask": tf.cast(is_token, tf.int32),
            "mask_positions": positions,
        }
        names = (*self.input_names, "mask_positions")
        return {name: features[name] for name in names}, label_ids, weights


@dataclasses.dataclass(frozen=True)
class NextTokens(Objective):
    """Each token is predicted from the tokens before it, as by GPT-2."""

    # The tokenizer has byte pairs.
    tokenizer: keras_hub.tokenizers.BytePairTokenizer

    @property
    def layout(self) -> RowLayout:
        return stream_rows

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        # The end of a document is predicted, too.
        return ()

    @property
    def filler_id(self) -> int:
        return self.tokenizer.end_token_id

    def make_batch(
        self, token_ids: tf.Tensor, row_seeds: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        return next_tokens(token_ids, self.tokenizer.end_token_id)

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


def next_tokens(
    token_ids: tf.Tensor, end_id: int
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Returns features, labels and weights of rows of running text.

    All have the shape of the rows: the features `"token_ids"` and
    `"padding_mask"`, int32; the token after each, and its weight, float32.
    Weight 0 marks the last token, which has no next one, and padding.
    """
    is_end = tf.cast(token_ids == end_id, tf.int32)
    to_the_last = tf.math.cumprod(is_end, axis=1, reverse=True)
    follows_an_end = tf.pad(is_end[:, :-1], [[0, 0], [1, 0]], constant_values=1)
    padding_mask = 1 - to_the_last * follows_an_end
    features = {"token_ids": token_ids, "padding_mask": padding_mask}
    labels = tf.pad(token_ids[:, 1:], [[0, 0], [0, 1]], constant_values=end_id)
    weights = tf.pad(padding_mask[:, 1:], [[0, 0], [0, 1]])
    return features, labels, tf.cast(weights, tf.float32)


def _read(packed: np.ndarray, rows: tf.Tensor, batch_size: int) -> tf.Tensor:
    """Reads rows when the graph runs; the graph does not contain the corpus."""
    token_ids = tf.numpy_function(
        lambda rows: np.asarray(packed[rows], np.int32),
        [rows],
        tf.int32,
        stateful=False,
    )
    return tf.ensure_shape(token_ids, [batch_size, packed.shape[1]])
