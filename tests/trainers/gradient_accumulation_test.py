"""Steps in parts against the same steps as a whole."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.models import MemoryBertQuestionAnswerer
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from keras_pkm.trainers.task_training import TaskTraining
from tests.contracts import fixed_rng
from tests.contracts import fresh_rng
from tests.models.tiny import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import features
from tests.models.tiny import half_precision_batch
from tests.models.tiny import half_precision_task
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_masked_lm
from tests.slow_tier import eager_and_graph


def trained(strategy, batches, parts, eager=False, **options):
    """A task after a step for each batch, and the logs of the last epoch."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        task = tiny_masked_lm(
            **ONE_LAYER,
            memory={**MEMORY, "query_normalization": "layer"},
        )
        task.backbone.pooled_dense.trainable = False
        task.compile(
            # Beside a small epsilon, a gradient that is rounding alone would
            # become a whole step.
            PKMAdam(1e-3, 1e-2, epsilon=1e-4, **options),
            weighted_metrics=["sparse_categorical_accuracy"],
            run_eagerly=eager,
        )
    task.accumulation_steps = parts
    stacked = tf.nest.map_structure(lambda *x: np.stack(x), *batches)
    data = tf.data.Dataset.from_tensor_slices(stacked)
    history = task.fit(data, shuffle=False, verbose=0)
    return task, history.history


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "eager, devices, num_parts, options",
    [
        (True, 1, 4, {}),
        slow(False, 2, 2, {"global_clipnorm": 0.05}),
    ],
)
def test_parts_train_as_the_whole(eager, devices, num_parts, options, mirrored):
    rng = fixed_rng()
    batches = [masked_batch(rng, batch=16) for _ in range(3)]
    one = tf.distribute.get_strategy()
    strategy = mirrored if devices == 2 else one
    # The whole is trained in a graph in the slow tier alone.
    whole, expected_logs = trained(
        one, batches, 1, eager or num_parts == 2, **options
    )
    parts, logs = trained(strategy, batches, num_parts, eager, **options)
    for expected, actual in zip(whole.weights, parts.weights):
        np.testing.assert_allclose(
            actual, expected, atol=1e-6, err_msg=expected.path
        )
    for name, values in expected_logs.items():
        np.testing.assert_allclose(logs[name], values, rtol=1e-5)
    assert parts.optimizer.iterations == len(batches)


@eager_and_graph
def test_under_loss_scaling(eager):
    batch = half_precision_batch(eager, fresh_rng())
    kernels = []
    for parts in (1, 2):
        keras.utils.set_random_seed(1)
        task = half_precision_task(
            eager, memory={**MEMORY, "query_normalization": "layer"}
        )
        task.compile(
            LossScaleOptimizer(PKMAdam(1e-3), initial_scale=256.0),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            run_eagerly=eager,
        )
        task.accumulation_steps = parts
        data = tf.data.Dataset.from_tensors(batch)
        task.fit(data, shuffle=False, verbose=0)
        assert task.optimizer.iterations == 1
        kernels.append(np.array(task.backbone.transformer_layers[0].weights[0]))
    # Half precision: most steps have the same sign, hence the same size.
    difference = np.abs(kernels[0] - kernels[1])
    assert np.median(difference) < 1e-5


class Model(TaskTraining, keras.Model):
    """A model that is traced faster than a task."""


def regression(
    strategy=None,
    parts=1,
    loss="mse",
    activity=None,
    query_normalization="layer",
    **options,
):
    keras.utils.set_random_seed(1)
    with strategy.scope() if strategy else contextlib.nullcontext():
        inputs = keras.Input((8,))
        x = keras.layers.Dense(
            8, kernel_regularizer="l2", activity_regularizer=activity
        )(inputs)
        x = ProductKeyMemory(
            5,
            num_heads=2,
            top_k=3,
            key_dim=4,
            query_normalization=query_normalization,
        )(x)
        model = Model(inputs, x)
        model.compile(
            PKMAdam(1e-2, 1e-1, epsilon=1e-2),
            loss,
            **{"metrics": ["mae"], "weighted_metrics": ["mse"], **options},
        )
    model.accumulation_steps = parts
    return model


