"""What reading an LMDB and a LevelDB have in common: records from any position on, without end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from caffe.data.shared_handles import SharedHandles


class RecordSource(ABC):
    """The records of one database, in key order, round and round.

    Position p is record number p modulo the number of records: positions go on counting where the
    database is read again from its start.

    Args:
        path: the database.
        handles: what opens it, once for all readers.
        failure: what its library raises.

    Raises:
        ValueError: it cannot be opened, or has no records.
    """

    kind: ClassVar[str]  # what such a database is called
    article: ClassVar[str]

    def __init__(
        self, path: str | Path, handles: SharedHandles[Any], failure: type[Exception]
    ) -> None:
        """Open the database; see the class."""
        self.path = Path(path)
        self._key = self.path.resolve()
        self._handles = handles
        self._position = 0
        try:
            self._database = handles.acquire(self._key)
        except failure as error:
            raise ValueError(
                f"'{path}' cannot be opened as {self.article} {self.kind}: {error}"
            ) from error
        self._closed = False
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _begin(self) -> None:
        """Make ready to read. ValueError for a damaged database, or one without records."""

    @abstractmethod
    def _record(self, position: int) -> tuple[bytes, bytes]:
        """Return key and value at a position. ValueError where the database is damaged."""

    @abstractmethod
    def _end(self) -> None:
        """Let go of what _begin() and _record() took, as far as they came."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records."""

    def __str__(self) -> str:
        """Return what it is called in messages."""
        return f"{self.kind} '{self.path}'"

    @property
    def position(self) -> int:
        """Number of the record that the next read gives, counted from the first pass on."""
        return self._position

    @position.setter
    def position(self, value: int) -> None:
        if value < 0:
            raise ValueError(f"a position in '{self.path}' cannot be negative: {value}")
        self._position = value

    def read(self) -> tuple[bytes, bytes]:
        """Return key and value of the next record.

        Raises:
            ValueError: the database is damaged or closed.
        """
        if self._closed:
            raise ValueError(f"{self} is closed")
        record = self._record(self._position)
        self._position += 1
        return record

    def __del__(self) -> None:
        """Close, where nobody did."""
        if hasattr(self, "_closed"):
            self.close()

    def close(self) -> None:
        """Close the database. Closing twice does no harm."""
        if self._closed:
            return
        self._closed = True
        self._end()
        self._handles.release(self._key)
