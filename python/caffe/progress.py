"""A progress bar on standard error; nothing where that is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_WIDTH = 30  # characters
_INTERVAL = 0.2  # seconds between drawings


class Progress:
    """Shows how far a loop has come; to be used in a `with` statement."""

    def __init__(self, total: int, what: str) -> None:
        """Count up to `total` of `what`, a plural."""
        self._total = max(total, 1)
        self._what = what
        self._drawn_at = 0.0
        self._shows = sys.stderr is not None and sys.stderr.isatty()

    def update(self, done: int) -> None:
        """Show that so many are done."""
        now = time.monotonic()
        if self._shows and now - self._drawn_at >= _INTERVAL:
            self._drawn_at = now
            filled = "=" * (_WIDTH * done // self._total)
            self._write(f"\r[{filled:<{_WIDTH}}] {done}/{self._total} {self._what}")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._shows = False  # the terminal is gone; the work goes on

    def __enter__(self) -> Progress:
        """Return the bar."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wipe the bar."""
        if self._shows and self._drawn_at:
            self._write("\r\x1b[K")
