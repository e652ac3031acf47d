"""Runs the commands of a figure, and keeps what they found."""

import pathlib
import shlex
import shutil
import subprocess
import sys

from benchmarks.published.figure import ROOT
from benchmarks.published.figure import Figure

# What a command printed, and the mark that it has ended.
_OUTPUT = "output-{}.md"
# The commit with which the measurement began.
_COMMIT = ".commit"


def measure(
    figure: Figure,
    commit: str,
    data: pathlib.Path,
    runs: pathlib.Path,
    again: bool,
) -> None:
    """Runs the commands that have not ended yet, and copies what they found.

    A measurement that was stopped goes on. Once the code has changed, it starts
    again.
    """
    missing = [name for name in figure.needs if not (data / name).exists()]
    if missing:
        raise RuntimeError(
            f"{figure.name} needs {', '.join(missing)} in {data.resolve()}: "
            "name their folder with --data."
        )
    out = runs.resolve() / figure.name
    # Beside it: commands want a directory that is empty or their own.
    mark = out.with_suffix(_COMMIT)
    begun = mark.exists() and mark.read_text(encoding="utf-8") == commit
    if again or not begun:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(commit, encoding="utf-8")
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
