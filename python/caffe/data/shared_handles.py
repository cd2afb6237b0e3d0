"""Databases that are open once, however many readers they have: neither LMDB nor LevelDB lets a
process open one twice, and training and test nets often read the same one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

H = TypeVar("H", bound=Any)  # something with close()


class SharedHandles(Generic[H]):
    """Open databases by path, counted.

    Args:
        open_database: opens the one at a path.
    """

    def __init__(self, open_database: Callable[[Path], H]) -> None:
        """Have none open; see the class."""
        self._open_database = open_database
        self._lock = threading.Lock()
        self._open: dict[Path, tuple[H, int]] = {}

    def acquire(self, path: Path) -> H:
        """Return the database at `path`, opened if need be; to be followed by one release()."""
        with self._lock:
            handle, users = self._open.get(path, (None, 0))
            if handle is None:
                handle = self._open_database(path)
            self._open[path] = (handle, users + 1)
            return handle

    def release(self, path: Path) -> None:
        """Give back what acquire() returned; the last one closes."""
        with self._lock:
            handle, users = self._open.pop(path)
            if users > 1:
                self._open[path] = (handle, users - 1)
            else:
                handle.close()
