import keras
import numpy as np
import pytest
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
