import math

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.models import MemoryProbe
from tests.contracts import fresh_rng
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_masked_lm
from training.batches.masking import Masking
from training.batches.one_by_one import one_by_one
from training.measuring.perplexity import Evaluation
from training.measuring.perplexity import LanguageModelEvaluator

MASKING = Masking(
    vocabulary_size=100,
    mask_token_id=4,
    pad_token_id=0,
    special_token_ids=(0, 2, 3, 4),
    mask_selection_length=3,
)


@pytest.mark.slow
@pytest.mark.parametrize("memory_layers", [(), (1, 3)])
def test_equals_keras_hub_s_perplexity_and_the_probe(memory_layers):
    task = tiny_masked_lm(memory_layers=memory_layers)
    rng = fresh_rng()
    x, labels, weights = masked_batch(rng, batch=12)
    weights[5] = 0
    data = tf.data.Dataset.from_tensor_slices((x, labels, weights)).batch(5)
    evaluator = LanguageModelEvaluator(task)
    evaluator.evaluate(data.take(1))
    # Nothing is left of what was measured before.
    evaluation = evaluator.evaluate(data)
    assert len(evaluation.nll) == np.sum(weights.sum(1) > 0)
    assert evaluation.tokens.sum() == weights.sum()
    task.compile(
        weighted_metrics=[keras_hub.metrics.Perplexity(from_logits=True)]
    )
    logs = task.evaluate(data, return_dict=True, verbose=0)
    assert evaluation.perplexity == pytest.approx(logs["perplexity"], rel=1e-5)
    usage = MemoryProbe(task.backbone).measure(data) if memory_layers else {}
    assert evaluation.memory_usage == usage


@pytest.mark.slow
def test_a_sequence_is_exact_if_all_its_tokens_are_predicted():
    task = tiny_masked_lm()
    x, labels, weights = masked_batch(fresh_rng(), batch=6)
    weights[:] = 1
    best = task.predict_on_batch(x).argmax(-1).astype(labels.dtype)
    labels = (best + 1) % 100
    labels[[1, 4]] = best[[1, 4]]
    labels[3, 1:] = best[3, 1:]  # all but one
    weights[4, 0], labels[4, 0] = 0, (best[4, 0] + 1) % 100  # which is no token
    weights[2] = 0
    data = tf.data.Dataset.from_tensor_slices((x, labels, weights)).batch(4)
    exact = LanguageModelEvaluator(task).evaluate(data).exact
    assert exact.tolist() == [False, True, False, True, False]


@pytest.mark.slow
def test_two_replicas_measure_what_one_does(mirrored):
    one = tiny_masked_lm(memory_layers=(1, 3))
    with mirrored.scope():
        two = tiny_masked_lm(memory_layers=(1, 3))
    two.set_weights(one.get_weights())
    batches = tf.data.Dataset.from_tensor_slices(masked_batch(fresh_rng(), 12))
    alone, shared = (
        LanguageModelEvaluator(task).evaluate(batches.batch(4))
        for task in (one, two)
    )
    np.testing.assert_allclose(shared.nll, alone.nll, rtol=1e-5)
    np.testing.assert_array_equal(shared.tokens, alone.tokens)
    for number, usage in alone.memory_usage.items():
        assert shared.memory_usage[number] == pytest.approx(usage)


@pytest.mark.parametrize("alike", [1, 20])
def test_standard_error_is_that_of_repeated_samples(alike):
    """Also if neighbouring sequences are alike."""
    rng = np.random.default_rng(0)

    def sample():
        tokens = rng.integers(1, 9, 400).astype("float64")
        level = np.repeat(rng.normal(3, 0.4, 400 // alike), alike)
        return Evaluation(level * tokens, tokens, tokens > 0, {})

    samples = [sample() for _ in range(300)]
    spread = np.std([evaluation.perplexity for evaluation in samples])
    errors = [evaluation.standard_error for evaluation in samples]
    assert np.mean(errors) == pytest.approx(spread, rel=0.1)
    one = Evaluation(np.ones(1), np.ones(1), np.ones(1, bool), {})
    assert one.standard_error is None


def test_what_fills_the_last_batch_is_padding():
    packed = np.array([[2, 7, 8, 9, 3, 0]], "int32")
    batches, _ = one_by_one(packed, MASKING, batch_size=2)
    (features, _, weights) = list(batches)[-1]
    assert weights.numpy().tolist() == [[1], [0]]
    assert features["padding_mask"].numpy().sum(1).tolist() == [5, 0]


def test_a_perplexity_that_overflows():
    one = Evaluation(np.array([1e4]), np.ones(1), np.ones(1, bool), {})
    assert one.perplexity == math.inf


@pytest.mark.slow
def test_pseudo_perplexity_masks_each_token_once():
    rng = fresh_rng()
    packed = rng.integers(5, 100, (3, 8)).astype("int32")
    packed[:, 0], packed[:, 6] = 2, 3
    packed[1, 4:] = 0
    task = tiny_masked_lm()
    batches, rows = one_by_one(packed, MASKING, batch_size=4)
    evaluation = LanguageModelEvaluator(task).evaluate(batches)
    total, count = 0.0, 0
    for row in packed:
        for position in np.flatnonzero(~np.isin(row, (0, 2, 3))):
            masked = row.copy()
            masked[position] = 4
            logits = task(
                {
                    "token_ids": masked[None],
                    "segment_ids": 0 * masked[None],
                    "padding_mask": (masked[None] != 0).astype("int32"),
                    "mask_positions": np.array([[position]], "int32"),
                }
            )
            log_p = tf.nn.log_softmax(tf.cast(logits[0, 0], "float64"))
            total -= float(log_p[row[position]])
            count += 1
    assert evaluation.tokens.sum() == count == len(evaluation.nll)
    assert evaluation.perplexity == pytest.approx(
        math.exp(total / count), rel=1e-5
    )
    # The tokens of a row are not independent.
    grouped = evaluation.grouped(rows)
    assert len(grouped.nll) == 3 and grouped.tokens.tolist() == [6, 3, 6]
    assert grouped.perplexity == pytest.approx(evaluation.perplexity)
    assert grouped.nll[1] == evaluation.nll[rows == 1].sum()
