"""Signals that end a run after its current step."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal has ended the run."""

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Signals:
    """Keeps a signal until the run can stop.

    Attributes:
        deferred: bool. Whether a signal is kept; otherwise it raises
            `Interrupted` at once. A second signal always does.
        received: int or None. The signal, if there was one.
    """

    def __init__(self) -> None:
        self.deferred = False
        self.received: int | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal; a handler for `signal.signal`."""
        del frame
        if not self.deferred or self.received is not None:
            raise Interrupted(number)
        self.received = number
        print(
            f"\n{signal.Signals(number).name}: the run stops after this step. "
            "A second signal stops it at once.",
            file=sys.stderr,
        )

    @contextlib.contextmanager
    def wait_for_the_step(self) -> Iterator[None]:
        """Defers signals within this context."""
        self.deferred = True
        try:
            yield
        finally:
            self.deferred = False


@contextlib.contextmanager
def catch_signals() -> Iterator[Signals]:
    """Catches SIGTERM and SIGINT within this context."""
    signals = Signals()
    previous = {
        number: signal.signal(number, signals.handle)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
