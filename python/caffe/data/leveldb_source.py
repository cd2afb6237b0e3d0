"""Reading LevelDB databases in key order, round and round. Needs plyvel, the extra `leveldb`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from caffe.data.lmdb_source import how_to_make
from caffe.data.record_source import RecordSource
from caffe.data.shared_handles import SharedHandles

_OPEN_FILES = 100


def require_plyvel() -> Any:
    """Return plyvel. ImportError, naming the extra to install, where it is missing."""
    try:
        import plyvel  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ImportError(
            "LevelDB needs plyvel: pip install 'comet-caffe[leveldb]'; or make an LMDB and set "
            "backend: LMDB"
        ) from error
    return plyvel


def _open_database(path: Path) -> Any:
    return require_plyvel().DB(str(path), create_if_missing=False, max_open_files=_OPEN_FILES)


_databases = SharedHandles(_open_database)


class LevelDbSource(RecordSource):
    """The records of one LevelDB; see RecordSource.

    A LevelDB does not know how many records it has: they are counted when its end is first reached,
    or asked for.

    Args:
        path: the LevelDB's folder. LevelDB locks it: no other process may have it open.

    Raises:
        FileNotFoundError: nothing lies at `path`.
        ImportError: plyvel is not installed.
        ValueError: no LevelDB, a damaged or locked one, or one without records.
    """

    kind, article = "LevelDB", "a"

    def __init__(self, path: str | Path) -> None:
        """Open the database; see the class."""
        _check_folder(Path(path))
        self._failure = require_plyvel().Error
        self._count: int | None = None
        self._iterator: Any = None
        self._at = 0  # record that the iterator gives next
        super().__init__(path, _databases, self._failure)

    def _begin(self) -> None:
        if self._item(0) is None:
            raise ValueError(f"{self} is empty: it has no records")

    def __len__(self) -> int:
        """Return the number of records: reads all keys, unless it has been counted before."""
        if self._count is None:
            with self._database.iterator(include_value=False) as keys:
                self._count = sum(1 for _ in keys)
        return self._count

    def _record(self, position: int) -> tuple[bytes, bytes]:
        item = self._item(position if self._count is None else position % self._count)
        if item is None:
            # The end, met for the first time: `_at` records came before it.
            if self._at == 0:
                raise ValueError(f"{self} has lost its records")
            self._count = self._at
            item = self._item(position % self._count)
        if item is None:
            raise ValueError(
                f"{self} is damaged: it had {self._count} records, and ends after {self._at}"
            )
        return item

    def _item(self, wanted: int) -> tuple[bytes, bytes] | None:
        """Return record number `wanted`, or None where the database ends before it."""
        try:
            if self._iterator is None or wanted < self._at:
                self._end()
                self._iterator = self._database.iterator(verify_checksums=True)
            while True:
                item: tuple[bytes, bytes] | None = next(self._iterator, None)
                if item is None:
                    return None
                self._at += 1
                if self._at > wanted:
                    return item
        except self._failure as error:
            raise ValueError(f"{self} is damaged at record {self._at}: {error}") from error

    def _end(self) -> None:
        if self._iterator is not None:
            self._iterator.close()
        self._iterator, self._at = None, 0


def _check_folder(path: Path) -> None:
    if not path.exists():
        where = "" if path.is_absolute() else f" (working directory {Path.cwd()})"
        raise FileNotFoundError(
            f"LevelDB '{path}' does not exist{where}; for a new database use backend: LMDB, and "
            f"{how_to_make(path)}"
        )
    if (path / "data.mdb").exists() or path.is_file():
        raise ValueError(
            f"'{path}' is no LevelDB, but looks like an LMDB: set backend: LMDB (where no backend "
            "is named, it is LEVELDB, as in Caffe)"
        )
    if not (path / "CURRENT").exists():
        raise ValueError(f"'{path}' is no LevelDB: the folder has no file CURRENT")
