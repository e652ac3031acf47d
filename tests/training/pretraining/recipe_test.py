import numpy as np

from keras_pkm.models import copy_matching_weights
from tests.models.tiny import tiny_masked_lm
from training.pretraining.recipe import PretrainingRecipe


def test_fresh_feed_forward_networks():
    """Only those beside a memory are left as they were drawn."""
    plain = tiny_masked_lm(memory_layers=())
    task = tiny_masked_lm()
    before = {w.path.partition("/")[2]: w.numpy() for w in task.weights}
    recipe = PretrainingRecipe(memory_layers=(1, 3), fresh_feed_forward=True)
    report = copy_matching_weights(plain, task, recipe.skipped_weights())
    fresh = [path for path in report.new if "/memory/" not in path]
    assert sorted(fresh) == [
        f"transformer_layer_{layer}/feedforward_{part}_dense/{weight}"
        for layer in (0, 2)
        for part in ("intermediate", "output")
        for weight in ("bias", "kernel")
    ]
    after = {w.path.partition("/")[2]: w.numpy() for w in task.weights}
    for path, value in after.items():
        if any(path.endswith(name) for name in fresh):
            np.testing.assert_array_equal(value, before[path])
    assert PretrainingRecipe().skipped_weights() is None
