"""BERT with and without memory, for serving and for training."""

import pathlib
import tempfile
from typing import Literal

import keras
import keras_hub
import numpy as np
import tensorflow as tf

import keras_pkm
from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.in_turn import Case

Block = Literal["ffn", "pkm", "resm"]


def encoder(
    sizes: BertSizes,
    block: Block,
    batch: int,
    length: int,
    precision: str,
    implementation: str = "fastest",
) -> Case:
    """The traced encoder, as for serving."""
    keras.config.set_dtype_policy(precision)
    backbone = _backbone(sizes, block, length)
    inputs = {
        name: tf.constant(values)
        for name, values in _tokens(sizes, batch, length).items()
    }
    traced = tf.function(lambda: backbone(inputs, training=False))

    def forward():
        with keras_pkm.ops.use_implementation(implementation):
            outputs = traced()
        tf.test.experimental.sync_devices()
        return outputs

    return Case({"forward": forward}, {"parameters": _parameters(backbone)})


def masked_lm(
    sizes: BertSizes,
    block: Block,
    batch: int,
    length: int,
    precision: str,
    optimizer: Literal["PKMAdam", "Adam"],
) -> Case:
    """A masked language model's train step, 15 % of the tokens masked."""
    keras.config.set_dtype_policy(precision)
    model = _masked_lm(sizes, block, length)
    if optimizer == "Adam":
        model.compile(keras.optimizers.Adam(1e-4))
    else:
        model.compile(keras_pkm.optimizers.PKMAdam(1e-4))
    batch_of_examples = _examples(sizes, batch, length)
    return Case(
        {"train step": lambda: model.train_on_batch(*batch_of_examples)},
        {"parameters": _parameters(model)},
    )


def fit(
    sizes: BertSizes,
    batch: int,
    length: int,
    steps: int,
    held_out: int,
    monitored: bool,
) -> Case:
    """Training between two evaluations, with or without a usage monitor."""
    model = _masked_lm(sizes, "resm", length)
    model.compile(keras_pkm.optimizers.PKMAdam(1e-4))
    examples = tf.data.Dataset.from_tensors(_examples(sizes, batch, length))
    # Its thread can keep `fit` from returning for as long as it ran.
    options = tf.data.Options()
    options.autotune.enabled = False
    examples = examples.with_options(options)
    callbacks = []
    if monitored:
        # All outputs are written, as in pretraining.
        folder = pathlib.Path(tempfile.mkdtemp(prefix="monitoring-"))
        monitor = keras_pkm.callbacks.MemoryUsageMonitor(
            examples.repeat(-(-held_out // batch)),
            csv_path=folder / "memory.csv",
            tensorboard_dir=folder,
            counts_dir=folder / "slots",
        )
        callbacks.append(monitor)

    def train():
        model.fit(
            examples.repeat(steps),
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )

    return Case({"fit": train}, {"parameters": _parameters(model)})


def _masked_lm(sizes, block, length):
    backbone = _backbone(sizes, block, length)
    # Not used by the masked-LM loss; Keras would warn about it.
    backbone.pooled_dense.trainable = False
    return keras_pkm.models.MemoryBertMaskedLM(backbone)


def _examples(sizes, batch, length):
    """Inputs, labels and weights, 15 % of the tokens masked."""
    rng = np.random.default_rng(1)
    shape = (batch, max(1, round(0.15 * length)))
    features = {
        **_tokens(sizes, batch, length),
        "mask_positions": rng.integers(0, length, shape).astype("int32"),
    }
    labels = rng.integers(0, sizes.vocabulary_size, shape).astype("int32")
    return features, labels, np.ones(shape, "float32")


def _backbone(sizes, block, length):
    plain = keras_hub.models.BertBackbone(
        vocabulary_size=sizes.vocabulary_size,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        hidden_dim=sizes.hidden_dim,
        intermediate_dim=sizes.intermediate_dim,
        max_sequence_length=max(512, length),
    )
    return keras_pkm.models.add_memory(
        plain,
        memory_layers=sizes.memory_layers,
        memory_block=block,
        memory={
            "num_sub_keys": sizes.num_sub_keys,
            "num_heads": sizes.memory_heads,
            "top_k": sizes.top_k,
            "key_dim": sizes.key_dim,
            "values_initializer": "random_normal",
        },
    )


def _tokens(sizes, batch, length):
    rng = np.random.default_rng(0)
    shape = (batch, length)
    return {
        "token_ids": rng.integers(0, sizes.vocabulary_size, shape, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }


def _parameters(model):
    return sum(v.shape.num_elements() for v in model.trainable_variables)
