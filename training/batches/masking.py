"""BERT's masking of a sequence, as a pure function of the sequence and a seed.

keras-hub's `MaskedLMMaskGenerator` does the same, but has its own random state,
so that a run could not resume at a given step.
"""

import dataclasses
import math

import keras_hub
import tensorflow as tf

from keras_pkm.text.special_tokens import SpecialTokens


@dataclasses.dataclass(frozen=True)
class Masking:
    """The settings of `mask_tokens`."""

    vocabulary_size: int
    mask_token_id: int
    pad_token_id: int
    special_token_ids: tuple[int, ...]
    mask_selection_length: int
    mask_selection_rate: float = 0.15
    mask_token_rate: float = 0.8
    random_token_rate: float = 0.1

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        mask_selection_rate: float = 0.15,
    ) -> "Masking":
        """Returns BERT's masking, long enough for all selected positions."""
        special = SpecialTokens.of(tokenizer)
        return cls(
            vocabulary_size=tokenizer.vocabulary_size(),
            mask_token_id=special.mask,
            pad_token_id=special.padding,
            special_token_ids=special.ids,
            mask_selection_length=math.ceil(
                mask_selection_rate * (sequence_length - 2)
            ),
            mask_selection_rate=mask_selection_rate,
        )


def mask_tokens(
    token_ids: tf.Tensor, seeds: tf.Tensor, masking: Masking
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Selects positions of each sequence and replaces most of their ids.

    If a sequence has n ids that are not special, `ceil(mask_selection_rate ·
    n)` of them are selected, but at most `mask_selection_length`. Each is
    replaced by `[MASK]`, replaced by a random id, or kept, with the rates of
    `masking`. `keras_hub.layers.MaskedLMMaskGenerator` does the same.
    """
    length = tf.shape(token_ids)[1]
    noise = tf.map_fn(
        lambda seed: tf.random.stateless_uniform([3, length], seed),
        seeds,
        fn_output_signature=tf.float32,
    )  # (batch, 3, length)
    order_noise, kind_noise, id_noise = tf.unstack(noise, num=3, axis=1)

    special = tf.constant(masking.special_token_ids, token_ids.dtype)
    selectable = tf.reduce_all(token_ids[..., None] != special, axis=-1)
    num_selectable = tf.reduce_sum(tf.cast(selectable, tf.float32), axis=-1)
    num_selected = tf.minimum(
        tf.math.ceil(num_selectable * masking.mask_selection_rate),
        masking.mask_selection_length,
    )
    # Special positions get a noise of 2, and so rank after all others.
    order = tf.argsort(tf.where(selectable, order_noise, 2.0))
    ranks = tf.cast(tf.argsort(order), tf.float32)
    selected = ranks < num_selected[:, None]  # (batch, length)

    random_ids = tf.cast(id_noise * masking.vocabulary_size, token_ids.dtype)
    becomes_mask = kind_noise < masking.mask_token_rate
    stays = kind_noise >= masking.mask_token_rate + masking.random_token_rate
    replaced = tf.where(becomes_mask, masking.mask_token_id, random_ids)
    masked_ids = tf.where(selected & ~stays, replaced, token_ids)

    # Unselected positions are set past the end, so that they sort last.
    positions = tf.sort(tf.where(selected, tf.range(length), length))
    width = masking.mask_selection_length
    positions = tf.pad(positions, [[0, 0], [0, width]], constant_values=length)
    positions = positions[:, :width]
    chosen = positions < length
    positions = tf.where(chosen, positions, 0)
    label_ids = tf.gather(token_ids, positions, batch_dims=1)
    label_ids = tf.where(chosen, label_ids, 0)
    return masked_ids, positions, label_ids, tf.cast(chosen, tf.float32)
