"""When figures were measured, and with which code."""

import dataclasses
import datetime
import json

from benchmarks.published.figure import MEASURED
from benchmarks.published.figure import Figure
from benchmarks.published.registry import FIGURES

_PATH = MEASURED / "stamps.json"


@dataclasses.dataclass(frozen=True)
class Stamp:
    """When figures were measured, and with which code.

    Attributes:
        date: The day, as YYYY-MM-DD.
        code: The fingerprint of the code that was measured, or None where it is
            not known.
        unaffected: Why this is the fingerprint of later code, which cannot
            have changed the figures, or None.
    """

    date: str
    code: str | None = None
    unaffected: str | None = None

    def is_fresh(self, figure: Figure) -> bool:
        """Whether the code has not changed since."""
        return self.code == figure.code


def read_stamps() -> dict[str, Stamp]:
    """Returns the stamps of all figures that were measured, by their names."""
    if not _PATH.exists():
        return {}
    found = json.loads(_PATH.read_text(encoding="utf-8"))
    return {name: Stamp(**each) for name, each in found.items()}


def stamp(figure: Figure, code: str) -> None:
    """Notes that figures were measured today.

    Args:
        figure: What was measured.
        code: The fingerprint of the code when the commands were started.
    """
    _write(figure, Stamp(datetime.date.today().isoformat(), code))


def stamp_unaffected(figure: Figure, reason: str) -> None:
    """Notes that changes of the code cannot have changed figures.

    Args:
        figure: What was measured before.
        reason: Why the changes cannot have changed it.
    """
    date = read_stamps()[figure.name].date
    _write(figure, Stamp(date, figure.code, reason))


def _write(figure, new):
    stamps = {**read_stamps(), figure.name: new}
    known = {
        name: {key: value for key, value in vars(each).items() if value}
        for name, each in sorted(stamps.items())
    }
    text = json.dumps(known, indent=2)
    _PATH.write_text(text + "\n", encoding="utf-8")


def state(figure: Figure) -> str:
    """Returns `fresh`, or why the figures are not."""
    found = read_stamps().get(figure.name)
    if found is None:
        return "not measured"
    return "fresh" if found.is_fresh(figure) else "the code has changed"


def state_with_reason(figure: Figure) -> str:
    """Returns the state, and why figures of other code are fresh."""
    found, now = read_stamps().get(figure.name), state(figure)
    if found is None or found.unaffected is None or now != "fresh":
        return now
    return f"{now}: {found.unaffected}"


def warning(name: str) -> str | None:
    """Returns what to say of a table that is stale, or None.

    Args:
        name: The name between the table's markers.
    """
    stamps = read_stamps()
    stale = [
        figure.name
        for figure in FIGURES
        if any(table.name == name for table in figure.tables)
        and state(figure) != "fresh"
    ]
    if not stale:
        return None
    dates = [stamps[each].date for each in stale if each in stamps]
    if not dates:
        return "Not measured yet."
    return (
        f"Measured on {min(dates)}. The code that was measured has changed "
        "since."
    )
