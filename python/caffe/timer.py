"""Timer: wall time, as pycaffe's."""

from __future__ import annotations

import time


class Timer:
    """Measures between start() and stop()."""

    def __init__(self) -> None:
        """Make a timer that has not run."""
        self._started: float | None = None
        self._seconds = 0.0

    def start(self) -> None:
        """Start anew; does nothing to a timer that runs."""
        if self._started is None:
            self._started = time.perf_counter()

    def stop(self) -> None:
        """Stop; does nothing to a timer that does not run."""
        if self._started is not None:
            self._seconds = time.perf_counter() - self._started
            self._started = None

    @property
    def ms(self) -> float:
        """Milliseconds between the last start and stop; stops a timer that runs."""
        self.stop()
        return self._seconds * 1e3
