"""A preprocessor with TF Hub's API for text."""

import keras_hub
import tensorflow as tf

from keras_pkm.export.pack_inputs import pack
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import clean
from keras_pkm.text.tokenize import tokenize

SENTENCES = tf.TensorSpec((None,), "string", "sentences")


class SavedPreprocessor(tf.train.Checkpoint):
    """The object that `hub.load` returns for a preprocessor: TF Hub's API.

    It is called with strings and returns an encoder's inputs. `tokenize`
    returns ragged ids; `bert_pack_inputs` turns the ids of one or two texts
    into inputs of any length. `tokenize.get_special_tokens_dict()` has the
    special ids.
    """

    def __init__(
        self, tokenizer: keras_hub.tokenizers.Tokenizer, sequence_length: int
    ):
        super().__init__()
        special = SpecialTokens.of(tokenizer)

        def to_ids(sentences: tf.Tensor) -> tf.RaggedTensor:
            return tokenize(tokenizer, clean(sentences))

        @tf.function(input_signature=[SENTENCES], autograph=False)
        def call(sentences: tf.Tensor) -> dict[str, tf.Tensor]:
            return pack([to_ids(sentences)], sequence_length, special)

        def bert_pack_inputs(
            inputs: list[tf.RaggedTensor],
            seq_length: int | tf.Tensor = sequence_length,
        ) -> dict[str, tf.Tensor]:
            flat = [
                ids.merge_dims(1, -1) if ids.ragged_rank > 1 else ids
                for ids in inputs
            ]
            return pack(flat, seq_length, special)

        self.__call__ = call
        self.tokenize = tf.train.Checkpoint()
        self.tokenize.__call__ = tf.function(
            to_ids, input_signature=[SENTENCES], autograph=False
        )
        self.tokenize.get_special_tokens_dict = tf.train.Checkpoint()
        self.tokenize.get_special_tokens_dict.__call__ = tf.function(
            lambda: {
                "vocab_size": tf.constant(tokenizer.vocabulary_size()),
                "start_of_sequence_id": tf.constant(special.start),
                "end_of_segment_id": tf.constant(special.end),
                "padding_id": tf.constant(special.padding),
                "mask_id": tf.constant(special.mask),
            },
            input_signature=[],
            autograph=False,
        )
        self.bert_pack_inputs = tf.train.Checkpoint()
        self.bert_pack_inputs.__call__ = tf.function(
            bert_pack_inputs, autograph=False
        )
        for dimensions in (2, 3):
            spec = tf.RaggedTensorSpec([None] * dimensions, "int32")
            for count in (1, 2):
                self.bert_pack_inputs.__call__.get_concrete_function(
                    [spec] * count, seq_length=tf.TensorSpec((), "int32")
                )
        self.signatures_to_save = {"serving_default": call}
