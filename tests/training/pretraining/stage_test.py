import dataclasses

import pytest

from tests.models.tiny import tiny_masked_lm
from training.pretraining.recipe import RECIPES
from training.pretraining.stage import compile_model


@pytest.mark.parametrize(
    "schedule, expected",
    [("constant", [0.5, 0.5, 0.5]), ("linear", [0.0, 0.5, 0.0])],
)
def test_rate_of_the_values(schedule, expected):
    recipe = dataclasses.replace(
        RECIPES["laptop"],
        memory_learning_rate=0.5,
        memory_schedule=schedule,
        warmup_ratio=0.5,
    )
    task = tiny_masked_lm(num_layers=1, memory_layers=(1,))
    compile_model(task, recipe, steps=10)
    rates = []
    for step in (0, 5, 10):
        task.optimizer.iterations.assign(step)
        rates.append(float(task.optimizer.memory_learning_rate))
    assert rates == expected
