"""Memories of other packages compute what they computed there."""

import pathlib

import keras
import numpy as np
import pytest

from keras_pkm.layers.memories import tables
from keras_pkm.models import memories_from_state_dict
from tests.contracts import to_numpy

STORED = pathlib.Path(__file__).with_name("memory_state_dicts.npz")
# How make_memory_state_dicts.py made them.
TOP_K, HEADS = 4, 2
CASES = {
    "xlm": ("xlm", {}),
    "xlm, batch norm": ("xlm", {}),
    "xlm, deeper": ("xlm", {}),
    "xlm, no bias": ("xlm", {}),
    "product-key-memory": ("product-key-memory", {}),
    "memory-plus": ("memory-plus", {"num_heads": HEADS}),
    "memory-plus, narrow": ("memory-plus", {"num_heads": HEADS}),
    "memory-plus, no gate": ("memory-plus", {"num_heads": HEADS}),
}


def stored(name):
    """The state dict of an original, its inputs and its outputs."""
    state = {}
    with np.load(STORED) as arrays:
        for key in arrays:
            case, kind, *rest = key.split("|")
            if case == name and kind == "state":
                state[rest[0]] = arrays[key]
        return state, arrays[f"{name}|inputs"], arrays[f"{name}|outputs"]


def convert(name, state=None, **options):
    source, needed = CASES[name]
    if state is None:
        state, *_ = stored(name)
    return memories_from_state_dict(
        state, source, **{"top_k": TOP_K, **needed, **options}
    )


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_the_originals(name):
    state, inputs, expected = stored(name)
    ((prefix, memory),) = convert(name).items()
    assert all(key.startswith(prefix) for key in state)
    found = to_numpy(memory(inputs))
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"{name}: {difference:.1e} of the largest output")
    assert difference <= 1e-5


def test_values_that_are_shared_are_one_table():
    state, inputs, expected = stored("memory-plus")
    second = {
        name.replace("layers.3.", "layers.5."): array
        for name, array in state.items()
        if "values" not in name
    }
    found = convert("memory-plus", {**state, **second})
    assert list(found) == [f"layers.{n}.feed_forward." for n in (3, 5)]
    first, other = found.values()
    assert other.table is first.table
    np.testing.assert_allclose(
        to_numpy(other(inputs)), expected, rtol=0, atol=1e-4
    )
    x = keras.Input((None, inputs.shape[-1]))
    assert len(tables(keras.Model(x, other(first(x))))) == 1


def test_the_memory_of_the_notebook():
    state, inputs, expected = stored("xlm, batch norm")
    state = {
        name.split("after.")[1].replace("query_mlps.", ""): array
        for name, array in state.items()
    }
    ((prefix, memory),) = convert("xlm", state).items()
    assert prefix == "" and "query_proj.0.weight" in state
    np.testing.assert_allclose(
        to_numpy(memory(inputs)), expected, rtol=0, atol=1e-4
    )


def test_among_the_tensors_of_a_model():
    state, inputs, expected = stored("memory-plus")
    others = {
        "layers.2.feed_forward.w1.weight": np.ones((3, 3)),
        "tok_embeddings.weight": np.ones((9, 3)),
    }
    (memory,) = convert("memory-plus", {**others, **state}).values()
    np.testing.assert_allclose(
        to_numpy(memory(inputs)), expected, rtol=0, atol=1e-4
    )


def ones(*shape):
    return np.ones(shape, "float32")


