"""BERT with and without memory, for serving and for training."""

import pathlib
import tempfile
from typing import Literal

import keras
import tensorflow as tf

import keras_pkm
from benchmarks.contenders.bert_models import Block
from benchmarks.contenders.bert_models import count_parameters
from benchmarks.contenders.bert_models import make_backbone
from benchmarks.contenders.bert_models import make_examples
from benchmarks.contenders.bert_models import make_masked_lm
from benchmarks.contenders.bert_models import make_tokens
from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.in_turn import Case


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
    backbone = make_backbone(sizes, block, length)
    inputs = {
        name: tf.constant(values)
        for name, values in make_tokens(sizes, batch, length).items()
    }
    traced = tf.function(lambda: backbone(inputs, training=False))

    def forward():
        with keras_pkm.ops.use_implementation(implementation):
            outputs = traced()
        tf.test.experimental.sync_devices()
        return outputs

    return Case(
        {"forward": forward}, {"parameters": count_parameters(backbone)}
    )


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
    model = make_masked_lm(sizes, block, length)
    if optimizer == "Adam":
        model.compile(keras.optimizers.Adam(1e-4))
    else:
        model.compile(keras_pkm.optimizers.PKMAdam(1e-4))
    batch_of_examples = make_examples(sizes, batch, length)
    return Case(
        {"train step": lambda: model.train_on_batch(*batch_of_examples)},
        {"parameters": count_parameters(model)},
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
    model = make_masked_lm(sizes, "resm", length)
    model.compile(keras_pkm.optimizers.PKMAdam(1e-4))
    examples = tf.data.Dataset.from_tensors(make_examples(sizes, batch, length))
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

    return Case({"fit": train}, {"parameters": count_parameters(model)})
