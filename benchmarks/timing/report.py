"""Prints a benchmark's table, and writes it with a JSON file."""

import importlib.metadata
import json
import os
import pathlib
import platform
from collections.abc import Iterable
from typing import Any

from tabulate import tabulate

from benchmarks.timing import on_device

_PACKAGES = (
    "tensorflow",
    "jax",
    "torch",
    "keras",
    "keras-hub",
    "product-key-memory",
)


def machine() -> dict[str, Any]:
    """Returns the versions, processor, threads and devices in use."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "processor": _processor(),
        "threads": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "devices": on_device.names() or ["CPU"],
    }


def describe_machine() -> str:
    """Returns the processor, threads and devices in use, as text."""
    where = machine()
    devices = ", ".join(where["devices"])
    return f"{where['processor']}, {where['threads']} threads, {devices}"


def report(
    name: str, rows: Iterable[dict[str, Any]], directory: pathlib.Path
) -> list[dict[str, Any]]:
    """Writes rows as they come, prints them as Markdown, and returns them."""
    found, text = [], ""
    for row in rows:
        found.append(row)
        # A long run that is stopped loses nothing.
        text = _write(name, found, directory)
    print(text)
    return found


def _write(name, rows, directory):
    where = machine()
    versions = ", ".join(f"{k} {v}" for k, v in where["versions"].items())
    text = (
        f"{tabulate(rows, headers='keys', tablefmt='github')}\n\n"
        f"{describe_machine()}; {versions}\n"
    )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.md").write_text(text)
    (directory / f"{name}.json").write_text(
        json.dumps({**where, "rows": rows}, indent=2) + "\n"
    )
    return text


def mebibytes(size: int | None, held: int = 0) -> str:
    """Returns a size beyond what is held, or "-" if it is unknown."""
    return "-" if size is None else f"{(size - held) / 2**20:,.0f}"


def megabytes(directory: pathlib.Path) -> float:
    """Returns the size of all files in a directory."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return sum(path.stat().st_size for path in files) / 1e6


def _versions():
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _processor():
    information = pathlib.Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
