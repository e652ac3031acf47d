import contextlib

import numpy as np
import pytest
import safetensors.numpy

from keras_pkm.layers.memories import memories
from keras_pkm.ops.tensorflow.replicas import components
from keras_pkm.teaching import MemoryPatch
from keras_pkm.teaching.patch_file import read_patch
from keras_pkm.teaching.patch_file import write_patch
from keras_pkm.teaching.row_changes import RowChanges
from keras_pkm.teaching.row_changes import TableCopy
from tests.strategies import each_strategy
from tests.teaching.models import make_model
from tests.teaching.models import md5
from tests.teaching.models import tables
from tests.teaching.models import teach


def make_patch():
    """A patch of no model in particular."""
    rows = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    changes = RowChanges(np.array([3, 7, 200]), *rows)
    return MemoryPatch({1: changes}, {1: 256, 3: 256}, "abc")


def test_reverted_and_applied_to_the_last_bit():
    model = make_model()
    before = md5(model)
    patch = teach(model)
    after = md5(model)
    assert after != before
    patch.revert(model)
    assert md5(model) == before
    patch.apply(model)
    assert md5(model) == after
    # A copy takes it, too.
    copy = make_model()
    patch.apply(copy)
    assert md5(copy) == after


@pytest.mark.slow
def test_has_the_rows_that_changed_and_no_others():
    model = make_model()
    start = tables(model)
    patch = teach(model)
    for number, table in tables(model).items():
        changed = np.nonzero((table != start[number]).any(axis=1))[0]
        change = patch.memories[number]
        np.testing.assert_array_equal(change.slots, changed)
        np.testing.assert_array_equal(change.old, start[number][changed])
        np.testing.assert_array_equal(change.new, table[changed])
    assert patch.num_rows == sum(map(len, patch.memories.values()))


def test_signs_of_zero_and_nan_are_bits():
    before = np.array([[0.0, 1.0], [np.nan, 2.0], [3.0, 4.0]], "float32")
    after = before.copy()
    after[0, 0] = -0.0
    changes = RowChanges.between(TableCopy(before), TableCopy(after))
    assert changes.slots.tolist() == [0]
    changes.check(before[[0]], 1, "applied")
    with pytest.raises(ValueError, match="has already been applied"):
        changes.check(after[[0]], 1, "applied")


