"""Initializers, regularizers and constraints of a memory's weights."""

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.optimizers import PKMAdam
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng
from tests.contracts import to_numpy
from tests.models.tiny import MEMORY
from tests.models.tiny import tiny_backbone

OPTIONS = {
    "sub_keys_initializer": "ones",
    "sub_keys_regularizer": "l2",
    "sub_keys_constraint": "non_neg",
    "values_initializer": keras.initializers.RandomNormal(stddev=3.0, seed=1),
    "values_regularizer": keras.regularizers.L2(0.5),
    "values_constraint": keras.constraints.MaxNorm(2.0, axis=1),
}


@pytest.mark.parametrize("eager", [True, False])
def test_weights_obey(eager):
    memory = ProductKeyMemory(**MEMORY, **OPTIONS)
    model = keras.Sequential([keras.Input((4, 6)), memory])
    assert np.all(to_numpy(memory.sub_keys) == 1)
    values = memory.table.values.numpy()
    assert 2 < values.std() < 4
    losses = 0.01 * np.size(to_numpy(memory.sub_keys)) + 0.5 * np.sum(values**2)
    np.testing.assert_allclose(to_numpy(sum(model.losses)), losses, rtol=1e-5)
    model.compile(
        # The regularizer would take sub-keys that nothing reads below zero.
        PKMAdam(2.0, 0.1),
        "mse",
        run_eagerly=eager,
        jit_compile=False,
    )
    inputs = fresh_rng().normal(size=(8, 4, 6))
    model.fit(inputs, inputs, verbose=0, shuffle=False)
    after = memory.table.values.numpy()
    # Also of rows that no token has read.
    assert np.all(np.linalg.norm(after, axis=1) <= 2 + 1e-5)
    assert np.all(np.array(memory.sub_keys) >= 0)


def test_config_also_within_a_backbone(tmp_path):
    copy = check_config_round_trip(ProductKeyMemory(**MEMORY, **OPTIONS))
    copy.build((None, 6))
    assert np.all(to_numpy(copy.sub_keys) == 1)
    assert copy.table.values.constraint.max_value == 2.0
    plain = ProductKeyMemory(**MEMORY).get_config()
    assert plain["values_initializer"] is plain["values_constraint"] is None

    memory = {**MEMORY, "values_initializer": "zeros"}
    backbone = tiny_backbone(memory_layers=(2,), memory=memory)
    backbone.save_to_preset(str(tmp_path))
    again = keras_hub.models.Backbone.from_preset(
        str(tmp_path), load_weights=False
    )
    table = again.transformer_layers[1].memory.table.values
    assert not to_numpy(table).any()


def test_an_unknown_initializer():
    with pytest.raises(ValueError, match="no_such"):
        ProductKeyMemory(**MEMORY, values_initializer="no_such")
