"""Packs tokens into an encoder's inputs, with TF Hub's names."""

from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text as tf_text

from keras_pkm.text.special_tokens import SpecialTokens


def pack(
    segments: Sequence[tf.RaggedTensor],
    sequence_length: int | tf.Tensor,
    special: SpecialTokens,
) -> dict[str, tf.Tensor]:
    """Lays out one or two texts, as keras-hub's preprocessors do.

    If they are too long together, tokens of the two texts are kept in turn
    until the input is full.
    """
    room = sequence_length - 2 - len(special.between) * (len(segments) - 1)
    segments = tf_text.RoundRobinTrimmer(room).trim(segments)
    count = segments[0].nrows()
    pieces = [_repeat([special.start], count)]
    types = [_repeat([0], count)]
    for number, segment in enumerate(segments):
        segment_type = special.second_segment if number else 0
        if number:
            # Tokens between two texts belong to the first one.
            pieces.append(_repeat(special.between, count))
            types.append(_repeat([0] * len(special.between), count))
        pieces.append(segment)
        types.append(tf.ones_like(segment) * segment_type)
    pieces.append(_repeat([special.end], count))
    types.append(_repeat([segment_type], count))
    ids = tf.concat(pieces, 1)
    inputs = {
        "input_word_ids": (ids, special.padding),
        "input_mask": (tf.ones_like(ids), 0),
        "input_type_ids": (tf.concat(types, 1), 0),
    }
    return {
        name: tf_text.pad_model_inputs(ragged, sequence_length, padding)[0]
        for name, (ragged, padding) in inputs.items()
    }


def _repeat(ids: Sequence[int], count: tf.Tensor) -> tf.RaggedTensor:
    """Ragged rows with the same ids in each."""
    row = tf.constant(ids, "int32")
    return tf.RaggedTensor.from_tensor(
        tf.tile(row[None], (tf.cast(count, "int32"), 1))
    )