@pytest.mark.parametrize(
    "name, added, match",
    [
        ("xlm", {"head_permutations": ones(2, 49)}, "mem_shuffle_indices"),
        ("xlm", {"query_proj.query_convs.0.weight": ones(1)}, "mem_input2d"),
        (
            "xlm, deeper",
            {"query_proj.query_mlps.1.0.weight": ones(1)},
            "mem_multi_query_net",
        ),
        (
            "xlm",
            {"query_proj.query_mlps.3.layer.weight": ones(1)},
            "mem_grouped_conv",
        ),
        ("xlm", {"keys": ones(7, 3)}, "mem_use_different_keys"),
        ("xlm", {"keys": ones(2, 49, 6)}, 'mem_implementation="flat"'),
        ("xlm", {"values.weight": ones(49, 5)}, "mem_v_dim"),
        ("xlm", {"values.weight": ones(40, 12)}, r"needs \(49, 12\)"),
        ("xlm", {"surprise": ones(1)}, "no 'memories.4_in.surprise'"),
        (
            "product-key-memory",
            {"pre_layernorm.weight": ones(12)},
            "pre_layernorm has no counterpart",
        ),
        ("product-key-memory", {"output_norm.weight": ones(12)}, "norm_output"),
        ("product-key-memory", {"norm.fn.weight": ones(3)}, "use_layernorm"),
        (
            "product-key-memory",
            {"maybe_concat_combine.2.weight": ones(12, 6)},
            "concat_values_and_combine",
        ),
        ("memory-plus", {"gating.weight": ones(1, 12)}, "mem_gated"),
        ("memory-plus", {"values_u.weight": ones(49, 12)}, "peer_variant"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(name, added, match):
    state, *_ = stored(name)
    prefix = {"product-key-memory": "", "xlm, deeper": "memories.11_in."}.get(
        name, next(iter(state)).rpartition("keys")[0]
    )
    state |= {prefix + key: value for key, value in added.items()}
    with pytest.raises(ValueError, match=match):
        convert(name, state)


@pytest.mark.parametrize(
    "name, options, match",
    [
        ("xlm", {"mem_temperature": 2.0}, "mem_temperature=2.0"),
        ("xlm", {"mem_score_subtract": "min"}, "mem_score_subtract='min'"),
        (
            "product-key-memory",
            {"non_competitive_gates": True},
            "non_competitive_gates=True",
        ),
    ],
)
def test_options_that_no_tensor_shows(name, options, match):
    with pytest.raises(ValueError, match=match):
        convert(name, options=options)
    convert(name, options={"emb_dim": 12})


def test_a_projection_with_a_bias_and_no_gate_is_refused():
    # The originals make one where mem_v_dim is given.
    state, *_ = stored("memory-plus")
    state = {k: v for k, v in state.items() if "swilu" not in k}
    with pytest.raises(ValueError, match="mem_v_dim has no counterpart"):
        convert("memory-plus", state)


@pytest.mark.parametrize(
    "name, left_out, match",
    [
        ("xlm", "values.weight", "must have the values of its first memory"),
        ("xlm", "query_proj", "mem_query_layer_sizes=''"),
        ("product-key-memory", "norm.bias", "must have 'norm.bias'"),
    ],
)
def test_what_is_missing(name, left_out, match):
    state, *_ = stored(name)
    state = {k: v for k, v in state.items() if left_out not in k}
    with pytest.raises(ValueError, match=match):
        convert(name, state)


def test_equal_values_are_one_table_only_if_they_were():
    """Two tables that are still zero are two tables."""
    state, *_ = stored("xlm")
    other = {
        name.replace("memories.4_", "memories.7_"): array
        for name, array in state.items()
    }
    first, second = convert("xlm", {**state, **other}).values()
    assert first.table is not second.table
    options = {"mem_share_values": True}
    first, second = convert("xlm", {**state, **other}, options=options).values()
    assert first.table is second.table


def test_wrong_arguments():
    with pytest.raises(ValueError, match="top_k=4, mem_knn=32"):
        convert("xlm", options={"mem_knn": 32})
    state, *_ = stored("memory-plus")
    with pytest.raises(ValueError, match="`num_heads` must be given"):
        convert("memory-plus", num_heads=None)
    with pytest.raises(ValueError, match="must divide half of the 28 rows"):
        convert("memory-plus", num_heads=5)
    with pytest.raises(ValueError, match="`num_heads` must be that of.*keys'"):
        convert("xlm", num_heads=7)
    with pytest.raises(ValueError, match="must have a memory of 'xlm'"):
        memories_from_state_dict(state, "xlm", top_k=4)
    with pytest.raises(ValueError, match='"xlm" or "product-key-memory"'):
        memories_from_state_dict(state, "peer", top_k=4)