def examples(number):
    rng = fixed_rng()
    x, y = rng.normal(size=(2, number, 8)).astype("float32")
    return x, y, rng.random(number).astype("float32")


def same_logs(actual, expected):
    assert set(actual) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=1e-5)


def same_weights(actual, expected):
    for one, other in zip(actual.weights, expected.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6, err_msg=one.path)


@eager_and_graph
def test_a_bad_part_skips_the_step(eager):
    x, y, _ = examples(16)
    y[13, 0] = np.nan
    models = []
    for number in (8, 16):
        model = regression(
            parts=4, query_normalization="batch", run_eagerly=eager
        )
        model.fit(
            x[:number], y[:number], batch_size=8, shuffle=False, verbose=0
        )
        models.append(model)
    assert any("moving_mean" in weight.path for weight in model.weights)
    for old, new in zip(*(each.weights for each in models), strict=True):
        np.testing.assert_array_equal(old, new, err_msg=old.path)


@eager_and_graph
def test_moving_statistics_go_as_far_as_with_one_batch(eager):
    x, y, _ = examples(4)
    models = []
    for parts in (1, 4):
        model = regression(
            parts=parts,
            query_normalization="batch",
            run_eagerly=eager or parts == 1,
        )
        # Parts that are alike have the statistics of the batch.
        model.fit(
            *(np.tile(each[:2], (4, 1)) for each in (x, y)),
            batch_size=8,
            shuffle=False,
            verbose=0,
        )
        models.append(model)
    same = [
        (one, other)
        for one, other in zip(*(each.weights for each in models), strict=True)
        if "moving_" in one.path
    ]
    assert same
    for one, other in same:
        np.testing.assert_allclose(other, one, atol=1e-6, err_msg=one.path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts, weighted, eager",
    [
        (4, True, False),
        (3, False, True),
        (9, True, True),
    ],
)
def test_any_number_of_examples(parts, weighted, eager):
    """Batches of 8, 8 and 3, by graphs that know neither number."""
    data = examples(19)[: 3 if weighted else 2]
    histories, models = [], []
    for number in (1, parts):
        # What is compared with need not be traced.
        model = regression(parts=number, run_eagerly=eager or number == 1)
        history = model.fit(
            *data[:2],
            sample_weight=data[2] if weighted else None,
            batch_size=8,
            shuffle=False,
            verbose=0,
            epochs=2,
        )
        histories.append(history.history)
        models.append(model)
    same_logs(histories[1], histories[0])
    same_weights(models[1], models[0])


@pytest.mark.parametrize(
    "weights, eager",
    [
        ("none", True),
        ("sample", True),
        ("class", True),
        slow("sample", False),
    ],
)
def test_train_on_batch(weights, eager):
    x, y, sample_weight = examples(7)
    y = np.arange(7) % 3
    arguments = {
        "none": {},
        "sample": {"sample_weight": sample_weight},
        "class": {"class_weight": {0: 0.5, 1: 2.0, 2: 0.0}},
    }[weights]
    logs, models = [], []
    for number in (1, 3):
        model = regression(
            parts=number,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            weighted_metrics=None,
            run_eagerly=eager or number == 1,
        )
        for size in (7, 2, 6):
            of_batch = {
                name: value[:size] if weights == "sample" else value
                for name, value in arguments.items()
            }
            logs.append(
                model.train_on_batch(
                    x[:size], y[:size], return_dict=True, **of_batch
                )
            )
        models.append(model)
    for actual, expected in zip(logs[3:], logs[:3], strict=True):
        same_logs(actual, expected)
    same_weights(*models)


@pytest.mark.slow
def test_generators_of_unknown_shape():
    x, y, _ = examples(19)

    def batches():
        for first in range(0, 19, 8):
            yield x[first : first + 8], y[first : first + 8]

    def loss(y_true, y_pred):
        """A mean that is NaN over nothing."""
        return tf.reduce_mean((y_true - y_pred) ** 2)

    data = tf.data.Dataset.from_generator(
        batches, output_types=("float32", "float32")
    ).map(lambda *x: tuple(tf.ensure_shape(each, (None, 8)) for each in x))
    models = [
        regression(parts=number, loss=loss, run_eagerly=number == 1)
        for number in (1, 4)
    ]
    histories = [
        model.fit(data, shuffle=False, verbose=0, steps_per_epoch=3).history
        for model in models
    ]
    same_logs(*histories)
    same_weights(*models)


