"""What fails today, and why: the strict xfails of this folder.

Whoever mends one takes its line away.
"""

import pytest

_CLONE_OF_HEAD = (
    AssertionError,
    "`clone_model` gives the masked-LM head an embedding table of its own, as "
    "it does in keras-hub's tasks: a clone should share the backbone's",
)
_TASK_IN_FILE = (
    ValueError,
    "keras-hub's tasks compile themselves when they are made, so that a task "
    "that was not compiled is, once it was loaded",
)

#: From the name of a test and its case to the error and the reason.
KNOWN_DEFECTS = {
    **{
        ("clone_model", f"Memory{family}MaskedLM"): _CLONE_OF_HEAD
        for family in ("Bert", "DistilBert", "Roberta")
    },
    ("task_in_file", "uncompiled"): _TASK_IN_FILE,
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
