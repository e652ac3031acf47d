"""`export/patch.py`: exported models take what the run was taught."""

import re
import shutil

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from export import saved_model
from export.patch import main
from keras_pkm.files.checksums import find_change
from keras_pkm.files.presets import save_preset
from keras_pkm.layers.memories import memories
from keras_pkm.teaching import MemoryPatch
from keras_pkm.teaching.memory_patch import copy_tables

TEXTS = tf.constant(["the [MASK] fox", "[MASK] met bob", "a lazy [MASK]."])


@pytest.fixture(scope="module")
def patched(presets, tmp_path_factory):
    """A patch of some rows, and the preset with it."""
    root = tmp_path_factory.mktemp("patched")
    task = keras_hub.models.MaskedLM.from_preset(str(presets / "mlm"))
    start = copy_tables(task)
    rng = np.random.default_rng(0)
    for memory in memories(task).values():
        table = memory.table.values.numpy()
        table[::2] += rng.normal(size=table[::2].shape)
        memory.table.values.assign(table)
    MemoryPatch.since(start, task).save(root / "patch.safetensors")
    save_preset(task, task.preprocessor, root / "preset")
    return root


def export(what, preset, out, *flags):
    args = ["--what", what, "--model", str(preset), "--out", str(out)]
    assert saved_model.main([*args, *flags]) == 0
    return out


def patch(model, how, patched, out):
    file = patched / "patch.safetensors"
    args = ["--model", str(model), how, str(file), "--out", str(out)]
    return main(args)


def variables(path):
    reader = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    names = sorted(reader.get_variable_to_shape_map())
    return {name: reader.get_tensor(name) for name in names}


def assert_same(a, b):
    assert list(a) == list(b)
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)


@pytest.mark.slow
def test_a_patched_export_is_the_export_of_the_patched_run(
    exports, patched, tmp_path, capsys
):
    before = exports / "mlm"
    after = export("mlm", patched / "preset", tmp_path / "after")
    out = tmp_path / "out"
    assert patch(before, "--apply", patched, out) == 0
    rows = MemoryPatch.load(patched / "patch.safetensors").num_rows
    assert f"{rows:,} rows were applied" in capsys.readouterr().out
    assert_same(variables(out), variables(after))
    assert find_change(out / "checksums.json") is None
    asked = [
        tf.saved_model.load(str(path))(TEXTS)["scores"].numpy()
        for path in (out, after, before)
    ]
    np.testing.assert_array_equal(asked[0], asked[1])
    assert not np.array_equal(asked[0], asked[2])

    back = tmp_path / "back"
    assert patch(out, "--revert", patched, back) == 0
    assert_same(variables(back), variables(before))
    # Twice is once too often, and nothing is written.
    for model, how, message in (
        (out, "--apply", "has already been applied"),
        (before, "--revert", "has the rows from before the patch"),
    ):
        assert patch(model, how, patched, tmp_path / "twice") == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "twice").exists()


@pytest.mark.slow
def test_an_encoder_takes_the_patch_too(exports, patched, tmp_path):
    before, out = exports / "encoder", tmp_path / "out"
    assert patch(before, "--apply", patched, out) == 0
    old, new = variables(before), variables(out)
    changed = [n for n in old if not np.array_equal(old[n], new[n])]
    changes = MemoryPatch.load(patched / "patch.safetensors").memories
    assert len(changed) == len(changes)
    for each in changes.values():
        rows = [new[name][each.slots] for name in changed]
        assert any(np.array_equal(found, each.new) for found in rows)


@pytest.mark.slow
def test_smaller_exports_take_no_patch(presets, patched, tmp_path, capsys):
    flags = ["--values-dtype", "int8"]
    model = export("mlm", presets / "mlm", tmp_path / "model", *flags)
    assert patch(model, "--apply", patched, tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "were pruned or stored in fewer bits" in error
    assert "--values-dtype float32 and without --prune" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("preprocessor", "has no memories.json"),
        ("classifier", "other weights differ"),
    ],
)
@pytest.mark.slow
def test_other_exports_take_no_patch(
    what, message, exports, patched, tmp_path, capsys
):
    out = tmp_path / "out"
    assert patch(exports / what, "--apply", patched, out) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_mistakes(exports, patched, tmp_path, capsys):
    model = tmp_path / "model"
    shutil.copytree(exports / "mlm", model)
    file, out = patched / "patch.safetensors", tmp_path / "out"
    common = ["--out", str(out), "--model"]
    for args, message in (
        ([str(model)], "one of --apply and --revert .* received none"),
        (
            [str(model), "--apply", str(file), "--revert", str(file)],
            "received both",
        ),
        ([str(tmp_path), "--apply", str(file)], "has no saved_model.pb"),
        ([str(model), "--apply", str(model)], "--apply: .*cannot be read"),
    ):
        assert main([*common, *args]) == 2
        assert re.search(message, capsys.readouterr().err), message
        assert not out.exists()
    out.mkdir()
    (out / "file").touch()
    assert main([*common, str(model), "--apply", str(file)]) == 2
    assert "--out must be new or empty" in capsys.readouterr().err
    shutil.rmtree(out)
    with open(model / "variables" / "variables.index", "ab") as index:
        index.write(b"more")
    assert main([*common, str(model), "--apply", str(file)]) == 2
    assert "--model must be as it was written" in capsys.readouterr().err
    assert not out.exists()
