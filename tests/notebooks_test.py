"""The notebooks run, at a reduced size, and are stored with small outputs."""

import contextlib
import importlib
import io
import pathlib
import subprocess

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
subprocess_run = subprocess.run

# What takes long, and is the same at another size.
SMALLER = {
    "1_memory_in_any_model": {"epochs=60": "epochs=2"},
    "2_memory_in_bert": {
        '(("pkm", "+PKM"), ("resm", "+ResM"))': '(("resm", "+ResM"),)',
        "num_layers=2": "num_layers=1",
    },
    "3_fine_tune_and_serve": {
        "train[: 1600 * EPOCHS]": "train[:200]; test = test[::20]",
    },
    "5_memory_in_a_decoder": {"--plain-steps {STEPS}": "--plain-steps 0"},
}
DOCUMENTS = [
    f"The function {name} returns what number {number} of the list names."
    for number in range(300)
    for name in ("open", "read", "close")
]


def sources(path):
    """The code of the cells, some of it at a smaller size."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\0".join(each.source for each in cells if each.cell_type == "code")
    for old, new in SMALLER.get(path.stem, {}).items():
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return code.split("\0")


@pytest.mark.slow
# A kernel only shows them.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path, monkeypatch):
    """Its cells and commands, in this process: each imports TensorFlow."""
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(DOCUMENTS))
    monkeypatch.setenv("NOTEBOOK_TEXT", str(text))
    monkeypatch.setenv("NOTEBOOK_STEPS", "8")
    monkeypatch.setenv("NOTEBOOK_EPOCHS", "1")
    monkeypatch.delenv("KERAS_PKM_MODELS", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "run", _run)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    names = {"__name__": "__main__"}
    with pyplot.rc_context():
        for source in sources(path):
            exec(compile(source, "a cell", "exec"), names)


def _run(command, **options):
    """Does what `subprocess.run` does, our own commands in this process."""
    _, script, *flags = map(str, command)
    if not script.endswith(".py"):
        return subprocess_run(command, **options)
    module = pathlib.Path(script).relative_to(ROOT).with_suffix("")
    main = importlib.import_module(".".join(module.parts)).main
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(flags)
    assert code == 0
    return subprocess.CompletedProcess(command, code, printed.getvalue(), "")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_stored_as_it_ran(path):
    assert path.stat().st_size < 200_000
    cells = nbformat.read(path, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(
        range(1, len(code) + 1)
    )
    for cell in code:
        compile(cell.source, str(path), "exec")
    outputs = [output for cell in code for output in cell.outputs]
    assert not {output.get("name") for output in outputs} & {"stderr"}
    assert not [o for o in outputs if o.output_type == "error"]
    imports = "".join(cell.source for cell in code)
    # What users may rely on: the package, and commands.
    assert "import training" not in imports
    assert "from training" not in imports
    assert "keras_pkm." in imports
