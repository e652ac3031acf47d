"""Common parts of all exported models: variables and memory access."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_pkm.export.encoder import Encoder


def list_variables(
    module: tf.train.Checkpoint, encoder: Encoder, model: keras.Model
) -> None:
    """Adds the attributes through which loaders find a module's variables.

    They are plain `tf.Variable`s. If the module had Keras variables or a model
    as attributes, each variable would be stored twice.
    """
    module.variables = encoder.variables_of(model)
    module.trainable_variables = encoder.variables_of(model, trainable=True)
    module.regularization_losses = []


def add_memory_access(
    module: tf.train.Checkpoint,
    encoder: Encoder,
    inputs_of: Callable[..., dict[str, tf.Tensor]],
    input_signature: list[Any],
    encode: Callable[[dict[str, tf.Tensor]], dict[str, Any]] | None = None,
) -> None:
    """Adds `memory_access` to a module, as attribute and as signature.

    For each memory layer N it returns `slots_N` and `weights_N`, of shape
    `(inputs, length, heads, top_k)`, and `num_slots_N`, the number of slots.
    `is_token`, of shape `(inputs, length)`, is false at padding, where the
    weights are 0. The encoder, or `encode`, reads what `inputs_of` returns.
    The attribute `memory_values` has the variables of the value tables, by
    layer, and `memory_tags` those of their tags, if they have any.
    """
    if not encoder.tables:
        return

    @tf.function(input_signature=input_signature, autograph=False)
    def memory_access(*args: Any) -> dict[str, tf.Tensor]:
        inputs = inputs_of(*args)
        access = (encode or encoder)(inputs)["memory_access"]
        found = {"is_token": inputs["input_mask"] > 0}
        for number, (slots, weights) in access.items():
            found[f"slots_{number}"] = slots
            found[f"weights_{number}"] = weights
            found[f"num_slots_{number}"] = tf.constant(
                encoder.tables[encoder.table_of[number]].num_slots
            )
        return found

    # Patches find the tables through these attributes.
    module.memory_values = {
        str(number): table.values for number, table in encoder.tables.items()
    }
    module.memory_tags = {
        str(number): tags for number, tags in encoder.tags.items()
    }
    module.memory_access = memory_access
    module.signatures_to_save["memory_access"] = memory_access
