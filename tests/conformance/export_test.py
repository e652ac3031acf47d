"""SavedModels that `model.export` writes."""

import functools

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tests.conformance.comparing import same_outputs
from tests.conformance.descriptors import IN_DEPTH
from tests.conformance.descriptors import built
from tests.conformance.descriptors import inputs_of
from tests.conformance.known_defects import cases

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    @functools.cache
    def export(name):
        path = tmp_path_factory.mktemp("export")
        built(name).export(path, verbose=False)
        return path

    return export


# Tasks have the encoder layer, too.
EXPORTED = [name for name in IN_DEPTH if name != "PKMTransformerEncoder"]


@pytest.mark.parametrize("name", EXPORTED)
def test_export(name, exported):
    inputs = inputs_of(name)
    loaded = tf.saved_model.load(exported(name))
    same_outputs(loaded.serve(inputs), built(name)(inputs))


def graph_of(path):
    """The graph that a SavedModel holds, its functions included."""
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((path / "saved_model.pb").read_bytes())
    return saved_model.meta_graphs[0].graph_def


@pytest.mark.parametrize("name", cases("portable_export", EXPORTED))
def test_an_exported_graph_runs_on_any_device(name, exported):
    """Neither kernels of sparse matrices nor functions for XLA."""
    functions = graph_of(exported(name)).library.function
    ops = {node.op for function in functions for node in function.node_def}
    assert "MatMul" in ops
    assert not {op for op in ops if "SparseMatrix" in op}
    assert not [
        function.signature.name
        for function in functions
        if function.attr["_XlaMustCompile"].b
    ]
