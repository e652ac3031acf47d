"""Runs the examples of the public docstrings."""

import doctest
import inspect

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm

NAMES = [
    f"{package}.{name}"
    for package in (
        "callbacks",
        "export",
        "layers",
        "metrics",
        "models",
        "ops",
        "optimizers",
        "teaching",
    )
    for name in getattr(keras_pkm, package).__all__
]
WITHOUT_EXAMPLE = {
    "models.QuestionAnswererPreprocessor",
    "models.DistilBertQuestionAnswererPreprocessor",
    "models.RobertaQuestionAnswererPreprocessor",
    "models.WarmStartReport",
    # As that of their base, `QuestionAnswerer`.
    "models.BertQuestionAnswerer",
    "models.DistilBertQuestionAnswerer",
    "models.RobertaQuestionAnswerer",
    # It needs a directory on disk.
    "models.from_transformers",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow, id=name)
        # Each exports a model.
        if name.startswith("export.")
        else name
        for name in NAMES
    ],
)
def test_examples(name):
    package, symbol = name.split(".")
    thing = getattr(getattr(keras_pkm, package), symbol)
    finder = doctest.DocTestFinder(recurse=True)
    globs = {
        "keras": keras,
        "keras_hub": keras_hub,
        "keras_pkm": keras_pkm,
        "np": np,
        "tf": tf,
    }
    module = inspect.getmodule(thing)
    tests = finder.find(thing, symbol, module=module, globs=globs)
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    failures = []
    for test in tests:
        runner.run(test, out=failures.append)
    results = runner.summarize(verbose=False)
    assert results.failed == 0, "".join(failures)
    assert results.attempted or name in WITHOUT_EXAMPLE, f"{name}: no example"
