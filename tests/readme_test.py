"""The README's Python examples run, one after another."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    # The first one is that of tests/export/readme_test.py.
    assert len(blocks) == 4
    names = {}
    for block in blocks[1:]:
        exec(compile(block, str(README), "exec"), names)
    assert names["classifier"].output.shape == (None, 2)
    assert names["usage"].result()["top1_reads"] == 2 * 16 * 4


def test_the_map_names_all_folders():
    text = README.read_text()
    root = README.parent
    folders = ("keras_pkm/*", "training", "export", "benchmarks")
    for path in (p for f in folders for p in root.glob(f"{f}/__init__.py")):
        folder = path.parent.relative_to(root).as_posix()
        assert f"| `{folder}/` |" in text, folder


def test_pictures_are_there():
    pictures = re.findall(r"!\[[^]]+\]\((.*?)\)", README.read_text())
    assert pictures
    for path in pictures:
        assert (README.parent / path).is_file(), path
