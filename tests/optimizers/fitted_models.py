"""Small models with a memory, and what a few steps of training leave."""

import keras
import numpy as np
import tensorflow as tf

import keras_pkm
from keras_pkm.optimizers import PKMAdam
from tests.models.tiny import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import tiny_masked_lm


def compiled_task(strategy, wrap=None, precision="float32", **options):
    keras.utils.set_random_seed(1)
    with strategy.scope():
        task = tiny_masked_lm(dtype=precision, **ONE_LAYER)
        task.backbone.pooled_dense.trainable = False
        optimizer = PKMAdam(1e-3, 1e-2, **options)
        task.compile(wrap(optimizer) if wrap else optimizer)
    return task


def fit(task, batches, callbacks=()):
    """One step for each batch; all replicas share one."""
    data = [tf.data.Dataset.from_tensors(batch) for batch in batches]
    whole = data[0]
    for more in data[1:]:
        whole = whole.concatenate(more)
    task.fit(whole, shuffle=False, verbose=0, callbacks=list(callbacks))


def states_after(task, batches):
    """Fits batches, and returns the `state` after each of them."""
    states = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_, **__: states.append(state(task))
    )
    fit(task, batches, [keep])
    return states


def components(variable):
    """The values of a variable on all replicas."""
    value = variable.value
    if isinstance(value, tf.distribute.DistributedValues):
        return [component.numpy() for component in value.values]
    return [value.numpy()]


def state(task):
    """All replicas' values of all variables of model and optimizer."""
    return {
        variable.path: components(variable)
        for variable in [*task.weights, *task.optimizer.variables]
    }


def memory_model(strategy, wrap=None, precision="float32", **options):
    """Dense, memory, dense: with float inputs, which may hold NaN."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        inputs = keras.Input((6, 5))
        mask = keras.Input((6,), dtype="int32")
        x = keras.layers.Dense(8, dtype=precision)(inputs)
        memory = keras_pkm.layers.ProductKeyMemory(**MEMORY, dtype=precision)
        x = keras.layers.LayerNormalization(dtype=precision)(
            x + memory(x, mask=mask)
        )
        outputs = keras.layers.Dense(3, dtype=precision)(x)
        model = keras.Model([inputs, mask], outputs)
        optimizer = PKMAdam(0.01, 0.01, **{"weight_decay": 0.1, **options})
        model.compile(
            wrap(optimizer) if wrap else optimizer, "mse", jit_compile=False
        )
    return model


def float_batch(rng, bad_example=None):
    inputs = rng.normal(size=(8, 6, 5)).astype("float32")
    if bad_example is not None:
        inputs[bad_example, 0, 2] = np.nan
    mask = (np.arange(6) < rng.integers(1, 7, (8, 1))).astype("int32")
    target = rng.normal(size=(8, 6, 3)).astype("float32")
    return (inputs, mask), target
