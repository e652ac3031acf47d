"""The import order of the rooms: lower rows know nothing of higher ones."""

import ast
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# A room imports rows above its own and, within itself, in no circle. Rooms of
# one row do not import each other.
ROWS = [
    [
        "keras_pkm/version.py",
        "keras_pkm/ops",
        "keras_pkm/files",
        "keras_pkm/text",
    ],
    ["keras_pkm/layers", "keras_pkm/optimizers", "keras_pkm/metrics"],
    ["keras_pkm/probing", "keras_pkm/trainers", "keras_pkm/converters"],
    ["keras_pkm/models", "keras_pkm/teaching"],
    ["keras_pkm/callbacks", "keras_pkm/export"],
    ["keras_pkm/__init__.py"],
    ["training/runs"],
    ["training/commands", "training/corpora", "export/commands"],
    ["training/batches"],
    [
        "training/loading",
        "training/fitting",
        "training/measuring",
        "training/tasks",
        "training/facts",
    ],
    ["training/reports"],
    [
        "training/pretraining",
        "training/finetuning",
        "training/evaluation",
        "training/teaching",
    ],
    ["training/analysis", "training/studies"],
    ["training", "export"],
    ["benchmarks/timing"],
    ["benchmarks/contenders"],
    ["benchmarks/published"],
    ["benchmarks"],
]


def modules():
    """Dotted names of all modules, and the paths of their files."""
    found = {}
    for folder in ("keras_pkm", "training", "export", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            found[".".join(parts)] = path
    return found


MODULES = modules()


def imports_of(path):
    """Dotted names of the project's own modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                names.add(whole if whole in MODULES else node.module)
    return {name for name in names if name in MODULES}


def row_of(path):
    """The row and the room of a file: the innermost one that is listed."""
    name = path.relative_to(ROOT).as_posix()
    found = [
        (len(room), number, room)
        for number, row in enumerate(ROWS)
        for room in row
        if name == room or name.startswith(f"{room}/")
    ]
    if not found:
        raise AssertionError(f"{name} stands in no room: add it to ROWS")
    return max(found)[1:]


def wrong_imports(path):
    """The imports of a file that its room does not allow."""
    row, room = row_of(path)
    wrong = []
    for name in imports_of(path):
        other_row, other_room = row_of(MODULES[name])
        if not (other_row < row or other_room == room):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_up(module):
    assert not wrong_imports(MODULES[module])


def test_an_import_the_wrong_way_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    for name, path in list(MODULES.items()):
        here = tmp_path / path.relative_to(pathlib.Path(__file__).parents[1])
        monkeypatch.setitem(MODULES, name, here)
    planted = tmp_path / "training" / "corpora" / "planted.py"
    planted.parent.mkdir(parents=True)
    for line, allowed in (
        ("from training.runs import user_error", True),
        ("from training.corpora import corpus", True),
        ("from training.batches.masking import Masking", False),
        ("import training.pretrain", False),
        ("from training.commands import strategy", False),
    ):
        planted.write_text(f"{line}\n")
        assert bool(wrong_imports(planted)) is not allowed, line


def test_no_circles():
    graph = {
        module: imports_of(path)
        for module, path in MODULES.items()
        # A package's __init__ lists what is in it.
        if path.name != "__init__.py"
    }
    done, open_modules = set(), []

    def visit(module):
        if module in done or module not in graph:
            return
        assert module not in open_modules, f"circle: {open_modules, module}"
        open_modules.append(module)
        for name in graph[module]:
            visit(name)
        done.add(open_modules.pop())

    for module in graph:
        visit(module)


def packages_of(path):
    """The packages that a file imports, also within functions."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return [name.split(".")[0] for name in names]


def test_the_library_imports_no_training_package():
    """What only training needs is an extra."""
    of_training = {
        *("tyro", "tqdm", "tensorflow_datasets", "tensorboard"),
        *("tabulate", "matplotlib"),
    }
    for module, path in MODULES.items():
        if module.startswith("keras_pkm"):
            assert not of_training & set(packages_of(path)), module


# Where one backend alone may be imported: what differs by backend, and what
# only TensorFlow has.
OF_ONE_BACKEND = {
    "jax": ("keras_pkm/ops/jax/",),
    "torch": ("keras_pkm/ops/torch/", "keras_pkm/trainers/torch_steps.py"),
    "tensorflow": (
        "keras_pkm/callbacks/checkpoint_files.py",
        "keras_pkm/callbacks/training_checkpoint.py",
        "keras_pkm/export/",
        "keras_pkm/ops/tensorflow/",
        "keras_pkm/probing/served_model.py",
        "keras_pkm/files/any_file_system.py",
        "keras_pkm/files/checksums.py",
        "keras_pkm/text/tokenize.py",
        "keras_pkm/text/windows.py",
        "keras_pkm/trainers/gradient_accumulation.py",
        "keras_pkm/trainers/tensorflow_steps.py",
    ),
}


def test_the_library_needs_no_certain_backend():
    importers = {backend: set() for backend in OF_ONE_BACKEND}
    for module, path in MODULES.items():
        if not module.startswith("keras_pkm"):
            continue
        name = path.relative_to(ROOT).as_posix()
        packages = packages_of(path)
        for backend, allowed in OF_ONE_BACKEND.items():
            if backend in packages:
                assert name.startswith(allowed), (name, backend)
                importers[backend].add(name)
    for backend, allowed in OF_ONE_BACKEND.items():
        for each in allowed:
            found = importers[backend]
            assert any(name.startswith(each) for name in found), each


def test_no_file_hides_a_package():
    """`python training/pretrain.py` puts `training/` on the import path."""
    for folder in ("training", "export", "benchmarks"):
        for path in (ROOT / folder).glob("*.py"):
            if path.name == "__init__.py":
                continue
            assert path.stem != folder
            spec = importlib.util.find_spec(path.stem)
            # An environment may be in the checkout.
            assert spec is None or (
                str(ROOT) in str(spec.origin)
                and "site-packages" not in str(spec.origin)
            ), path
