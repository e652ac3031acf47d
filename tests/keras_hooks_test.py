"""One canary for each private hook that we override or call.

They fail when a release moves a hook, and name what has to be looked at.
CONTRIBUTING.md lists the hooks.
"""

import importlib
import inspect
import json

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from keras.src.trainers import data_adapters
from keras_hub.src.utils import preset_utils
from tensorflow.python.framework import op_callbacks

import keras_pkm
from keras_pkm.callbacks.variable_identity import identify_variables
from keras_pkm.ops.tensorflow.stock_gradient import in_forward_mode

TASK = keras_hub.models.BertMaskedLM
ADAM = keras.optimizers.Adam


@pytest.mark.parametrize(
    "owner, hook, arguments",
    [
        # keras_pkm/optimizers/pkm_adam.py
        (ADAM, "_backend_apply_gradients", ["grads", "trainable_variables"]),
        (ADAM, "build", ["var_list"]),
        (
            ADAM,
            "add_optimizer_variables",
            ["trainable_variables", "name", "initializer"],
        ),
        # keras_pkm/optimizers/loss_scale_optimizer.py
        (keras.optimizers.LossScaleOptimizer, "check_finite", ["grads"]),
        # keras_pkm/trainers/tensorflow_steps.py, task_training.py
        (TASK, "_maybe_symbolic_build", ["iterator", "data_batch"]),
        (TASK, "_symbolic_build", ["iterator", "data_batch"]),
        (TASK, "_flatten_layers", ["include_self", "recursive"]),
        (TASK, "save_task_weights", ["filepath"]),
        (TASK, "load_task_weights", ["filepath"]),
        # keras_pkm/layers/masked_batch_normalization.py
        (
            keras.layers.BatchNormalization,
            "call",
            ["inputs", "training", "mask"],
        ),
        # keras_pkm/layers/pkm_transformer_encoder.py
        (keras_hub.layers.TransformerEncoder, "build", ["inputs_shape"]),
    ],
)
def test_hook(owner, hook, arguments):
    where = f"{owner.__name__}.{hook}"
    assert hasattr(owner, hook), f"{where} is gone: see who overrides it"
    # Further ones do not matter: the tests of what uses it would tell.
    actual = inspect.signature(getattr(owner, hook)).parameters
    missing = {*arguments} - {*actual}
    assert not missing, f"{where} has no {missing}"


def test_data_adapters():
    """`ModelBatches` cuts arrays, and reads `PyDataset`, as `fit` does."""
    arrays = np.arange(10.0), np.arange(10)
    adapter = data_adapters.get_data_adapter(
        *arrays, batch_size=None, steps_per_epoch=4
    )
    assert adapter.num_batches == 4
    adapter.on_epoch_begin()
    sizes = [len(y) for _, y in adapter.get_numpy_iterator()]
    adapter.on_epoch_end()
    assert sizes == [3, 3, 3, 1]
    spec, _ = adapter.get_tf_dataset().element_spec
    assert spec.shape == [None]
    endless = type("", (keras.utils.PyDataset,), {"num_batches": None})
    assert data_adapters.get_data_adapter(endless()).num_batches is None


def test_word_pieces_have_offsets():
    """keras_pkm/text/tokenize.py: keras-hub's tokenizer gives ids alone."""
    tokenizer = keras_hub.models.BertTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ab", "##c"]
    )
    ids, starts, ends = tokenizer._fast_word_piece.tokenize_with_offsets(
        ["abc"]
    )
    assert ids.to_list() == [[5, 6]]
    assert (starts.to_list(), ends.to_list()) == ([[0, 2]], [[2, 3]])


def test_apply_counts_every_call():
    """A skipped step of PKMAdam takes this count back."""
    source = inspect.getsource(ADAM.apply)
    assert source.count("self._iterations.assign_add(1)") == 1
    assert source.count("self._backend_apply_gradients(") == 1


def test_compile_makes_another_loss():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(loss="mse")
    first = model._compile_loss
    model.compile(loss="mse")
    assert first is not None and model._compile_loss is not first


