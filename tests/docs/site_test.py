"""The documentation site: it builds without warnings, and is complete."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys

import pytest

import keras_pkm
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"
PACKAGES = [name for name in keras_pkm.__all__ if not name.startswith("__")]
MISSING = [
    name
    for name in ("mkdocs", "material", "mkdocstrings")
    if importlib.util.find_spec(name) is None
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site's directory."""
    if MISSING:
        pytest.skip(f"needs {MISSING}: pip install -e '.[docs]'")
    path = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return path


def public_names():
    for package in PACKAGES:
        module = importlib.import_module(f"keras_pkm.{package}")
        for name in module.__all__:
            yield package, f"keras_pkm.{package}.{name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_names_all_that_is_public(package):
    text = (REFERENCE / f"{package}.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    expected = [name for of, name in public_names() if of == package]
    assert sorted(named) == sorted(expected)


@pytest.mark.slow
def test_the_site_has_all_that_is_public(site):
    for package, name in public_names():
        page = site / "reference" / package / "index.html"
        text = page.read_text(encoding="utf-8")
        assert f'id="{name}"' in text, name
        # Prompts that stand in no block of code would be quotations.
        assert "<blockquote>" not in text


def test_the_site_opens_offline(site):
    """No script, style, font or picture comes from the network."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        tags = re.findall(r"<(?:link|script|img|iframe)\b[^>]*>", text)
        outside = [
            tag
            for tag in tags
            if re.search(r"\b(?:src|href)=\"?(?:https?:)?//", tag)
        ]
        assert not outside, (page, outside)
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", text)
