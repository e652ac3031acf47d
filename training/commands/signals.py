"""Signals that ask a run to end: they wait until its step is done."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal has ended the run.

    Args:
        number: int. The signal.
    """

    def __init__(self, number: int):
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Signals:
    """Remembers a signal until the run has come to a place where it can stop.

    Attributes:
        deferred: bool. Whether a signal is remembered; otherwise it raises
            `Interrupted` at once. So does the second one.
        received: int or None. The signal.
    """

    def __init__(self):
        self.deferred = False
        self.received = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Takes a signal, as `signal.signal` hands it over."""
        del frame
        if not self.deferred or self.received is not None:
            raise Interrupted(number)
        self.received = number
        print(
            f"\n{signal.Signals(number).name}: the run stops after this step. "
            "Once more stops it at once.",
            file=sys.stderr,
        )

    @contextlib.contextmanager
    def wait_for_the_step(self) -> Iterator[None]:
        """Defers signals while it is open."""
        self.deferred = True
        try:
            yield
        finally:
            self.deferred = False


@contextlib.contextmanager
def catch_signals() -> Iterator[Signals]:
    """Catches SIGTERM and SIGINT while it is open."""
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
