"""When figures were measured, with which commit, and on which machine."""

import dataclasses
import datetime
import json
import subprocess

from benchmarks.published.figure import MEASURED
from benchmarks.published.figure import ROOT
from benchmarks.published.figure import Figure
from benchmarks.published.registry import FIGURES

_PATH = MEASURED / "stamps.json"
_CODE = ("keras_pkm", "training", "export", "benchmarks", "setup.cfg")


@dataclasses.dataclass(frozen=True)
class Stamp:
    """When figures were measured, with which commit, and on which machine."""

    # The day, as YYYY-MM-DD.
    date: str
    # The commit whose code was measured.
    commit: str
    # The processor or accelerator.
    machine: str


def read_stamps() -> dict[str, Stamp]:
    """Returns the stamps of all figures that were measured, by their names."""
    if not _PATH.exists():
        return {}
    found = json.loads(_PATH.read_text(encoding="utf-8"))
    return {name: Stamp(**each) for name, each in found.items()}


def stamp(figure: Figure, commit: str) -> None:
    """Notes that figures were measured today, on this machine."""
    # The site is built without the packages that this needs.
    from benchmarks.timing.report import machine

    here = machine()
    devices = ", ".join(here["devices"])
    where = f"{here['processor']}, {here['threads']} threads, {devices}"
    new = Stamp(datetime.date.today().isoformat(), commit, where)
    stamps = {**read_stamps(), figure.name: new}
    text = json.dumps({k: vars(v) for k, v in sorted(stamps.items())}, indent=2)
    _PATH.write_text(text + "\n", encoding="utf-8")


def current_commit() -> str:
    """Returns the last commit that changed code.

    Commits of pages and of figures do not count, so that a measurement goes on
    after them.
    """
    changed = _git("status", "--porcelain", "--", *_CODE)
    if changed:
        raise RuntimeError(
            "Figures are stamped with the commit whose code was measured. "
            f"Commit these files first:\n{changed}"
        )
    return _git("log", "-1", "--format=%h", "--", *_CODE)


def _git(*arguments):
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def origin(name: str) -> str | None:
    """Returns a sentence that says where the figures of a table are from."""
    stamps = read_stamps()
    figures = [
        figure.name
        for figure in FIGURES
        if any(table.name == name for table in figure.tables)
    ]
    if not figures:
        return None
    found = [stamps[each] for each in figures if each in stamps]
    if not found:
        return "Not measured yet."
    places = dict.fromkeys(
        f"on {each.date} with commit {each.commit} ({each.machine})"
        for each in found
    )
    return f"Measured {'; '.join(places)}."
