"""What README and docs/ say can be done: code runs, commands are parsed."""

import configparser
import functools
import importlib
import inspect
import re
import shlex

import pytest
import tyro

from tests.docs.pages import ROOT
from tests.docs.pages import blocks
from tests.docs.pages import commands
from tests.docs.pages import pages
from tests.slow_tier import slow_but
from training.pretraining import recipe as pretraining
from training.studies.edits.recipe import EditsRecipe
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.recall import recipe as knowledge
from training.teaching.recipe import TeachingRecipe

# Why blocks are not run, page by page.
NOT_RUN = [
    ("docs/guides/any-backbone.md", "downloads a preset"),
    ("docs/guides/any-backbone.md", "downloads a model"),
    ("docs/guides/kinds-of-memory.md", "needs a checkpoint"),
    ("docs/guides/pretraining.md", "needs a pretrained model"),
    (
        "docs/guides/pretraining.md",
        "the size of the paper, which needs many GPUs",
    ),
    ("docs/guides/seeing-the-memory.md", "needs a server"),
    ("docs/guides/serving.md", "needs a server"),
    ("docs/guides/several-machines.md", "needs several machines"),
    ("docs/guides/several-machines.md", "needs several machines"),
    ("docs/guides/your-own-data.md", "downloads a preset"),
    ("docs/results/decoders.md", "needs the run above"),
]
# The recipes of commands that do nothing else to their flags.
RECIPES = {
    "training/finetune.py": "training.finetuning.recipe.FinetuningRecipe",
    "training/evaluate_mlm.py": "training.evaluation.recipe.EvaluationRecipe",
    "training/analyze_memory.py": "training.analysis.recipe.AnalysisRecipe",
    "training/reproduce.py": (
        "training.studies.papers.recipe.ReproductionRecipe"
    ),
    "export/saved_model.py": "export.commands.recipe.ExportRecipe",
    "export/patch.py": "export.patch.PatchRecipe",
    "export/memory_usage.py": "export.memory_usage.UsageRecipe",
}
# Other programs that shell blocks call.
PROGRAMS = {
    *("curl", "head", "mkdocs", "ruff", "saved_model_cli", "tail"),
    "tensorboard",
}
PAGES = pages()


def test_the_blocks_that_are_not_run():
    assert NOT_RUN == [
        (page, block.reason)
        for page in PAGES
        for language in ("python", "shell")
        for block in blocks(page, language)
        if block.reason is not None
    ]


def to_run(page):
    """The page's Python, but what tests/export/readme_test.py runs."""
    return [
        block.text
        for block in blocks(page, "python")
        if block.reason is None and '"served"' not in block.text
    ]


@pytest.mark.parametrize("page", slow_but("README.md", filter(to_run, PAGES)))
def test_python_runs(page, tmp_path, monkeypatch):
    """The blocks of a page, one after another."""
    monkeypatch.chdir(tmp_path)
    letters = "abcdefghij"
    words = [f"w{a}{b}rd" for a in letters for b in letters]
    # The text from whose words results/teaching.md makes facts.
    (tmp_path / "wiki.train.tokens").write_text(" ".join(20 * words))
    names = {}
    for number, text in enumerate(to_run(page)):
        exec(compile(text, f"{page}, block {number}", "exec"), names)


def parse(script, args):
    """Parses a command line as the script does."""
    if script == "training/pretrain.py":
        return pretraining.parse_recipe(args)
    if script == "training/recall.py":
        return knowledge.parse_recipe(args)
    if script == "training/teach.py":
        kinds = {
            "--compare": ForgettingRecipe,
            "--compare-edits": EditsRecipe,
        }
        rest = [arg for arg in args if arg not in kinds]
        (kind,) = [kinds[arg] for arg in args if arg in kinds] or [
            TeachingRecipe
        ]
        return tyro.cli(kind, args=rest)
    if script in RECIPES:
        module, kind = RECIPES[script].rsplit(".", 1)
        kind = getattr(importlib.import_module(module), kind)
        assert f"tyro.cli({kind.__name__}, " in (ROOT / script).read_text()
        return tyro.cli(kind, args=args)
    main = importlib.import_module(script[:-3].replace("/", ".")).main
    return tyro.cli(without_work(main), args=args)


def without_work(main):
    """A function with another one's flags that does nothing."""

    @functools.wraps(main)
    def parsed(**kwargs):
        return kwargs

    parsed.__signature__ = inspect.signature(main)
    return parsed


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_commands_are_parsed(page, capsys):
    for script, args in commands(page):
        try:
            parse(script, args)
        except SystemExit:
            printed = capsys.readouterr()
            line = " ".join([script, *args])
            pytest.fail(f"{line}\n{printed.out}{printed.err}")


def helped():
    """The recipes whose docstrings are the descriptions of commands."""
    named = [
        getattr(importlib.import_module(module), name)
        for module, name in (each.rsplit(".", 1) for each in RECIPES.values())
    ]
    return [
        *(pretraining.PretrainingRecipe, knowledge.RecallRecipe),
        *(TeachingRecipe, ForgettingRecipe, EditsRecipe, *named),
    ]


@pytest.mark.parametrize("recipe", helped())
def test_help_opens_with_commands(recipe, capsys):
    """They stand on lines of their own, and can be parsed."""
    lines = recipe.__doc__.split("\n\n")[1].splitlines()
    with pytest.raises(SystemExit):
        tyro.cli(recipe, args=["--help"])
    printed = [each.strip() for each in capsys.readouterr().out.splitlines()]
    for line in map(str.strip, lines):
        assert line in printed
        python, script, *args = shlex.split(line.removeprefix("$ "))
        assert python == "python"
        parse(script, args)


@pytest.mark.parametrize("recipe", helped())
def test_help_texts_wrap_as_paragraphs(recipe):
    """A line that begins with a flag or a digit would be taken for a list."""
    for line in inspect.getsource(recipe).splitlines():
        text = line.strip().removeprefix("# ")
        if line.startswith("    # ") and not text.startswith("--- "):
            assert text[0].isalpha() or text[0] in "'\"[", line


def test_a_flag_that_does_not_exist_is_found(capsys):
    for script in ("training/pretrain.py", "benchmarks/layer.py", *RECIPES):
        with pytest.raises(SystemExit):
            parse(script, ["--no-such-flag", "1"])
        assert "no-such-flag" in capsys.readouterr().err


@pytest.mark.parametrize("page", [page for page in PAGES])
def test_shell_blocks_call_what_is_known(page):
    for block in blocks(page, "shell"):
        if "several machines" in (block.reason or ""):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            first, *rest = line.split()
            if first in ("python", "pip", *PROGRAMS):
                continue
            pytest.fail(f"{page}: what is `{line}`?")


def test_extras_that_are_installed_exist():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for extras in re.findall(r'pip install -e "\.\[(.*?)\]"', text):
            for extra in extras.split(","):
                assert setup.has_option("options.extras_require", extra), extra
