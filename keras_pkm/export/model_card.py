"""The README of an exported model."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_pkm.export.encoder import Encoder

#: The name of the card's file.
CARD = "README.md"

_TITLES = {
    "encoder": "A text encoder with TF Hub's API",
    "preprocessor": "A text preprocessor with TF Hub's API",
    "mlm": "A masked language model: text with gaps to tokens",
    "classifier": "A text classifier: strings to classes",
    "qa": "A question answerer: a question and its context to an answer",
}
_CALLS = {
    "encoder": """\
inputs = {  # a preprocessor's outputs, int32 of shape (batch, length)
    "input_word_ids": tf.ones((1, 8), tf.int32),
    "input_mask": tf.ones((1, 8), tf.int32),
    "input_type_ids": tf.zeros((1, 8), tf.int32),
}
model(inputs)["pooled_output"]
""",
    "preprocessor": """\
inputs = model(["A sentence."])
tokens = [model.tokenize(["A question?"]), model.tokenize(["A text."])]
inputs = model.bert_pack_inputs(tokens, seq_length=64)
""",
    "mlm": """\
model(["Text with a {mask}."])["tokens"]
""",
    "classifier": """\
model(["A sentence."])["label"]
""",
    "pairs": """\
model({"text": ["A sentence."], "text_pair": ["Another one."]})["label"]
""",
    "qa": """\
model({"question": ["Who?"], "context": ["Ann met Bob."]})["answer"]
""",
}


def format_model_card(
    *,
    what: str,
    directory: str,
    name: str,
    mask_token: str,
    module: tf.train.Checkpoint,
    saved: pathlib.Path,
    encoder: Encoder | None,
    values_dtype: str,
    change: str,
    report: str,
    recipe: Mapping[str, Any] | None,
) -> str:
    """Returns the model card of an exported model, as Markdown.

    The signatures are those of the directory `saved`: to ask the functions for
    them would trace each a second time.
    """
    signatures = _read_signatures(saved)
    parts = [
        f"# {_TITLES[what]}",
        f"Licence: (to be filled in)\n\nExported from `{name}` by "
        "keras_pkm, which is not needed to load it.",
        "## Load it",
        _loading(what, directory, mask_token, signatures["serving_default"]),
        "## Inputs and outputs",
        *(
            _signature(name, signatures[name])
            for name in module.signatures_to_save
        ),
    ]
    if encoder:
        parts += ["## Size", _sizes(values_dtype, encoder, module), change]
    if report:
        parts += ["## Figures of its training", report]
    if recipe:
        recipe_text = json.dumps(recipe, indent=2)
        parts += ["## Training recipe", f"```json\n{recipe_text}\n```"]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def _read_signatures(saved: pathlib.Path) -> Mapping[str, Any]:
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((saved / "saved_model.pb").read_bytes())
    (graph,) = model.meta_graphs
    return graph.signature_def


def _loading(what: str, directory: str, mask_token: str, serve: Any) -> str:
    kind = "pairs" if "text_pair" in serve.inputs else what
    imports = "import tensorflow as tf\n"
    if what != "encoder":
        imports += "import tensorflow_text  # has operations of the model\n"
    call = _CALLS[kind].replace("{mask}", mask_token)
    return (
        f"```python\n{imports}\nmodel = tf.saved_model.load("
        f'"{directory}")\n{call}```\n\n'
        "It also loads with `hub.load`, `hub.KerasLayer` (tf_keras), "
        '`keras.layers.TFSMLayer(path, call_endpoint="__call__")` (Keras 3) '
        "and TensorFlow Serving"
        + (
            "."
            if what == "encoder"
            else ", whose standard build has TensorFlow Text."
        )
    )


def _signature(name: str, definition: Any) -> str:
    rows = [
        (kind, name, tf.as_dtype(tensor.dtype).name, _shape(tensor))
        for kind, tensors in (
            ("input", definition.inputs),
            ("output", definition.outputs),
        )
        for name, tensor in sorted(tensors.items())
    ]
    lines = [
        f"Signature `{name}`:",
        "",
        "| | name | dtype | shape |",
        "|---|---|---|---|",
        *(f"| {a} | `{b}` | {c} | {d} |" for a, b, c, d in rows),
    ]
    return "\n".join(lines)


def _shape(tensor: Any) -> str:
    shape = tf.TensorShape(tensor.tensor_shape)
    return "(" + ", ".join("?" if n is None else str(n) for n in shape) + ")"


def _sizes(
    values_dtype: str, encoder: Encoder, module: tf.train.Checkpoint
) -> str:
    variables = getattr(module, "mlm", module).variables
    count = sum(v.shape.num_elements() for v in variables)
    size = sum(v.shape.num_elements() * v.dtype.size for v in variables)
    lines = [f"{count:,} entries of variables, {size / 1e6:,.1f} MB."]
    if encoder.tables:
        lines += [
            "",
            "| memory in layer | slots | rows stored | width | dtype |",
            "|---:|---:|---:|---:|---|",
            *(
                f"| {number} | {table.num_slots:,} | {table.num_rows:,} | "
                f"{table.width} | {values_dtype} |"
                for number, table in encoder.tables.items()
            ),
        ]
    return "\n".join(lines)
