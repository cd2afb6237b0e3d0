"""Writing databases that are complete or not there at all."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from caffe.atomic_folder import make_public, move_into_place, part_folder, refuse_existing

_RECORDS_AT_ONCE = 1000
_BYTES_AT_ONCE = 64 << 20

W = TypeVar("W", bound="RecordWriter")


class RecordWriter(ABC):
    """Writes records to a new database; to be used in a `with` statement.

    The records go to a temporary folder beside `path`, which is renamed when the statement ends
    well and removed when it ends with an exception.

    Args:
        path: folder of the database; it must not exist, unless `overwrite`.
        overwrite: replace what lies at `path` (when done, not before).

    Raises:
        FileExistsError: something lies at `path`.
    """

    def __init__(self, path: str | Path, overwrite: bool = False) -> None:
        """Create the temporary folder; see the class."""
        self.path = Path(path)
        if not overwrite:
            refuse_existing([self.path])
        self._folder = part_folder(self.path)
        try:
            self._open()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._pending: dict[bytes, bytes] = {}
        self._pending_bytes = 0
        self.count = 0

    @abstractmethod
    def _open(self) -> None:
        """Start a database in `self._folder`."""

    @abstractmethod
    def _write(self, records: dict[bytes, bytes]) -> None:
        """Write records. ValueError for a key that was there before, OSError where it fails."""

    @abstractmethod
    def _finish(self) -> None:
        """Make sure that all is on the disk."""

    @abstractmethod
    def _close(self) -> None:
        """Close the database. Closing twice does no harm."""

    def put(self, key: bytes | str, value: bytes) -> None:
        """Add one record.

        Raises:
            ValueError: the key is empty, too long for the database, or was there before.
            OSError: writing fails, for want of space for instance.
        """
        name = key.encode() if isinstance(key, str) else key
        self._check_key(name)
        if name in self._pending:
            raise ValueError(f"key {name!r} occurs twice")
        self._pending[name] = value
        self._pending_bytes += len(value)
        self.count += 1
        if len(self._pending) >= _RECORDS_AT_ONCE or self._pending_bytes >= _BYTES_AT_ONCE:
            self._flush()

    def _check_key(self, key: bytes) -> None:
        if not key:
            raise ValueError("a key has one byte or more")

    def _flush(self) -> None:
        self._write(self._pending)
        self._pending.clear()
        self._pending_bytes = 0

    def __enter__(self: W) -> W:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish the database, or remove what there is of it after an exception."""
        try:
            if kind is None:
                self._flush()
                self._finish()
                self._close()
                make_public(self._folder)
                move_into_place(self._folder, self.path)
        finally:
            self._close()
            shutil.rmtree(self._folder, ignore_errors=True)
