"""Runs the commands of a figure, and keeps what they found."""

import pathlib
import shlex
import shutil
import subprocess
import sys

from benchmarks.published.figure import ROOT
from benchmarks.published.figure import Figure
from benchmarks.published.stamps import state

# What a command printed, and the mark that it has ended.
_OUTPUT = "output-{}.md"
# The fingerprint of the code with which the measurement began.
_CODE = ".code"


def measure(
    figure: Figure, data: pathlib.Path, runs: pathlib.Path, again: bool
) -> None:
    """Runs the commands that have not ended yet, and copies what they found.

    What was found with the same code is where the commands start, so that they
    only do what is missing. Once the code has changed, they start again.

    Args:
        figure: The figure.
        data: The folder in which the commands run, with the files they need.
        runs: The folder of the figures' working directories.
        again: Whether to measure everything again.

    Raises:
        RuntimeError: a file is missing, or a command failed.
    """
    missing = [name for name in figure.needs if not (data / name).exists()]
    if missing:
        raise RuntimeError(
            f"{figure.name} needs {', '.join(missing)} in {data.resolve()}: "
            "name their folder with --data."
        )
    out = runs.resolve() / figure.name
    # Beside it: commands want a directory that is empty or their own.
    mark = out.with_suffix(_CODE)
    code = figure.code
    begun = mark.exists() and mark.read_text(encoding="utf-8") == code
    if again or not begun:
        shutil.rmtree(out, ignore_errors=True)
        if not again and state(figure) == "fresh" and figure.kept.exists():
            shutil.copytree(figure.kept, out)
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(code, encoding="utf-8")
    for number, command in enumerate(figure.commands, start=1):
        output = out / _OUTPUT.format(number)
        if not output.exists():
            text = _run(command, out, data)
            output.write_text(text, encoding="utf-8")
    shutil.rmtree(figure.kept, ignore_errors=True)
    for pattern in figure.keeps:
        for path in sorted(out.glob(pattern)):
            kept = figure.kept / path.relative_to(out)
            kept.parent.mkdir(parents=True, exist_ok=True)
            # No paths of the machine on which it was measured.
            found = path.read_bytes()
            for ours, theirs in (
                (str(out), f"docs/measured/{figure.name}"),
                (f"{ROOT}/", ""),
            ):
                found = found.replace(ours.encode(), theirs.encode())
            kept.write_bytes(found)
    for name, picture in figure.pictures:
        shutil.copyfile(out / name, ROOT / picture)


def _run(command, out, data):
    """Runs a command, and returns what it printed on standard output."""
    _, script, *args = shlex.split(command.format(out=out))
    print(f"$ {command.format(out=out)}", flush=True)
    done = subprocess.run(
        [sys.executable, str(ROOT / script), *args],
        cwd=data,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"{command} ended with exit code {done.returncode}. The end of its "
            f"output:\n{done.stdout[-2000:]}"
        )
    return done.stdout
