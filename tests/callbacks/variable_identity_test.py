"""A checkpoint of other variables is refused, not restored by their order."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.callbacks import TrainingCheckpoint
from keras_pkm.callbacks.variable_identity import identify_variables
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.conformance.descriptors import make_model


class Two(keras.Model):
    """Two layers of one shape, made in either order, used in one."""

    def __init__(self, order=("first", "second"), names=None, dropout=False):
        super().__init__()
        names = names or {}
        for attribute in order:
            layer = keras.layers.Dense(4, name=names.get(attribute))
            setattr(self, attribute, layer)
        self.dropout = keras.layers.Dropout(0.5 if dropout else 0)

    def call(self, x):
        return self.second(self.dropout(self.first(x)))


GIVEN = {"first": "first_layer", "second": "second_layer"}
NUMBERED = {"first": "layer_1", "second": "layer_2"}
# As Keras would name them itself.
AS_AUTOMATIC = {"first": "dense_1", "second": "dense_2"}
SWAPPED = ("second", "first")


def chain(*names, swapped=False):
    """A functional model, whose layers are used in the order of `swapped`."""
    layers = [keras.layers.Dense(4, name=name) for name in names]
    x = inputs = keras.Input((4,))
    for layer in reversed(layers) if swapped else layers:
        x = layer(x)
    return keras.Model(inputs, x)


def prepare(model, optimizer=None):
    model.compile(optimizer or keras.optimizers.Adam(), "mse")
    model(np.ones((2, 4), "float32"))
    model.optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(0)
    for variable in [*model.weights, *model.optimizer.variables]:
        if variable.dtype.startswith("float"):
            variable.assign(rng.normal(size=variable.shape))
    return model


def save(model, directory):
    checkpoint = TrainingCheckpoint(directory)
    checkpoint.set_model(model)
    checkpoint.save()


def state(model):
    return [
        np.array(each)
        for each in [*model.variables, *model.optimizer.variables]
    ]


def assert_refused(model, directory, match):
    for variable in [*model.variables, *model.optimizer.variables]:
        variable.assign(np.zeros(variable.shape))
    with pytest.raises(ValueError, match=match):
        TrainingCheckpoint(directory).restore(model)
    for value in state(model):
        assert not value.any()


@pytest.mark.parametrize(
    ("make", "make_other", "first"),
    [
        (
            lambda: Two(names=GIVEN),
            lambda: Two(SWAPPED, GIVEN),
            "`two/first_layer/kernel.*`two/second_layer/kernel",
        ),
        (
            lambda: Two(names=NUMBERED),
            lambda: Two(SWAPPED, NUMBERED),
            "`two/layer_1/kernel.*`two/layer_2/kernel",
        ),
        (
            lambda: Two(names=AS_AUTOMATIC),
            lambda: Two(SWAPPED, AS_AUTOMATIC),
            "self.first.*self.second",
        ),
        (Two, lambda: Two(SWAPPED), "self.first.*self.second"),
        (
            lambda: chain(None, None),
            lambda: chain(None, None, swapped=True),
            "`dense/kernel.*`dense_1/kernel",
        ),
        (
            lambda: chain("layer_3", "layer_5"),
            lambda: chain("layer_4", "layer_5"),
            "`layer_3/kernel.*`layer_4/kernel",
        ),
        (
            lambda: chain("dense_7", "dense_3"),
            lambda: chain("dense_3", "dense_7"),
            "`dense_1/kernel.*`dense/kernel",
        ),
    ],
    ids=[
        "given names",
        "given names with numbers",
        "given names like automatic ones",
        "automatic names",
        "functional",
        "another number",
        "numbers in another order",
    ],
)
def test_layers_of_one_shape_in_another_order(
    make, make_other, first, tmp_path
):
    save(prepare(make()), tmp_path)
    assert_refused(prepare(make_other()), tmp_path, first)


def test_moments_in_another_order(tmp_path):
    model = prepare(chain("a", "b"))
    save(model, tmp_path)
    other = chain("a", "b")
    other.compile("adam", "mse")
    kernels = other.trainable_variables
    other.optimizer.build([*kernels[2:], *kernels[:2]])
    assert_refused(
        other, tmp_path, "momentum of a/kernel.*momentum of b/kernel"
    )


@pytest.mark.parametrize(
    ("change", "first"),
    [
        (
            lambda: prepare(chain("a", "b"), keras.optimizers.AdamW()),
            "adam_?w/",
        ),
        (lambda: prepare(chain("a", "b", "c")), "`nothing` in the checkpoint"),
        (lambda: prepare(chain("a")), "`nothing` in the model"),
        (
            lambda: prepare(
                keras.Sequential(
                    [
                        keras.Input((4,)),
                        keras.layers.Dense(4, name="a", dtype="float64"),
                        keras.layers.Dense(4, name="b"),
                    ]
                )
            ),
            "float32.*float64",
        ),
        (
            lambda: prepare(
                keras.Sequential(
                    [
                        keras.Input((4,)),
                        keras.layers.Dense(3, name="a"),
                        keras.layers.Dense(4, name="b"),
                    ]
                )
            ),
            r"\(4, 4\).*\(4, 3\)",
        ),
    ],
    ids=["optimizer", "more", "fewer", "dtype", "shape"],
)
def test_other_variables(change, first, tmp_path):
    save(prepare(chain("a", "b")), tmp_path)
    assert_refused(change(), tmp_path, first)


def make_mixed():
    """With dropout's seed, given and automatic names, nested models."""
    model = keras.Sequential(
        [keras.Input((4,)), Two(), keras.layers.Dense(4, name="head_3"), Two()]
    )
    return model


