"""Every public class stands in a table, with the tests of its kind."""

import inspect

import pytest

import keras_pkm
from keras_pkm.models import families
from tests.conformance.callbacks_test import CALLBACKS
from tests.conformance.callbacks_test import PROBES
from tests.conformance.descriptors import FAMILIES
from tests.conformance.descriptors import LAYERS
from tests.conformance.descriptors import MODELS
from tests.conformance.metrics_test import METRICS
from tests.conformance.optimizers_test import OPTIMIZERS
from tests.conformance.optimizers_test import SCHEDULES
from tests.conformance.preprocessors_test import PREPROCESSORS

#: Classes that no such test fits, and why.
LAYERS_WITHOUT_TESTS = {
    "FactMemory": "it needs token ids; tests/backends/fact_memory_test.py",
    "Memory": "the base of ProductKeyMemory, and of another kind in a test",
    "NGramMemory": "it needs token ids; the tables of models have it",
    "ValueTable": "its inputs are slots and weights; tests/layers",
}
MODELS_WITHOUT_TESTS = {
    "QuestionAnswererPreprocessor": "the base of those in the table",
    **dict.fromkeys(
        (f"{family}QuestionAnswerer" for family in FAMILIES),
        "as QuestionAnswerer; attributes of the class alone differ",
    ),
    "WarmStartReport": "a data class that a function returns",
}
TABLES = {
    "callbacks": CALLBACKS,
    "layers": [*LAYERS, *LAYERS_WITHOUT_TESTS],
    "metrics": METRICS,
    "models": [*MODELS, *PREPROCESSORS, *PROBES, *MODELS_WITHOUT_TESTS],
    "optimizers": [*OPTIMIZERS, *SCHEDULES],
    # With tests of their own, in tests/teaching.
    "teaching": [
        "Fact",
        "FactTeacher",
        "Known",
        "MemoryPatch",
        "MemoryTeacher",
        "SlotImportance",
    ],
}


@pytest.mark.parametrize("package", TABLES)
def test_every_public_class_stands_in_a_table(package):
    module = getattr(keras_pkm, package)
    classes = {
        name
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
    }
    # Classes of families are made, and named nowhere.
    # A model may stand there with several kinds of memory.
    names = {name.split(" with ")[0] for name in TABLES[package]}
    made = {name for name in names if name in vars(families)}
    assert names - made == classes - made
