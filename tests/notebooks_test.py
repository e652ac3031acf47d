"""The notebooks run, at a reduced size, and are stored with small outputs."""

import pathlib

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
import nbformat  # noqa: E402

NOTEBOOKS = sorted(
    (pathlib.Path(__file__).parents[1] / "notebooks").glob("*.ipynb")
)

DOCUMENTS = [
    f"The function {name} returns what number {number} of the list names."
    for number in range(300)
    for name in ("open", "read", "close")
]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(DOCUMENTS))
    monkeypatch.setenv("NOTEBOOK_TEXT", str(text))
    monkeypatch.setenv("NOTEBOOK_STEPS", "8")
    monkeypatch.setenv("NOTEBOOK_EPOCHS", "1")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": path.parent}}
    )
    client.execute()


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