def test_saved_and_loaded(tmp_path):
    model = make_model()
    before = md5(model)
    patch = teach(model)
    after = md5(model)
    path = tmp_path / "facts.safetensors"
    patch.save(path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    loaded = MemoryPatch.load(path)
    loaded.revert(model)
    assert md5(model) == before
    loaded.apply(model)
    assert md5(model) == after


def test_rows_that_are_alike_are_stored_once(tmp_path):
    rows = np.random.default_rng(0).normal(size=(3, 500)).astype("float32")
    sizes = {}
    for name, index in (("all", [0, 1, 2]), ("three", [0, 1, 2] * 4)):
        changes = RowChanges(
            np.arange(len(index)),
            np.zeros((len(index), 500), "float32"),
            rows[index],
        )
        path = tmp_path / name
        write_patch(path, {1: changes}, {1: 99}, "")
        sizes[name] = path.stat().st_size
        ((_, loaded),) = read_patch(path)[0].items()
        for part in ("slots", "old", "new"):
            expected = getattr(changes, part)
            np.testing.assert_array_equal(getattr(loaded, part), expected)
    assert sizes["three"] < sizes["all"] + 500
    # As before there were numbers of rows.
    with safetensors.safe_open(tmp_path / "all", "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        facts = file.metadata() | {"format": "keras_pkm memory patch 1"}
    safetensors.numpy.save_file(arrays, tmp_path / "old", facts)
    ((_, loaded),) = read_patch(tmp_path / "old")[0].items()
    np.testing.assert_array_equal(loaded.new, rows)
    with safetensors.safe_open(tmp_path / "three", "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
    arrays["1.new_index"] += 1
    safetensors.numpy.save_file(arrays, tmp_path / "broken", facts)
    with pytest.raises(ValueError, match="broken' must"):
        read_patch(tmp_path / "broken")


@pytest.mark.slow
def test_it_is_shown_without_its_arrays():
    patch = teach(make_model())
    numbers = ", ".join(map(str, patch.memories))
    assert repr(patch) == (
        f"MemoryPatch({patch.num_rows} rows; memories: {numbers})"
    )


@pytest.mark.slow
def test_twice_is_refused():
    model = make_model()
    patch = teach(model)
    state = md5(model)
    with pytest.raises(ValueError, match="does not have it yet"):
        patch.apply(model)
    assert md5(model) == state
    patch.revert(model)
    state = md5(model)
    with pytest.raises(ValueError, match="rows from before the patch"):
        patch.revert(model)
    assert md5(model) == state


@pytest.mark.slow
def test_patches_that_share_rows_are_reverted_in_reverse_order():
    model = make_model()
    states = [md5(model)]
    patches = []
    for _ in range(2):
        patches.append(teach(model))
        states.append(md5(model))
    with pytest.raises(ValueError, match="in the reverse order"):
        patches[0].revert(model)
    assert md5(model) == states[2]
    patches[1].revert(model)
    assert md5(model) == states[1]
    patches[0].revert(model)
    assert md5(model) == states[0]


@pytest.mark.slow
def test_nothing_is_written_if_one_memory_has_other_rows():
    model = make_model()
    patch = teach(model)
    patch.revert(model)
    last = max(patch.memories)
    slot = patch.memories[last].slots[-1]
    values = memories(model)[last].table.values
    table = values.numpy()
    table[slot, 0] += 1
    values.assign(table)
    state = md5(model)
    with pytest.raises(ValueError, match=f"1 of .*slot {slot}"):
        patch.apply(model)
    assert md5(model) == state


def test_other_models_are_refused():
    patch = teach(make_model())
    with pytest.raises(ValueError, match="whose other weights differ"):
        patch.apply(make_model(seed=1))
    other = make_model(value_dim=8)
    with pytest.raises(ValueError, match="whose other weights differ"):
        patch.apply(other)
    moved = make_model()
    moved.layers[-1].bias.assign([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="trained further"):
        patch.apply(moved)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "patch.safetensors"
    with pytest.raises(ValueError, match="cannot be read"):
        MemoryPatch.load(path)
    make_patch().save(path)
    whole = path.read_bytes()
    for damaged in (whole[:100], whole[:-8], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="patch.safetensors"):
            MemoryPatch.load(path)
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match="damaged: its rows have changed"):
        MemoryPatch.load(path)
    safetensors.numpy.save_file({"a": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="must be a file of `MemoryPatch.save"):
        MemoryPatch.load(path)


@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("1.slots", lambda slots: slots + 10_000),
        ("1.slots", lambda slots: slots - 1_000),
        ("1.slots", lambda slots: slots[::-1]),
        ("1.slots", lambda slots: slots.astype("float32")),
        ("1.old", lambda rows: rows[:-1]),
        ("1.new", lambda rows: rows[:, :-1]),
        ("1.new", lambda rows: rows.astype("float64")),
        ("3.new", lambda rows: None),
    ],
)
def test_files_that_contradict_themselves(tmp_path, part, broken):
    path = tmp_path / "patch.safetensors"
    make_patch().save(path)
    with safetensors.safe_open(path, "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        facts = file.metadata()
    changed = broken(arrays.get(part))
    arrays[part] = np.zeros(2) if changed is None else changed.copy()
    safetensors.numpy.save_file(arrays, path, facts)
    with pytest.raises(ValueError, match="patch.safetensors' must"):
        MemoryPatch.load(path)


def components_of(model):
    """The value tables on each replica, by the memory's number."""
    return {
        number: [table.numpy() for table in components(memory.table.values)]
        for number, memory in memories(model).items()
    }


@pytest.fixture(scope="module")
def patch_of_one_device():
    return teach(make_model())


@pytest.mark.slow
@each_strategy
def test_all_replicas_get_the_rows(
    make_strategy, is_inside, patch_of_one_device
):
    strategy = make_strategy()
    patch = patch_of_one_device
    with strategy.scope():
        model = make_model()
    before = components_of(model)
    expected = make_model()
    patch.apply(expected)
    with strategy.scope() if is_inside else contextlib.nullcontext():
        patch.apply(model)
        after = components_of(model)
        with pytest.raises(ValueError, match="does not have it yet"):
            patch.apply(model)
        patch.revert(model)
    for number, table in tables(expected).items():
        assert len(after[number]) == strategy.num_replicas_in_sync
        for of_replica in after[number]:
            np.testing.assert_array_equal(of_replica, table)
        for old, now in zip(before[number], components_of(model)[number]):
            np.testing.assert_array_equal(
                now.view("uint32"), old.view("uint32")
            )


@pytest.mark.slow
def test_nothing_is_written_if_one_replica_has_other_rows(mirrored):
    patch = teach(make_model())
    with mirrored.scope():
        model = make_model()
    number = max(patch.memories)
    slot = patch.memories[number].slots[-1]
    second = components(memories(model)[number].table.values)[1]
    second.scatter_nd_add([[slot]], np.ones((1, 12), "float32"))
    before = components_of(model)
    with pytest.raises(ValueError, match=f"1 of .*slot {slot}"):
        patch.apply(model)
    for number, replicas in components_of(model).items():
        np.testing.assert_array_equal(replicas, before[number])
