"""Trains models of the table for a few steps."""

import contextlib
import dataclasses
import functools

import keras
import tensorflow as tf

from keras_pkm.trainers.freezing import freeze_pooler
from tests.conformance.descriptors import IN_DEPTH
from tests.conformance.descriptors import MODELS
from tests.conformance.descriptors import inputs_of
from tests.conformance.descriptors import labels_of
from tests.conformance.descriptors import make_model


@dataclasses.dataclass(frozen=True)
class Training:
    """What some steps of training did.

    Attributes:
        model: The model.
        start: The values of its weights before.
        end: The values of its weights after.
        losses: The loss of each step.
    """

    model: keras.Model
    start: list
    end: list
    losses: list


def descent():
    """Plain: an error of a gradient is one of the weights, as large."""
    return keras.optimizers.SGD(0.05)


def train(
    name,
    strategy=None,
    dtype=None,
    optimizer=descent,
    make=make_model,
    **compile_arguments,
):
    """Takes two steps, both on the table's one batch."""
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = make(name, dtype)
        if name.endswith(("MaskedLM", "QuestionAnswerer")):
            freeze_pooler(model.backbone)
        model.compile(
            optimizer(),
            MODELS[name].loss if name in MODELS else "mse",
            **compile_arguments,
        )
    start = model.get_weights()
    data = tf.data.Dataset.from_tensors((inputs_of(name), labels_of(name)))
    history = model.fit(data, epochs=2, shuffle=False, verbose=0)
    return Training(model, start, model.get_weights(), history.history["loss"])


@functools.cache
def trained(name):
    """On one device, in float32; in a graph, or eager to take less time."""
    return train(name, run_eagerly=name not in IN_DEPTH)
