"""A text classifier, from strings to the names of classes."""

from collections.abc import Sequence

import keras
import keras_hub
import tensorflow as tf

from keras_pkm.export.encoder import Encoder
from keras_pkm.export.modules.signatures import add_memory_access
from keras_pkm.export.modules.signatures import list_variables
from keras_pkm.export.pack_inputs import pack
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import clean
from keras_pkm.text.tokenize import tokenize


class SavedTextClassifier(tf.train.Checkpoint):
    """The object that `hub.load` returns for a text classifier.

    It is called with a dict of `text` and, for tasks on pairs, `text_pair`,
    strings of shape `(batch,)`. It returns `label`, the name of the best class;
    its `score`; and `classes` and `scores` of shape `(batch, classes)`. For
    tasks on single texts it can also be called with the strings alone.
    """

    def __init__(
        self,
        encoder: Encoder,
        task: keras.Model,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        labels: Sequence[str],
        num_texts: int,
    ):
        super().__init__()
        list_variables(self, encoder, task)
        special = SpecialTokens.of(tokenizer)
        classes = tf.constant(labels)

        def inputs_of(*texts: tf.Tensor) -> dict[str, tf.Tensor]:
            segments = [tokenize(tokenizer, clean(text)) for text in texts]
            return pack(segments, sequence_length, special)

        def call(*texts: tf.Tensor) -> dict[str, tf.Tensor]:
            features = encoder.features_of(inputs_of(*texts))
            with encoder.portable_reads():
                scores = tf.cast(task(features, training=False), "float32")
            if task.activation is keras.activations.linear:
                scores = tf.nn.softmax(scores)
            return {
                "label": tf.gather(classes, tf.argmax(scores, axis=1)),
                "score": tf.reduce_max(scores, axis=1),
                "classes": tf.tile(classes[None], (tf.shape(scores)[0], 1)),
                "scores": scores,
            }

        names = ("text", "text_pair")[:num_texts]
        specs = [tf.TensorSpec((None,), "string", name) for name in names]
        serve = tf.function(call, input_signature=specs, autograph=False)
        if num_texts == 1:
            self.__call__ = serve
        else:
            self.__call__ = tf.function(
                lambda inputs: call(*(inputs[name] for name in names)),
                input_signature=[dict(zip(names, specs))],
                autograph=False,
            )
        self.signatures_to_save = {"serving_default": serve}
        add_memory_access(self, encoder, inputs_of, specs)
