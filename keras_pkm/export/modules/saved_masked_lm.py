"""A masked-LM model that fills the gaps in a text."""

import keras
import keras_hub
import tensorflow as tf

from keras_pkm.export.encoder import Encoder
from keras_pkm.export.modules.saved_preprocessor import SENTENCES
from keras_pkm.export.modules.signatures import add_memory_access
from keras_pkm.export.modules.signatures import list_variables
from keras_pkm.export.pack_inputs import pack
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import clean
from keras_pkm.text.tokenize import tokenize

# Number of tokens that are proposed for a gap.
_BEST = 5


class SavedMaskedLM(tf.train.Checkpoint):
    """The object that `hub.load` returns for a masked-LM model.

    It is called with strings that contain the tokenizer's mask token, such as
    `[MASK]`, at the gaps. It returns `tokens` and `scores` of shape `(batch,
    masks, 5)`, in the order of the masks, best first. If a sentence has fewer
    masks than others, the rest is filled with empty strings and zeros.
    """

    def __init__(
        self,
        encoder: Encoder,
        task: keras.Model,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
    ):
        super().__init__()
        list_variables(self, encoder, task)
        special = SpecialTokens.of(tokenizer)
        vocabulary = tf.constant(tokenizer.get_vocabulary())
        best = min(_BEST, len(tokenizer.get_vocabulary()))

        def inputs_of(sentences: tf.Tensor) -> dict[str, tf.Tensor]:
            parts = tf.strings.split(clean(sentences), sep=tokenizer.mask_token)
            ids = tokenize(tokenizer, parts.flat_values)
            # A mask follows each part of a sentence except the last.
            masks = tf.fill((ids.nrows(), 1), special.mask)
            ids = parts.with_values(tf.concat([ids, masks], 1))
            ids = ids.merge_dims(1, 2)[:, :-1]
            return pack([ids], sequence_length, special)

        @tf.function(input_signature=[SENTENCES], autograph=False)
        def call(sentences: tf.Tensor) -> dict[str, tf.Tensor]:
            count = tf.size(sentences)
            # Keras cannot gather from zero rows.
            no_rows = tf.cast(tf.equal(count, 0), "int32")
            sentences = tf.concat([sentences, tf.fill([no_rows], "")], 0)
            inputs = inputs_of(sentences)
            is_mask = inputs["input_word_ids"] == special.mask
            places = tf.RaggedTensor.from_value_rowids(
                tf.where(is_mask)[:, 1],
                tf.where(is_mask)[:, 0],
                tf.size(sentences, "int64"),
            )
            there = tf.ones_like(places, "bool").to_tensor(False)[..., None]
            features = encoder.features_of(inputs)
            features["mask_positions"] = tf.cast(places.to_tensor(), "int32")
            with encoder.portable_reads():
                logits = task(features, training=False)
            scores, ids = tf.math.top_k(
                tf.nn.softmax(tf.cast(logits, "float32")), best
            )
            return {
                "tokens": tf.where(there, tf.gather(vocabulary, ids), "")[
                    :count
                ],
                "scores": tf.where(there, scores, 0.0)[:count],
            }

        self.__call__ = call
        self.signatures_to_save = {"serving_default": call}
        add_memory_access(self, encoder, inputs_of, [SENTENCES])
