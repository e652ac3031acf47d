"""The README's Python examples run, one after another."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    # The first one is that of tests/export/readme_test.py.
    assert len(blocks) == 6
    names = {}
    for block in blocks[1:]:
        exec(compile(block, str(README), "exec"), names)
    assert names["classifier"].output.shape == (None, 2)
    assert names["usage"].result()["top1_reads"] == 2 * 16 * 4


def test_the_map_names_all_rooms():
    text = README.read_text()
    root = README.parent
    for name in ("keras_pkm", "training", "export", "benchmarks"):
        for path in (root / name).glob("*/__init__.py"):
            room = path.parent.relative_to(root).as_posix()
            assert f"`{room}/`" in text, room


def test_pictures_are_there():
    pictures = re.findall(r"!\[[^]]+\]\((.*?)\)", README.read_text())
    assert pictures
    for path in pictures:
        assert (README.parent / path).is_file(), path
