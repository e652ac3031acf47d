"""Prints a benchmark's table, and writes it with a JSON file."""

import importlib.metadata
import json
import os
import pathlib
import platform
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


def report(name: str, rows: list[dict[str, Any]], directory: pathlib.Path):
    """Prints rows as a Markdown table and writes them."""
    print(write(name, rows, directory))


def write(
    name: str, rows: list[dict[str, Any]], directory: pathlib.Path
) -> str:
    """Writes the rows so far, so that a long run loses nothing."""
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


def spread(median: float, least: float, largest: float) -> str:
    """Returns a figure with its range, with three digits each."""
    return f"{median:.3g} ({least:.3g}-{largest:.3g})"


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
