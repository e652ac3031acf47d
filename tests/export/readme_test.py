"""The examples of loading run, in a process that imports nothing else."""

import os
import subprocess
import sys

import pytest

import keras_pkm
from tests.docs.pages import blocks
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import tiny_classifier

# Names of one example are not there in the next.
RUN = """
import sys

for example in sys.argv[1:]:
    exec(example, {})
"""


def example_of(page):
    python = [block.text for block in blocks(page, "python")]
    (example,) = (text for text in python if '"served"' in text)
    return example


@pytest.mark.slow
def test_the_examples_run(exports, tokenizer, tmp_path):
    """Of all other blocks `tests/docs/code_test.py` runs the Python."""
    task = tiny_classifier(3, **ONE_LAYER)
    keras_pkm.export.saved_model(task, tmp_path / "served", tokenizer=tokenizer)
    os.symlink(exports / "encoder", tmp_path / "encoder")
    pages = ("README.md", "docs/guides/serving.md")
    examples = [example_of(page) for page in pages]
    # What the first one has imported would be there for the second.
    assert all("\nimport tensorflow_text " in each for each in examples)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, *examples],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
