"""A small model with two memories, and something to teach it."""

import hashlib

import keras
import numpy as np

import keras_pkm

SLOTS = 16**2


def make_model(seed=0, value_dim=None):
    keras.utils.set_random_seed(seed)
    x = inputs = keras.Input((None, 12), name="x")
    for _ in range(2):
        memory = keras_pkm.layers.ProductKeyMemory(
            16, num_heads=2, top_k=4, key_dim=8, value_dim=value_dim
        )
        x = keras.layers.BatchNormalization()(x + memory(x))
    outputs = keras.layers.Dense(3)(keras.layers.Dropout(0.5)(x))
    model = keras.Model(inputs, outputs)
    # Moving statistics that differ from the first ones.
    model(np.random.default_rng(1).normal(size=(64, 2, 12)), training=True)
    return model


def make_batch(seed=0, rows=6):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2, 12)).astype("float32")
    return x, rng.integers(0, 3, (rows, 2))


def make_loss():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def teach(model, steps=3, seed=0, **options):
    """Teaches a model a batch, and returns the patch."""
    teacher = keras_pkm.teaching.MemoryTeacher(
        model, **{"loss": make_loss(), **options}
    )
    teacher.teach([make_batch(seed)], steps)
    return teacher.make_patch()


def count_reads(model, x):
    (counts,) = keras_pkm.models.MemoryProbe(model).count_each([x])
    return {number: each["reads"] for number, each in counts.items()}


def tables(model):
    copies = keras_pkm.teaching.memory_patch.copy_tables(model)
    return {number: copy.values for number, copy in copies.items()}


def md5(model):
    """Of the bytes of all variables."""
    digest = hashlib.md5()
    for variable in model.variables:
        digest.update(np.ascontiguousarray(variable).tobytes())
    return digest.hexdigest()