@pytest.mark.slow
def test_uneven_batches_of_replicas(mirrored):
    """The last batch has three examples: two for one replica, one for two."""
    x, y, weights = examples(19)
    models = [
        regression(mirrored, parts=number, run_eagerly=number == 1)
        for number in (1, 3)
    ]
    data = tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(8)
    histories = [
        model.fit(data, shuffle=False, verbose=0).history for model in models
    ]
    same_logs(*histories)
    same_weights(*models)


@pytest.mark.slow
def test_several_steps_in_one_execution():
    x, y, _ = examples(19)
    models = [
        regression(parts=1, run_eagerly=True),
        regression(parts=3, steps_per_execution=2),
    ]
    histories = [
        model.fit(x, y, batch_size=8, shuffle=False, verbose=0).history
        for model in models
    ]
    same_logs(*histories)
    same_weights(*models)


def test_means_by_the_sum_of_weights():
    """Parts count by their weights, those without weight not at all."""
    x, y, weights = examples(8)
    weights[:3] = 0
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    models = [
        regression(parts=number, loss=loss, run_eagerly=True)
        for number in (1, 4)
    ]
    logs = [
        model.train_on_batch(x, y, weights, return_dict=True)
        for model in models
    ]
    same_logs(*logs)
    same_weights(*models)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_other_losses_are_refused(reduction):
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    model = regression(parts=4, loss=loss, run_eagerly=True)
    with pytest.raises(ValueError, match=f"accumulation_steps=4.*{reduction}"):
        model.train_on_batch(*examples(8))


def test_activity_regularizers_are_refused():
    model = regression(parts=4, activity="l2", run_eagerly=True)
    with pytest.raises(ValueError, match="`activity_regularizer`.*'dense"):
        model.train_on_batch(*examples(8))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, float("nan"), "2"])
def test_no_number_of_parts(value):
    model = regression()
    with pytest.raises(ValueError, match="`accumulation_steps` must be a pos"):
        model.accumulation_steps = value


@pytest.mark.parametrize("method", ["train_on_batch", "test_on_batch"])
def test_batches_of_question_answerers(method):
    """Their labels are a dict."""
    rng = fixed_rng()
    x = features(rng, 7)
    y = {name: rng.integers(0, 4, 7) for name in ("start", "end")}
    logs = []
    for number in (1, 3):
        keras.utils.set_random_seed(1)
        task = MemoryBertQuestionAnswerer(
            tiny_backbone(
                **ONE_LAYER, memory={**MEMORY, "query_normalization": "layer"}
            )
        )
        task.backbone.pooled_dense.trainable = False
        task.compile(run_eagerly=True)
        task.accumulation_steps = number
        logs.append(getattr(task, method)(x, y, return_dict=True))
    same_logs(*logs)
    assert set(logs[0]) > {"loss", "start_loss", "end_loss"}


@pytest.mark.parametrize("how", ["ignore_class", "mask"])
def test_a_mean_over_some_tokens_is_refused(how):
    """The parts of a batch have different numbers of them."""

    class Model(TaskTraining, keras.Model):
        pass

    ids = keras.Input((4,), dtype="int32")
    x = keras.layers.Embedding(9, 8, mask_zero=how == "mask")(ids)
    model = Model(ids, keras.layers.Dense(9)(x))
    ignored = -1 if how == "ignore_class" else None
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=ignored
    )
    model.compile(PKMAdam(), loss=loss, run_eagerly=True)
    model.accumulation_steps = 2
    labels = np.ones((4, 4), "int32")
    with pytest.raises(ValueError, match="`accumulation_steps` must be 1"):
        model.fit(np.ones((4, 4), "int32"), labels, verbose=0)