@pytest.mark.parametrize(
    ("make", "optimizer"),
    [
        (lambda: Two(dropout=True), keras.optimizers.Adam),
        (lambda: Two(names=NUMBERED), keras.optimizers.SGD),
        (
            lambda: chain(None, "layer_3", None),
            lambda: LossScaleOptimizer(keras.optimizers.Adam(name=None)),
        ),
        (make_mixed, lambda: PKMAdam()),
    ],
    ids=["subclassed", "numbered", "loss scale", "mixed"],
)
def test_a_process_that_has_made_other_models_goes_on(
    make, optimizer, tmp_path
):
    keras.utils.clear_session()
    model = prepare(make(), optimizer())
    save(model, tmp_path)
    expected = state(model)
    # Counts as Keras does, through "dense_9" and "dense_10", too.
    for _ in range(9):
        other = prepare(make(), optimizer())
        assert identify_variables(other) == identify_variables(model)
    for variable in [*other.variables, *other.optimizer.variables]:
        variable.assign(np.zeros(variable.shape))
    TrainingCheckpoint(tmp_path).restore(other)
    for old, new in zip(expected, state(other), strict=True):
        np.testing.assert_array_equal(new, old)


def test_layers_that_were_built_in_another_model(tmp_path):
    def make():
        tower = Two()
        tower(np.ones((1, 4), "float32"))
        return keras.Sequential([keras.Input((4,)), tower.first])

    model, other = prepare(make()), prepare(make())
    assert model.weights[0].path != other.weights[0].path
    assert identify_variables(model) == identify_variables(other)


@pytest.mark.parametrize(
    "name",
    ["MemoryBertTextClassifier", "MemoryRobertaMaskedLM", "MemoryBackbone"],
)
def test_all_variables_of_our_models_are_told_apart(name):
    model = make_model(name)
    model.compile(PKMAdam(), "mse")
    model.optimizer.build(model.trainable_variables)
    found = sum(identify_variables(model).values(), [])
    # Rates are all alike, and not moments.
    of_rates = [each for each in found if "learning_rate" in each]
    assert len(set(found)) == len(found) - len(of_rates) + len(set(of_rates))


def test_another_number_of_replicas_goes_on(mirrored, tmp_path):
    with mirrored.scope():
        model = prepare(Two(dropout=True))
    save(model, tmp_path)
    other = prepare(Two(dropout=True))
    for variable in other.weights:
        variable.assign(np.zeros(variable.shape))
    TrainingCheckpoint(tmp_path).restore(other)
    for old, new in zip(state(model), state(other), strict=True):
        np.testing.assert_array_equal(new, old)


class OldProgress(tf.train.experimental.PythonState):
    def serialize(self):
        return json.dumps({"step": 3, "state": {}})

    def deserialize(self, string_value):
        pass


@pytest.mark.parametrize("parts", [{}, {"progress": OldProgress()}])
def test_a_checkpoint_that_does_not_name_its_variables(parts, tmp_path):
    model = prepare(chain("a", "b"))
    tf.train.Checkpoint(
        model=[each.value for each in model.variables],
        optimizer=[each.value for each in model.optimizer.variables],
        **parts,
    ).write(str(tmp_path / "step-3"))
    assert_refused(model, tmp_path, "earlier version.*start over in another")
