"""Loads exported models in a process that knows TensorFlow alone.

    python load_anywhere.py EXPORTS INPUTS OUTPUTS

runs each loader on each model that it can take, with the inputs in an .npz
file, and writes their outputs to another one. (Run by `fresh_process_test.py`.)
"""

import os
import sys

for name in ("keras_pkm", "keras_hub", "keras_nlp"):
    sys.modules[name] = None  # importing it is an error

import keras  # noqa: E402

# Beside this script.
import loaders  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401
import tf_keras  # noqa: E402
from tensorflow.python.tools import saved_model_cli  # noqa: E402

exports, inputs_file, outputs_file = sys.argv[1:]
stored = np.load(inputs_file)
inputs, found = {}, {}  # by case and name
for key in stored.files:
    case, name = key.split("/")
    inputs.setdefault(case, {})[name] = tf.constant(stored[key])


def keep(case, loader, outputs):
    for name, value in outputs.items():
        if isinstance(value, list):
            for number, layer in enumerate(value):
                found[f"{case}/{loader}/{name}/{number}"] = layer.numpy()
        else:
            found[f"{case}/{loader}/{name}"] = value.numpy()


def run_saved_model_cli(path, case, features):
    out = os.path.join(os.path.dirname(outputs_file), case)
    files = []
    for name, value in features.items():
        file = f"{out}-{name}.npy"
        np.save(file, value.numpy())
        files.append(f"{name}={file}")
    sys.argv = [
        "saved_model_cli",
        *f"run --dir {path} --tag_set serve".split(),
        *f"--signature_def serving_default --outdir {out} --overwrite".split(),
        *("--inputs", ";".join(files)),
    ]
    try:
        saved_model_cli.main()
    except SystemExit as exit:
        if exit.code:
            raise
    for file in os.listdir(out):
        found[f"{case}/saved_model_cli/{file.removesuffix('.npy')}"] = np.load(
            os.path.join(out, file), allow_pickle=True
        )


# Of "encoder@7x12" the kind is "encoder".
for kind in dict.fromkeys(case.split("@")[0] for case in inputs):
    path = os.path.join(exports, kind)
    tried = loaders.LOADERS[kind]
    loaded = hub.load(path)
    callables = {"hub.load": loaded}
    if "hub.KerasLayer" in tried:
        callables["hub.KerasLayer"] = hub.KerasLayer(path)
    if "TFSMLayer" in tried:
        callables["TFSMLayer"] = keras.layers.TFSMLayer(
            path, call_endpoint="__call__"
        )
    cases = [case for case in inputs if case.split("@")[0] == kind]
    for case in cases:
        features = inputs[case]
        # Models of one input are called with it.
        x = features if len(features) > 1 else next(iter(features.values()))
        for name, loader in callables.items():
            keep(case, name, loader(x))
        if "memory_access" in loaded.signatures:
            access = loaded.signatures["memory_access"](**features)
            keep(case, "memory_access", access)
    # It loads the model anew each time.
    if "saved_model_cli" in tried:
        run_saved_model_cli(path, cases[0], inputs[cases[0]])

encoder = hub.load(os.path.join(exports, "encoder"))
x = inputs["encoder@7x12"]
positions = tf.constant([[1, 2]] * len(x["input_mask"]))
keep(
    "encoder@7x12", "mlm", encoder.mlm({**x, "masked_lm_positions": positions})
)

preprocessor = hub.load(os.path.join(exports, "preprocessor"))
tokens = preprocessor.tokenize(inputs["preprocessor"]["sentences"])
packed = preprocessor.bert_pack_inputs([tokens, tokens], seq_length=9)
keep("preprocessor", "bert_pack_inputs", packed)
special = preprocessor.tokenize.get_special_tokens_dict()
keep("preprocessor", "special", special)

# Fine-tuning through TF Hub's own layer. The goal is far from what any head
# says at first, so that five steps come nearer to it.
tf_keras.utils.set_random_seed(0)
goal = tf.fill((len(positions), 1), 10.0)
layer = hub.KerasLayer(os.path.join(exports, "encoder"), trainable=True)
names = {name: tf_keras.Input((None,), dtype="int32", name=name) for name in x}
model = tf_keras.Model(
    names, tf_keras.layers.Dense(1)(layer(names)["pooled_output"])
)
before = [variable.numpy() for variable in layer.trainable_variables]
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(tf.square(model(x, training=True) - goal))
gradients = tape.gradient(loss, layer.trainable_variables)
for variable, gradient in zip(layer.trainable_variables, gradients):
    if "values" in variable.name:
        key = f"training/{variable.shape[0]}/{len(found)}"
        found[f"{key}/is_sparse"] = isinstance(gradient, tf.IndexedSlices)
        found[f"{key}/rows"] = gradient.indices.numpy()
model.compile(tf_keras.optimizers.Adam(1e-2), "mse")
losses = model.fit(x, goal, epochs=5, verbose=0)
found["training/losses"] = losses.history["loss"]
found["training/changed"] = [
    not np.array_equal(old, new)
    for old, new in zip(before, layer.trainable_variables)
]
np.savez(outputs_file, **found)
