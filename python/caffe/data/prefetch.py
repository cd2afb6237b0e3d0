"""Batches made ready by a background thread, in a fixed order."""

from __future__ import annotations

import atexit
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.1

# A thread that is inside a C library while the interpreter goes away can crash the process.
_running: weakref.WeakSet[Prefetcher[Any]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for prefetcher in list(_running):
        prefetcher.close()


class Prefetcher(Generic[T]):
    """Calls `produce` ahead of its consumer, in a thread of its own.

    The thread starts with the first `get` and ends with `close`, with the object, or with the
    interpreter. The order of batches depends on positions alone, never on timing.

    Args:
        produce: makes the batch at a position and returns it with the position after it. The thread
            holds on to it, so it must not lead back to whoever owns the prefetcher.
        depth: batches kept ready.
        position: of the first batch.
    """

    def __init__(
        self, produce: Callable[[int], tuple[T, int]], depth: int = 4, position: int = 0
    ) -> None:
        """Set up; see the class."""
        self._produce = produce
        self._depth = max(depth, 1)
        self._position = position
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._queue: queue.Queue[tuple[T, int] | Exception] = queue.Queue(self._depth)
        self._next: tuple[T, int] | None = None  # taken from the queue by peek()

    @property
    def position(self) -> int:
        """Position of the batch that the next `get` returns. Setting it discards what is ready."""
        return self._position

    @position.setter
    def position(self, value: int) -> None:
        if value != self._position:
            self.close()
            self._position = value

    def get(self) -> T:
        """Return the next batch, waiting for it where need be.

        Raises:
            Exception: whatever `produce` raised for this batch; the next call tries it again.
        """
        batch, self._position = self._take()
        self._next = None
        return batch

    def peek(self) -> T:
        """Return the batch that the next `get` gives. Raises as `get` does."""
        return self._take()[0]

    def _take(self) -> tuple[T, int]:
        if self._next is not None:
            return self._next
        if self._thread is None:
            self._start()
        item = self._wait()
        if isinstance(item, Exception):
            self.close()
            raise item
        self._next = item
        return item

    def close(self) -> None:
        """Stop the thread and discard what is ready. `get` starts it again."""
        self._next = None
        if self._thread is None:
            return
        self._stop.set()
        if self._thread is not threading.current_thread():  # garbage is collected anywhere
            self._thread.join()
        self._thread = None

    def __del__(self) -> None:
        """Stop the thread."""
        self.close()

    def _start(self) -> None:
        self._stop = threading.Event()
        self._queue = queue.Queue(self._depth)
        self._thread = threading.Thread(
            target=_run,
            args=(self._produce, self._position, self._queue, self._stop),
            name="prefetch",
            daemon=True,
        )
        self._thread.start()
        _running.add(self)

    def _wait(self) -> tuple[T, int] | Exception:
        while True:
            try:
                return self._queue.get(timeout=_POLL_SECONDS * 10)
            except queue.Empty:
                if self._thread is None or not self._thread.is_alive():
                    return RuntimeError("the prefetch thread ended without a word")


def _run(
    produce: Callable[[int], tuple[T, int]],
    position: int,
    ready: queue.Queue[tuple[T, int] | Exception],
    stop: threading.Event,
) -> None:
    """Fill `ready` until told to stop or `produce` fails: the consumer gets the exception."""
    while not stop.is_set():
        item: tuple[T, int] | Exception
        try:
            item = produce(position)
            position = item[1]
        except Exception as error:
            item = error
        while not stop.is_set():
            try:
                ready.put(item, timeout=_POLL_SECONDS)
                break
            except queue.Full:
                continue
        if isinstance(item, Exception):
            return
