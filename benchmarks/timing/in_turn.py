"""Times contenders in turn: A B A B ..., each in a separate process.

Other load on a shared machine then affects all of them alike: the ratios of a
round are meaningful even if its times are not. Separate processes keep their
thread pools and their memory apart.
"""

import contextlib
import dataclasses
import importlib
import multiprocessing
import time
import traceback
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from benchmarks.timing import peak_memory
from benchmarks.timing.times import Times


@dataclasses.dataclass(frozen=True)
class Contender:
    """One side of a comparison."""

    # Its name in tables.
    name: str
    # The name of a function that returns a `Case`, as MODULE.NAME in this
    # folder. Only its own process imports it: TensorFlow and torch do not work
    # together in one process.
    build: str
    # Its arguments.
    args: tuple


@dataclasses.dataclass(frozen=True)
class Case:
    """The functions that a process offers for timing."""

    # The functions to time, by name. A call returns when its result is ready.
    tasks: dict[str, Callable[[], Any]]
    # Further facts, such as the number of parameters.
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Timing(Times):
    """The measurements of one task of one contender."""

    # The peak memory use in these rounds, beyond the use before anything was
    # built, or `None` if it is unknown.
    peak_bytes: int | None
    # The facts of its `Case`.
    facts: dict[str, Any]


def time_in_turn(
    contenders: list[Contender], tasks: Sequence[str], rounds: int
) -> dict[str, list[Timing]]:
    """Times one task after another, each for all contenders in turn."""
    timings = {}
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(_Process(contender)) for contender in contenders
        ]
        facts = [process.result() for process in processes]
        for task in tasks:
            for process in processes:
                process.ask("warm_up", task)
            seconds = [[] for _ in processes]
            for _ in range(rounds):
                for process, times in zip(processes, seconds):
                    times.append(process.ask("time", task))
            timings[task] = [
                Timing(times, process.ask("peak", task), known)
                for process, times, known in zip(processes, seconds, facts)
            ]
    return timings


class _Process:
    """A contender's process, as a context manager."""

    def __init__(self, contender):
        self._name = contender.name
        context = multiprocessing.get_context("spawn")
        self._connection, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there,), daemon=True
        )
        self._process.start()
        there.close()
        self._connection.send(("build", contender))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.join()

    def ask(self, question, task):
        self._connection.send((question, task))
        return self.result()

    def result(self):
        try:
            failed, answer = self._connection.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(
                f"{self._name} died with exit code {self._process.exitcode}, "
                "-9 mostly because it ran out of memory."
            ) from None
        if failed:
            raise RuntimeError(f"{self._name} failed:\n{answer}")
        return answer


def _serve(connection):
    runner = Runner()
    while True:
        question, argument = connection.recv()
        try:
            connection.send((False, getattr(runner, question)(argument)))
        except Exception:
            connection.send((True, traceback.format_exc()))


class Runner:
    """Builds a contender and times its tasks, as its process is asked to."""

    def build(self, contender):
        module, name = contender.build.split(".")
        module = importlib.import_module(f"benchmarks.contenders.{module}")
        self._before = peak_memory.current()
        self._case = getattr(module, name)(*contender.args)
        return self._case.facts

    def warm_up(self, task):
        for _ in range(2):
            self._case.tasks[task]()
        peak_memory.reset()

    def time(self, task):
        begin = time.perf_counter()
        self._case.tasks[task]()
        return time.perf_counter() - begin

    def peak(self, task):
        most = peak_memory.peak()
        return None if most is None else most - self._before
