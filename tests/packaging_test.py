"""The wheel holds the library alone; commands run the code of their clone."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401

from tests.docs.pages import blocks

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = [
    path.relative_to(ROOT).as_posix()
    for folder in ("training", "export", "benchmarks")
    for path in sorted((ROOT / folder).glob("*.py"))
    if path.name != "__init__.py"
]
BUILD = """
import setuptools.build_meta as backend
backend.build_wheel("built")
backend.build_sdist("built")
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A directory with the wheel and the source distribution."""
    clone = tmp_path_factory.mktemp("clone")
    for name in (
        *("keras_pkm", "training", "export", "benchmarks", "tests", "docs"),
        *("notebooks", "setup.cfg", "pyproject.toml", "MANIFEST.in"),
        "mkdocs.yml",
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"),
        "CITATION.cff",
    ):
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, clone / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, clone / name)
    (clone / "built").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD],
        cwd=clone,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return clone / "built"


def test_the_wheel_holds_keras_pkm_alone(built):
    (path,) = built.glob("*.whl")
    names = zipfile.ZipFile(path).namelist()
    folders = {name.split("/")[0] for name in names}
    (information,) = (f for f in folders if f.endswith(".dist-info"))
    assert folders == {"keras_pkm", information}
    assert "keras_pkm/py.typed" in names
    assert "keras_pkm/export/saved_model.py" in names
    for source in (ROOT / "keras_pkm").rglob("*.py"):
        assert source.relative_to(ROOT).as_posix() in names


def test_the_source_distribution_has_everything(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as file:
        names = {name.split("/", 1)[-1] for name in file.getnames()}
    for folder in ("keras_pkm", "training", "export", "benchmarks", "tests"):
        for source in (ROOT / folder).rglob("*.py"):
            assert source.relative_to(ROOT).as_posix() in names, source
    assert {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"} <= names
    assert {
        "CITATION.cff",
        "mkdocs.yml",
        "docs/index.md",
        "docs/recall.png",
        "training/reports/page.html",
        "benchmarks/published/figures.toml",
    } <= names
    assert "tests/converters/hugging_face/bert/model.safetensors" in names


# Runs code behind README's, whose names it does not have.
RUN = """
import sys

readme, code = sys.argv[2:]
exec(readme, {})
exec(code, {})
"""
EXPORT = """
import sys

import keras
import keras_hub
import numpy as np

import keras_pkm

keras.utils.set_random_seed(0)
assert keras_pkm.__file__.startswith(sys.argv[1])
assert not {"export", "training"} & set(sys.modules)
words = "[PAD] [UNK] [CLS] [SEP] [MASK] a good bad film".split()
preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
    keras_hub.models.BertTokenizer(words), sequence_length=8
)
task = keras_pkm.models.add_memory(
    keras_hub.models.BertTextClassifier(
        keras_hub.models.BertBackbone(len(words), 2, 2, 16, 32),
        num_classes=2,
        activation="softmax",
        preprocessor=preprocessor,
    ),
    (1,),
    {"num_sub_keys": 16, "top_k": 4, "key_dim": 8},
)
task.set_weights(
    [
        weight + np.random.default_rng(0).normal(0, 0.3, weight.shape)
        for weight in task.get_weights()
    ]
)
texts = ["a good film", "a bad film", "film"]
np.save("expected.npy", task(preprocessor(texts), training=False))
exported = keras_pkm.export.saved_model(task, "served")
assert exported.what == "classifier"
usage, num_slots = keras_pkm.export.memory_usage("served", texts)
assert num_slots == {1: 256} and 0 < usage[1]["mu"] < 1
"""


@pytest.mark.slow
def test_readme_and_export_run_with_what_is_installed(built, tmp_path):
    """In a folder without the sources."""
    (archive,) = built.glob("*.whl")
    installed, folder = tmp_path / "installed", tmp_path / "empty"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index"]
    pip += ["--no-deps", "--no-build-isolation", "--target", str(installed)]
    done = subprocess.run([*pip, str(archive)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    readme = "\n".join(
        block.text
        for block in blocks("README.md", "python")
        # tests/export/readme_test.py has a model to load.
        if '"served"' not in block.text
    )
    folder.mkdir()
    code = [RUN, str(installed), readme, EXPORT]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", *code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # tests/export/fresh_process_test.py loads without this package.
    served = tf.saved_model.load(str(folder / "served"))
    texts = tf.constant(["a good film", "a bad film", "film"])
    found, expected = served(texts)["scores"], np.load(folder / "expected.npy")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.ptp(expected[:, 0]) > 1e-3


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_command_puts_its_own_code_first(script):
    text = (ROOT / script).read_text()
    line = "sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])"
    own = min(
        text.index(f"\nfrom {name}")
        for name in ("keras_pkm", "training.", "export.", "benchmarks.")
        if f"\nfrom {name}" in text
    )
    assert text.index(line) < own


@pytest.mark.slow
def test_a_clone_runs_its_own_code(tmp_path):
    """From another folder, with an older version installed."""
    for name in ("keras_pkm", "training", "export"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('old')")
    done = subprocess.run(
        [sys.executable, str(ROOT / "training" / "pretrain.py"), "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "--memory-block" in done.stdout
