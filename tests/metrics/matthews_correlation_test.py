import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import matthews_corrcoef

from keras_pkm.metrics import MatthewsCorrelation
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


@pytest.mark.parametrize("num_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_scikit_learn(num_classes, weighted):
    rng = fresh_rng()
    metric = MatthewsCorrelation(num_classes)
    labels = rng.integers(0, num_classes, 200)
    noise = rng.normal(size=(200, num_classes))
    scores = np.eye(num_classes)[labels] + noise
    weights = rng.random(200) if weighted else None
    for part in np.split(np.arange(200), [7, 90]):
        metric.update_state(
            labels[part, None] if part[0] else labels[part],
            scores[part],
            None if weights is None else weights[part],
        )
    expected = matthews_corrcoef(
        labels, scores.argmax(-1), sample_weight=weights
    )
    assert 0 < expected < 1
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "labels, predictions",
    [
        ([0, 1, 1], [1, 1, 1]),
        ([1, 1, 1], [0, 1, 1]),
        ([0, 0], [0, 0]),
        ([0, 1, 1, 0], [1, 0, 0, 1]),
        ([0, 1, 1, 0], [0, 1, 1, 0]),
    ],
)
# scikit-learn warns where there is but one class.
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_extremes_equal_scikit_learn(labels, predictions):
    metric = MatthewsCorrelation()
    assert metric.result() == 0
    metric.update_state(labels, np.eye(2)[predictions])
    assert metric.result() == matthews_corrcoef(labels, predictions)


def test_millions_of_rows_do_not_overflow():
    metric = MatthewsCorrelation()
    metric.update_state([0, 1], np.eye(2), sample_weight=[3e9, 5e9])
    assert metric.result() == 1


def test_wrong_number_of_classes():
    with pytest.raises(ValueError, match="at least 2. Received: num_classes=1"):
        MatthewsCorrelation(1)
    for count in (2.5, True, "2"):
        with pytest.raises(ValueError, match="`num_classes` must be an int"):
            MatthewsCorrelation(count)


def test_config_and_fit():
    check_config_round_trip(MatthewsCorrelation(3, name="mcc"))
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[MatthewsCorrelation()],
    )
    rng = fresh_rng()
    x, labels = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    logs = model.evaluate(x, labels, batch_size=3, return_dict=True, verbose=0)
    expected = matthews_corrcoef(labels, model.predict(x, verbose=0).argmax(-1))
    np.testing.assert_allclose(
        logs["matthews_correlation"], expected, atol=1e-6
    )


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_one_probability_for_two_classes(shape):
    labels = np.array([0, 1, 1, 0])
    metric = MatthewsCorrelation()
    metric.update_state(labels, np.reshape([0.1, 0.9, 0.6, 0.4], shape))
    assert metric.result() == 1
    metric = MatthewsCorrelation(threshold=0.7)
    metric.update_state(labels, np.reshape([0.1, 0.9, 0.6, 0.4], shape))
    assert 0 < metric.result() < 1


@pytest.mark.parametrize(
    "num_classes, shape", [(2, (4, 3)), (3, (4, 1)), (3, (4,)), (2, (2, 2, 2))]
)
def test_predictions_of_another_shape(num_classes, shape):
    with pytest.raises(ValueError, match=r"`y_pred` must have the shape.*Rec"):
        MatthewsCorrelation(num_classes).update_state(
            np.zeros(4), np.zeros(shape)
        )


def one_hot(labels, num_classes):
    return np.eye(num_classes)[labels]


def smoothed(labels, num_classes):
    return 0.9 * one_hot(labels, num_classes) + 0.1 / num_classes


FORMS = {
    "numbers": lambda y, n: y,
    "a column": lambda y, n: y[:, None],
    "a list": lambda y, n: y.tolist(),
    "float": lambda y, n: y.astype("float32"),
    "uint8": lambda y, n: y.astype("uint8"),
    "half": lambda y, n: tf.cast(y, "bfloat16"),
    "one-hot": one_hot,
    "one-hot integers": lambda y, n: one_hot(y, n).astype("int32"),
    "one-hot bool": lambda y, n: one_hot(y, n).astype("bool"),
    "one-hot half": lambda y, n: tf.cast(one_hot(y, n), "float16"),
    "smoothed": smoothed,
    "smoothed bfloat16": lambda y, n: tf.cast(smoothed(y, n), "bfloat16"),
}


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("in_graph", [False, True])
def test_labels_in_all_forms_equal_scikit_learn(form, num_classes, in_graph):
    rng = fresh_rng()
    labels = rng.integers(0, num_classes, 60)
    scores = one_hot(labels, num_classes) + rng.normal(size=(60, num_classes))
    weights = rng.random(60)
    metric = MatthewsCorrelation(num_classes)
    update = metric.update_state
    if in_graph:
        update = tf.function(lambda *args: metric.update_state(*args))
    y = FORMS[form](labels, num_classes)
    update(tf.convert_to_tensor(y), scores, weights)
    expected = matthews_corrcoef(
        labels, scores.argmax(-1), sample_weight=weights
    )
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-6)


