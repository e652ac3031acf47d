"""An encoder with TF Hub's API for text."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.export.encoder import INPUTS
from keras_pkm.export.encoder import Encoder
from keras_pkm.export.modules.signatures import add_memory_access
from keras_pkm.export.modules.signatures import list_variables


class SavedEncoder(tf.train.Checkpoint):
    """The object that `hub.load` returns for an encoder: TF Hub's API for text.

    It is called with the inputs, a dict of int32 tensors of shape `(batch,
    length)`, and `training`. Models with a masked-LM head also have the method
    `mlm`. It takes `masked_lm_positions` as a further input, and returns
    `mlm_logits` for these positions.
    """

    def __init__(self, encoder: Encoder, task: keras.Model | None = None):
        super().__init__()
        list_variables(self, encoder, encoder.backbone)

        specs = _specs(*INPUTS)
        # The other functions call its graphs, so that each is stored once.
        encode = _trace(lambda x, training: encoder(x, training), specs)

        def call(
            inputs: dict[str, tf.Tensor], training: bool = False
        ) -> dict[str, Any]:
            outputs = encode(inputs, training)
            del outputs["memory_access"]
            return {**outputs, "default": outputs["pooled_output"]}

        def serve(**inputs: tf.Tensor) -> dict[str, Any]:
            outputs = call(inputs)
            # Outputs of signatures must be tensors.
            del outputs["encoder_outputs"]
            return outputs

        self.__call__ = _trace(call, specs)
        if task is not None:

            def mlm(
                inputs: dict[str, tf.Tensor], training: bool = False
            ) -> dict[str, Any]:
                outputs = call(
                    {name: inputs[name] for name in INPUTS}, training
                )
                logits = task.masked_lm_head(
                    outputs["sequence_output"], inputs["masked_lm_positions"]
                )
                return {**outputs, "mlm_logits": tf.cast(logits, "float32")}

            self.mlm = tf.train.Checkpoint()
            list_variables(self.mlm, encoder, task)
            self.mlm.__call__ = _trace(
                mlm, _specs(*INPUTS, "masked_lm_positions")
            )
        self.signatures_to_save = {
            "serving_default": tf.function(
                serve, autograph=False
            ).get_concrete_function(**specs)
        }
        add_memory_access(
            self,
            encoder,
            lambda inputs: inputs,
            [specs],
            lambda inputs: encode(inputs, False),
        )


def _specs(*names: str) -> dict[str, tf.TensorSpec]:
    return {name: tf.TensorSpec((None, None), "int32", name) for name in names}


def _trace(
    function: Callable[..., dict[Any, Any]], specs: dict[str, tf.TensorSpec]
) -> Any:
    """Traces a function for both values of `training`."""
    traced = tf.function(function, autograph=False)
    for training in (False, True):
        traced.get_concrete_function(specs, training=training)
    return traced
