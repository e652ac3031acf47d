"""When figures were measured, with which commit, and on which machine."""

import datetime
import json
import subprocess

from benchmarks.published.figures import MEASURED
from benchmarks.published.figures import ROOT
from benchmarks.published.figures import TABLES
from benchmarks.published.tables import read

_PATH = MEASURED / "stamps.json"
_CODE = ("keras_pkm", "training", "export", "benchmarks", "setup.cfg")


def read_stamps() -> dict[str, dict[str, str]]:
    """Returns date, commit and machine of what was measured, by its name."""
    return read(_PATH) if _PATH.exists() else {}


def stamp(name: str, commit: str) -> None:
    """Notes that figures were measured today, on this machine."""
    # The site is built without the packages that this needs.
    from benchmarks.timing.report import describe_machine

    new = {
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "machine": describe_machine(),
    }
    stamps = dict(sorted({**read_stamps(), name: new}.items()))
    _PATH.write_text(json.dumps(stamps, indent=2) + "\n", encoding="utf-8")


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
    shown = [each for t in TABLES if t.name == name for each in t.figures]
    if not shown:
        return None
    stamps = read_stamps()
    places = dict.fromkeys(
        "on {date} with commit {commit} ({machine})".format(**stamps[each])
        for each in shown
        if each in stamps
    )
    return f"Measured {'; '.join(places)}." if places else "Not measured yet."
