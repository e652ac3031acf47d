"""Models that cannot have memories, and mistakes in adding them."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from tests.any_backbone.tiny_families import FILLED
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import make_plain
from tests.contracts import to_numpy
from tests.slow_tier import but_on_tensorflow


class _Loop(keras_hub.models.Backbone):
    """Calls its only block twice, as ALBERT does."""

    def __init__(self):
        inputs = keras.Input((4, 8))
        block = keras_hub.layers.TransformerEncoder(8, 2)
        self.transformer_layers = [block]
        super().__init__(inputs=inputs, outputs=block(block(inputs)))


class _Silent(keras.layers.Layer):
    """Returns no tensor."""

    def call(self, x):
        return {"x": x}


class _Dictionary(keras_hub.models.Backbone):
    def __init__(self):
        inputs = keras.Input((4, 8))
        block = _Silent(name="silent")
        self.transformer_layers = [block]
        super().__init__(inputs=inputs, outputs=block(inputs)["x"])


def _albert():
    return keras_hub.models.AlbertBackbone(
        50, 2, 2, 16, 16, 32, max_sequence_length=12
    )


def _twice():
    return keras_pkm.models.add_memory(make_plain("GPT2"), (1,), MEMORY)


@pytest.mark.parametrize(
    "make, layers, message",
    [
        (lambda: make_plain("GPT2"), (3,), "from 1 to `num_layers`"),
        (lambda: make_plain("GPT2"), (1, 1), "different numbers"),
        (_twice, (2,), "must have no memory yet.*MemoryGPT2Backbone"),
        (_albert, (1,), "AlbertBackbone.*share layers"),
        (_Loop, (1,), "_Loop.*several times"),
        (_Dictionary, (1,), "must return a tensor.*'silent', a `_Silent`"),
        (lambda: keras.Sequential(), (1,), "Received: a `Sequential`"),
        (
            lambda: keras_hub.models.ViTBackbone((8, 8, 3), 4, 1, 1, 8, 8),
            (1,),
            "`transformer_layers`.*ViTBackbone",
        ),
    ],
)
def test_models_that_do_not_suit(make, layers, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        keras_pkm.models.add_memory(make(), layers, MEMORY)


def test_the_dtype_of_a_backbone_is_that_of_the_plain_one():
    plain = make_plain("GPT2")
    cls = keras_pkm.models.MemoryBackbone
    assert cls(plain, (1,), MEMORY, dtype="float32").dtype_policy.name == (
        "float32"
    )
    with pytest.raises(ValueError, match="`dtype` must be .*mixed_bfloat16"):
        cls(plain, (1,), MEMORY, dtype="mixed_bfloat16")


# Keras tries further paths before it raises.
@pytest.mark.filterwarnings("ignore:Skipping nested container")
@pytest.mark.parametrize("memory_block", but_on_tensorflow("serial", ["resm"]))
def test_weights_of_memories_in_other_layers_are_refused(
    memory_block, tmp_path
):
    def make(*layers):
        task = keras_hub.models.BertTextClassifier(make_plain("Bert"), 2)
        if memory_block == "resm":
            task = task.backbone
        return keras_pkm.models.add_memory(task, layers, FILLED, memory_block)

    path = tmp_path / "model.weights.h5"
    model, copy, other, both = make(2), make(2), make(1), make(1, 2)
    model.save_weights(path)
    for each in (other, both):
        with pytest.raises(ValueError, match=r"memory_layers=\[2\] instead of"):
            each.load_weights(path)
    for weight in copy.weights:
        weight.assign(np.zeros(weight.shape))
    copy.load_weights(path)
    for one, same in zip(model.weights, copy.weights, strict=True):
        assert (to_numpy(one) == to_numpy(same)).all()
    # Its first weights fit again.
    other.save_weights(path)
    other.load_weights(path)


def test_weights_without_memories_fit_the_plain_class(tmp_path):
    path = tmp_path / "model.weights.h5"
    keras_pkm.models.add_memory(make_plain("Bert"), ()).save_weights(path)
    make_plain("Bert").load_weights(path)


def test_causal_models_do_not_train_with_statistics_of_a_batch():
    """They would tell each token of later ones."""
    plain = keras_hub.models.GPT2CausalLM(make_plain("GPT2"))
    memory = keras_pkm.layers.ProductKeyMemory(**MEMORY)
    task = keras_pkm.models.add_memory(plain, (2,), memory)
    ids = np.ones((2, 8), "int32")
    inputs = {"token_ids": ids, "padding_mask": ids}
    task(inputs)
    task.compile(loss="sparse_categorical_crossentropy")
    for train in (
        lambda: task(inputs, training=True),
        lambda: task.fit(inputs, ids, shuffle=False, verbose=0),
    ):
        with pytest.raises(ValueError, match="statistics of a batch tell"):
            train()
    keras_pkm.models.freeze_memory(task, ("queries",))
    task(inputs, training=True)


def test_a_model_without_a_padding_mask_is_warned_of(caplog):
    plain = keras_hub.models.FNetBackbone(50, 1, 16, 32, max_sequence_length=8)
    keras_pkm.models.add_memory(plain, ())
    assert not caplog.records
    keras_pkm.models.add_memory(plain, (1,), MEMORY)
    # It makes one of its ids.
    keras_pkm.models.add_memory(make_plain("ESM"), (1,), MEMORY)
    (record,) = caplog.records
    assert "FNetBackbone has no padding mask" in record.getMessage()


def test_slot_numbers_are_not_regularized():
    """Keras would add all that a layer returns to the loss."""
    memory = keras_pkm.layers.ProductKeyMemory(
        8, top_k=4, key_dim=8, activity_regularizer="l2"
    )
    x = keras.random.normal((2, 3, 16))
    memory(x)
    (loss,) = memory.losses
    assert to_numpy(loss) > 0
    memory(x, return_memory_access=True)
    with pytest.raises(ValueError, match="regularize the numbers of slots"):
        memory(x, training=True, return_memory_access=True)
    block = keras_hub.layers.TransformerEncoder(8, 2)
    block(x)
    block = keras_pkm.layers.MemoryBlock(block, memory)
    block(x)
    with pytest.raises(ValueError, match="of the layer 'memory'. Leave it"):
        block(x, training=True)
