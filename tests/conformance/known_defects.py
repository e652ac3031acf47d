"""What fails today, and why: the strict xfails of this folder.

Whoever mends one takes its line away.
"""

import pytest
import tensorflow as tf

_XLA = (
    tf.errors.InvalidArgumentError,
    "the kernels for CPUs have no form under XLA, and nothing says so before "
    "TensorFlow does, deep inside: an error of ours should name `jit_compile`",
)
_EXPORT = (
    AssertionError,
    "`model.export()` writes the kernels for CPUs into the graph, which "
    "devices without them cannot run: it should write portable forms",
)
_CLONE_OF_HEAD = (
    AssertionError,
    "`clone_model` gives the masked-LM head an embedding table of its own, "
    "as in keras-hub's tasks: the clone's head should share the backbone's",
)
_TASK_IN_FILE = (
    (UserWarning, ValueError),
    "tasks override `compile` and not `compile_from_config`, as keras-hub's "
    "do: `load_model` warns, and compiles with stock Adam, whether the task "
    "was saved with another optimizer or with none",
)
_BATCH_NORM = (
    "`MaskedBatchNormalization` returns float32 under every policy, and takes "
    "inputs of rank 2 alone in training, but declares neither: Keras has "
    "others' word for the dtype, and TensorFlow's for the rank"
)
_STALENESS = (
    "`MemoryStaleness.update_state` reads a variable as a Python number, and "
    "under `tf.distribute` the steps of all replicas are summed"
)

#: From the name of a test and its case to the error and the reason.
KNOWN_DEFECTS = {
    ("clone_model", "PKMBertBackbone"): (
        TypeError,
        "`clone_model` takes `__init__(*args, ...)` for that of a functional "
        "model: the constructor should spell out its arguments",
    ),
    **{
        ("clone_model", f"PKM{family}MaskedLM"): _CLONE_OF_HEAD
        for family in ("Bert", "DistilBert", "Roberta")
    },
    ("gradient_under_xla", "ProductKeyMemory"): _XLA,
    ("gradient_under_xla", "PKMTransformerEncoder"): _XLA,
    ("jit_compile_before_build", "ProductKeyMemory"): _XLA,
    ("apply_under_xla", "PKMAdam"): _XLA,
    ("portable_export", "ProductKeyMemory"): _EXPORT,
    ("portable_export", "PKMTransformerEncoder"): _EXPORT,
    ("declared_outputs", "MaskedBatchNormalization-mixed_bfloat16"): (
        AssertionError,
        _BATCH_NORM,
    ),
    ("any_rank", "MaskedBatchNormalization"): (
        tf.errors.InvalidArgumentError,
        _BATCH_NORM,
    ),
    ("gradient_accumulation", "PKMAdam"): (
        TypeError,
        "`PKMAdam` refuses `gradient_accumulation_steps` with Python's own "
        "error, which names no remedy: `accumulation_steps` of the task",
    ),
    ("default_optimizer", "tasks"): (
        AssertionError,
        "tasks compile with stock Adam, which turns the gradients of value "
        "tables into dense ones: the default should be `PKMAdam`",
    ),
    ("task_in_file", "compiled"): _TASK_IN_FILE,
    ("task_in_file", "uncompiled"): _TASK_IN_FILE,
    ("metric_in_graph", "ClassMemoryUsage"): (
        tf.errors.OperatorNotAllowedInGraphError,
        "`ClassMemoryUsage.result` unpacks a tensor, which graphs cannot",
    ),
    ("metric_in_graph", "MemoryStaleness"): (NotImplementedError, _STALENESS),
    ("metric_of_replicas", "MemoryStaleness"): (AssertionError, _STALENESS),
}


def cases(test, names):
    """The cases of a test for `parametrize`, the known defects marked."""
    return [
        pytest.param(name, marks=_marks(test, name), id=name) for name in names
    ]


def _marks(test, name):
    if (test, name) not in KNOWN_DEFECTS:
        return ()
    error, reason = KNOWN_DEFECTS[test, name]
    return pytest.mark.xfail(strict=True, raises=error, reason=reason)