@pytest.mark.parametrize("form", ["numbers", "a column", "one-hot", "smoothed"])
@pytest.mark.parametrize("shape", [(60,), (60, 1)])
@pytest.mark.parametrize("kind", ["probability", "logit", "bool", "int"])
def test_single_predictions_equal_scikit_learn(form, shape, kind):
    rng = fresh_rng()
    labels = rng.integers(0, 2, 60)
    logits = 2 * labels - 1 + rng.normal(size=60)
    predictions = {
        "probability": 1 / (1 + np.exp(-logits)),
        "logit": logits,
        "bool": logits > 0,
        "int": (logits > 0).astype("int32"),
    }[kind]
    metric = MatthewsCorrelation(threshold=0.0 if kind == "logit" else 0.5)
    metric.update_state(FORMS[form](labels, 2), predictions.reshape(shape))
    expected = matthews_corrcoef(labels, logits > 0)
    np.testing.assert_allclose(metric.result(), expected, rtol=1e-9)


WRONG_VALUES = [
    (2, [0, 2]),
    (2, [-1, 1]),
    (2, [0.0, 0.9]),
    (2, [0.0, np.nan]),
    (3, [[0], [3]]),
    (2, [[1, 1], [0, 1]]),
    (2, [[0, 0], [0, 1]]),
    (2, [[0.5, 0.5], [0, 1]]),
    (2, [[2.0, -1.0], [0, 1]]),
    (2, [[np.nan, 1], [0, 1]]),
    (3, [[1, 0, 1], [0, 1, 0]]),
    (2, [[3.0, 1.0], [0.2, 4.0]]),
]


@pytest.mark.parametrize(
    ("num_classes", "labels"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (number % 4 > 0))
        for number, each in enumerate(WRONG_VALUES)
    ],
)
def test_labels_that_are_none(num_classes, labels):
    labels = np.array(labels, "float32")
    predictions = np.eye(num_classes)[[0, 1]]
    metric = MatthewsCorrelation(num_classes)
    with pytest.raises(
        ValueError, match="`y_true` must be .* Received: . of 2"
    ):
        metric.update_state(labels, predictions)
    assert not metric.variables[0].numpy().any()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`y_true` must be"
    ):
        tf.function(metric.update_state)(
            tf.constant(labels), tf.constant(predictions)
        )
    # XLA drops assertions: no number is better than a wrong one.
    tf.function(metric.update_state, jit_compile=True)(
        tf.constant(labels), tf.constant(predictions)
    )
    assert np.isnan(metric.result())


@pytest.mark.parametrize(
    "shape", [(4, 3), (4, 2, 1), (2, 2, 2), (), (4, 0), (3,), (5,), (1,)]
)
def test_labels_of_another_shape(shape):
    with pytest.raises(ValueError, match="`y_true`.*must.*Received"):
        MatthewsCorrelation().update_state(np.zeros(shape), np.zeros((4, 2)))


def test_labels_that_are_texts():
    with pytest.raises(ValueError, match="`y_true` must be numbers.*StringLo"):
        MatthewsCorrelation().update_state(
            tf.constant(["a", "b"]), np.zeros((2, 2))
        )


def test_single_logits_need_another_threshold():
    with pytest.raises(ValueError, match="`y_pred`.*pass `threshold=0`"):
        MatthewsCorrelation().update_state([0, 1], [-0.3, 0.4])
    metric = MatthewsCorrelation(threshold=0)
    metric.update_state([0, 1], [-0.3, 0.4])
    assert metric.result() == 1
    # A model that has diverged does not stop training here.
    MatthewsCorrelation().update_state([0, 1], [np.nan, 0.4])


def test_weights_in_all_forms():
    labels, scores = [0, 1, 1, 0], np.eye(2)[[0, 1, 0, 0]]
    expected = matthews_corrcoef(
        labels, [0, 1, 0, 0], sample_weight=[1, 2, 3, 4]
    )
    for weights in ([1, 2, 3, 4], [[1.0], [2], [3], [4]]):
        metric = MatthewsCorrelation()
        metric.update_state(labels, scores, weights)
        np.testing.assert_allclose(metric.result(), expected)
    metric = MatthewsCorrelation()
    metric.update_state(labels, scores, 2.0)
    assert metric.variables[0].numpy().sum() == 8
    for weights in (np.ones(3), np.ones((4, 2)), np.ones((2, 2)), np.ones(1)):
        with pytest.raises(ValueError, match="`sample_weight`.*Received"):
            MatthewsCorrelation().update_state(labels, scores, weights)


@pytest.mark.parametrize("head", ["softmax", "sigmoid"])
def test_one_hot_labels_in_fit(head):
    width = 2 if head == "softmax" else 1
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(width, head)]
    )
    loss = "categorical_crossentropy" if width == 2 else "binary_crossentropy"
    model.compile(loss=loss, metrics=[MatthewsCorrelation()])
    rng = fresh_rng()
    x, labels = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    y = one_hot(labels, 2) if width == 2 else labels[:, None].astype("float32")
    logs = model.evaluate(x, y, batch_size=6, return_dict=True, verbose=0)
    scores = model.predict(x, verbose=0)
    found = scores.argmax(-1) if width == 2 else scores[:, 0] > 0.5
    np.testing.assert_allclose(
        logs["matthews_correlation"],
        matthews_corrcoef(labels, found),
        atol=1e-6,
    )
