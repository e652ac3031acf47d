"""An encoder as a function of tensors, in portable graphs."""

import contextlib
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from keras import ops

from keras_pkm.export.value_tables import ValueTable
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memories import tables
from keras_pkm.models.families import find_task_class
from keras_pkm.ops import portable_reads
from keras_pkm.ops.tensorflow.replicas import components

# TF Hub's names of the inputs, and keras-hub's.
INPUTS = {
    "input_word_ids": "token_ids",
    "input_mask": "padding_mask",
    "input_type_ids": "segment_ids",
}


class Encoder:
    """A backbone with portable graphs that read `ValueTable`s.

    Attributes:
        tables: dict, from the number of a memory's layer, counted from 1,
            to its `ValueTable`; the lowest number if several memories share
            it.
        tags: dict, likewise, to the `tf.Variable` of the tags of tables
            that have any.
        table_of: dict, from the number of each memory's layer to the number
            of the table that it reads.
    """

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        dtype: str = "float32",
        kept: dict[int, np.ndarray] | None = None,
    ):
        memory_outputs = getattr(backbone, "memory_outputs", {})
        self.backbone = backbone
        self._values: dict[int, ValueTable] = {}
        self.tables: dict[int, ValueTable] = {}
        self.tags: dict[int, tf.Variable] = {}
        readers = memories(backbone)
        for number, layer in tables(backbone).items():
            # A model made under `tf.distribute` has the same on each replica.
            replicas = components(layer.values)
            table = ValueTable(
                replicas[0],
                dtype,
                (kept or {}).get(number),
                readers[number].unread_row(layer.value_dim),
            )
            self.tables[number] = table
            self._values |= {id(values): table for values in replicas}
            if layer.tags is not None:
                self.tags[number] = components(layer.tags)[0]
        numbers = {id(layer): n for n, layer in tables(backbone).items()}
        self.table_of = {
            number: numbers[id(memory.table)]
            for number, memory in memories(backbone).items()
        }
        outputs = backbone.output
        if not isinstance(outputs, dict):
            outputs = {
                "sequence_output": outputs,
                "pooled_output": _pooled(backbone, outputs),
            }
        self._model = keras.Model(
            backbone.inputs,
            {
                **outputs,
                "encoder_outputs": _block_outputs(backbone),
                "memory_access": {
                    str(number): list(access)
                    for number, access in memory_outputs.items()
                },
            },
        )

    def __call__(
        self, inputs: dict[str, tf.Tensor], training: bool = False
    ) -> dict[str, Any]:
        """Encodes tokens."""
        with self.portable_reads(training):
            outputs = self._model(self.features_of(inputs), training=training)
        access = outputs.pop("memory_access")
        outputs = tf.nest.map_structure(
            lambda tensor: tf.cast(tensor, "float32"), outputs
        )
        outputs["memory_access"] = {
            int(number): tuple(pair) for number, pair in access.items()
        }
        return outputs

    def features_of(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The backbone's inputs, by its own names."""
        return {
            ours: inputs[theirs]
            for theirs, ours in INPUTS.items()
            if ours in self.backbone.input
        }

    def portable_reads(
        self, training: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        """A context in which graphs are portable and read `tables`."""
        return portable_reads(
            lambda values, slots: self._values[id(values)].read(slots), training
        )

    def variables_of(
        self, model: keras.Model, trainable: bool = False
    ) -> list[tf.Variable]:
        """The variables that a model with the backbone needs, once each."""
        variables = model.trainable_variables if trainable else model.variables
        found = []
        for variable in variables:
            table = self._values.get(id(components(variable)[0]))
            if table is None:
                found.append(variable.value)
            else:
                found += (
                    table.trainable_variables if trainable else table.variables
                )
        return found


def _block_outputs(backbone: keras_hub.models.Backbone) -> list[Any]:
    if hasattr(backbone, "block_outputs"):
        return backbone.block_outputs
    return [layer.output for layer in backbone.transformer_layers]


def _pooled(
    backbone: keras_hub.models.Backbone, outputs: keras.KerasTensor
) -> keras.KerasTensor:
    """The output that represents a text, of a model without a pooler.

    It is that of the first token, or in a causal model, whose first token
    knows of no other, of the last one.
    """
    plain = getattr(backbone, "plain_backbone", backbone)
    if find_task_class(keras_hub.models.CausalLM, type(plain)) is None:
        return outputs[:, 0]
    # The last 1 of the mask, on whichever side the padding is.
    is_token = ops.cast(backbone.input["padding_mask"], "int32")
    last = ops.argmax(ops.cumsum(is_token, axis=1), axis=1)
    return ops.take_along_axis(outputs, last[:, None, None], axis=1)[:, 0]
