"""Says which extra to install if a package of a script is missing."""

import pathlib
import sys
from types import TracebackType

# By the folder of the script.
_EXTRAS = {"training": "training,plots", "export": "export"}


def explain(
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
) -> None:
    """Prints an error that ends a script, as `sys.excepthook`."""
    script = pathlib.Path(sys.argv[0])
    extras = _EXTRAS.get(script.resolve().parent.name)
    if extras is None or not isinstance(error, ModuleNotFoundError):
        sys.__excepthook__(kind, error, traceback)
        return
    package = str(error.name).split(".")[0]
    print(
        f"error: {script.name} needs the package {package}, which is not "
        f'installed: pip install -e ".[{extras}]"',
        file=sys.stderr,
    )


sys.excepthook = explain