def test_loss_tracker():
    """`accumulated_train_step` puts each part's loss into it."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse")
    assert isinstance(model._loss_tracker, keras.metrics.Mean)


def test_adam_asks_for_its_moments_at_once():
    """PKMAdam keeps those of tables."""
    source = inspect.getsource(ADAM.build)
    asked = 'add_optimizer_variables(\n            var_list, ["momentum", "ve'
    assert asked in source


def test_the_class_of_a_preset_is_found_by_its_backbone():
    """keras_pkm/models/families.py"""
    source = inspect.getsource(preset_utils.find_subclass)
    assert "x.backbone_cls == backbone_cls" in source
    source = inspect.getsource(preset_utils.KerasPresetLoader.load_task)
    assert "issubclass(check_config_class(task_config), cls)" in source


def test_the_layout_of_presets(tmp_path):
    """MemoryBackbone writes into them, commands read them."""
    backbone = keras_hub.models.BertBackbone(5, 1, 1, 2, 2)
    tokenizer = keras_hub.models.BertTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    )
    task = TASK(backbone, keras_hub.models.BertMaskedLMPreprocessor(tokenizer))
    task.save_to_preset(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["config"]["dtype"]["config"]["name"] == "float32"
    saved = json.loads((tmp_path / "task.json").read_text())
    assert saved["class_name"] == "BertMaskedLM"
    assert (tmp_path / "tokenizer.json").exists()
    assert (tmp_path / "assets" / "tokenizer").is_dir()


def test_what_a_backbone_with_memories_hides_and_has():
    """keras_pkm/models/memory_backbone.py"""
    backbone = keras_hub.models.BertBackbone(5, 1, 1, 2, 2)
    assert backbone.token_embedding is backbone._token_embedding
    assert all(map(backbone._flatten_layers().__contains__, backbone.layers))


def test_keras_reads_the_arguments_of_call_when_a_layer_is_made():
    """MemoryBlock has those of its block."""
    layer = keras_pkm.layers.MemoryBlock(
        keras_hub.layers.TransformerEncoder(8, 2)
    )
    assert "padding_mask" in inspect.signature(layer.call).parameters
    assert layer._call_has_training_arg


def test_encoder_sublayers():
    """Warm starts go by these names; PKMTransformerEncoder builds them."""
    encoder = keras_hub.layers.TransformerEncoder(8, 2)
    encoder.build((None, None, 4))
    for name in (
        "self_attention_layer",
        "self_attention_layer_norm",
        "self_attention_dropout",
        "feedforward_layer_norm",
        "feedforward_intermediate_dense",
        "feedforward_output_dense",
        "feedforward_dropout",
    ):
        assert getattr(encoder, f"_{name}").name == name


def test_distributed_values_hand_out_their_component(mirrored):
    with mirrored.scope():
        variable = tf.Variable(1.0)
    assert isinstance(variable, tf.distribute.DistributedValues)
    names = mirrored.run(lambda: tf.constant(variable._get().device))
    first, second = mirrored.experimental_local_results(names)
    assert first != second


def test_merge_call():
    assert callable(tf.__internal__.distribute.interim.maybe_merge_call)


def test_layers_without_xla():
    """`compile(jit_compile="auto")` asks each layer."""
    layer = keras.layers.Dense(1)
    assert layer.supports_jit
    layer.supports_jit = False
    model = keras.Sequential([keras.Input((1,)), layer])
    model.compile()
    assert not model.jit_compile


def test_what_xla_compiles_can_be_told():
    """keras_pkm/ops/tensorflow/xla.py"""
    contexts = []

    @tf.function(jit_compile=True)
    def compiled(x):
        graph = tf.compat.v1.get_default_graph()
        contexts.append(graph.outer_graph._get_control_flow_context())
        return x

    tf.function(lambda x: compiled(x))(tf.zeros(1))
    assert contexts[0].IsXLAContext() and contexts[0].outer_context is None


def test_instrumented_graphs_can_be_told():
    """keras_pkm/ops/tensorflow/kernels.py"""
    assert not op_callbacks.should_invoke_op_callbacks()
    tf.debugging.enable_check_numerics()
    try:
        assert op_callbacks.should_invoke_op_callbacks()
    finally:
        tf.debugging.disable_check_numerics()
    assert not op_callbacks.should_invoke_op_callbacks()


def test_forward_mode_can_be_told():
    """keras_pkm/ops/tensorflow/stock_gradient.py"""
    tensor, other = tf.constant(1.0), tf.constant(1.0)
    with tf.autodiff.ForwardAccumulator(tensor, tensor):
        assert in_forward_mode(other, tensor)
        assert not in_forward_mode(other)
    assert not in_forward_mode(tensor)


def test_another_backend_is_refused_at_once(monkeypatch):
    from keras_pkm.ops import backend

    monkeypatch.setattr(keras.backend, "backend", lambda: "openvino")
    with pytest.raises(ImportError, match="tensorflow, jax.*: 'openvino'. Set"):
        importlib.reload(backend)


def test_attributes_that_are_read():
    head = keras_hub.layers.MaskedLMHead(vocabulary_size=10)
    head.build((None, 4, 8), (None, 2))
    (norm,) = (
        layer
        for layer in head._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    )
    assert norm.epsilon == 1e-5
    optimizer = ADAM(gradient_accumulation_steps=2)
    optimizer._iterations.assign(3)
    assert optimizer.iterations == 1
    assert hasattr(keras.Sequential(), "_distribute_strategy")


def test_lists_of_parts():
    """`identify_variables` knows Keras' own lists of a layer's parts.

    It must not take them for attributes of a user's code.
    """
    sequential = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    functional = keras.Model(sequential.inputs, sequential.outputs)
    for model in (sequential, functional):
        model.compile("adam", "mse", metrics=["mae"])
        model.fit(np.ones((1, 2)), np.ones((1, 2)), verbose=0)
        (kernel, bias) = identify_variables(model)["model"]
        assert "self" not in kernel + bias
