"""Reading LMDB databases in key order, round and round."""

from __future__ import annotations

from pathlib import Path

import lmdb

from caffe.data.shared_handles import SharedHandles

_DATA_FILE = "data.mdb"
_PAGE_COUNT_FROM = 1


def _open_environment(path: Path) -> lmdb.Environment:
    return lmdb.open(str(path), readonly=True, lock=False, create=False, subdir=path.is_dir())


_environments = SharedHandles(_open_environment)


class LmdbSource:
    """The records of one LMDB, from any position on, in key order and without end.

    Position p is record number p modulo the number of records: positions go on counting where the
    database is read again from its start.

    Args:
        path: the LMDB's folder (or its single file).

    Raises:
        FileNotFoundError: nothing lies at `path`.
        ValueError: no LMDB, a damaged or cut off one, or one without records.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the database; see the class."""
        self.path = Path(path)
        check_lmdb(self.path)
        self._key = self.path.resolve()
        try:
            self._environment = _environments.acquire(self._key)
        except lmdb.Error as error:
            raise ValueError(f"'{path}' cannot be opened as an LMDB: {error}") from error
        self._closed = False
        try:
            self._count = self._check_size()
            self._transaction = self._environment.begin()
            self._cursor = self._transaction.cursor()
        except BaseException:
            self._closed = True
            _environments.release(self._key)
            raise
        self._position = 0
        self._at: int | None = None  # record the cursor stands on

    def __str__(self) -> str:
        """Return what it is called in messages."""
        return f"LMDB '{self.path}'"

    def __len__(self) -> int:
        """Return the number of records."""
        return self._count

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
            raise ValueError(f"LMDB '{self.path}' is closed")
        wanted = self._position % self._count
        try:
            self._move_to(wanted)
            key, value = self._cursor.item()
        except lmdb.Error as error:
            raise ValueError(
                f"LMDB '{self.path}' is damaged at record {wanted}: {error}"
            ) from error
        self._position += 1
        return bytes(key), bytes(value)

    def _move_to(self, wanted: int) -> None:
        if self._at is None or wanted < self._at:
            found = self._cursor.first()
            self._at = 0
        else:
            found = True
        while found and self._at < wanted:
            found = self._cursor.next()
            self._at += 1
        if not found:
            at, self._at = self._at, None
            raise ValueError(
                f"LMDB '{self.path}' is damaged: it claims {self._count} records, "
                f"and ends after {at}"
            )

    def close(self) -> None:
        """Close the database. Closing twice does no harm."""
        if self._closed:
            return
        self._closed = True
        self._cursor.close()
        self._transaction.abort()
        _environments.release(self._key)

    def _check_size(self) -> int:
        """Return the number of records, after making sure that all pages are there.

        Reading a page beyond the end of the file would kill the process.
        """
        statistics = self._environment.stat()
        pages = self._environment.info()["last_pgno"] + _PAGE_COUNT_FROM
        file = self.path / _DATA_FILE if self.path.is_dir() else self.path
        size, needed = file.stat().st_size, pages * statistics["psize"]
        if size < needed:
            raise ValueError(
                f"LMDB '{self.path}' is cut off: {file.name} has {size} bytes, its header says "
                f"{needed}; was the copy or download complete?"
            )
        count = int(statistics["entries"])
        if count == 0:
            raise ValueError(f"LMDB '{self.path}' is empty: it has no records")
        return count


def check_lmdb(path: Path) -> None:
    """Make sure that `path` looks like an LMDB.

    Raises:
        FileNotFoundError: nothing is there; says how to make a database.
        ValueError: something else is there.
    """
    if not path.exists():
        where = "" if path.is_absolute() else f" (working directory {Path.cwd()})"
        raise FileNotFoundError(f"LMDB '{path}' does not exist{where}; {how_to_make(path)}")
    if not path.is_dir():
        return
    if (path / _DATA_FILE).exists():
        if (path / _DATA_FILE).stat().st_size == 0:
            raise ValueError(f"'{path}' is no LMDB: its {_DATA_FILE} is empty")
        return
    if (path / "CURRENT").exists():
        raise ValueError(
            f"'{path}' is a LevelDB, not an LMDB: set backend: LEVELDB to read it, or make it anew "
            f"as an LMDB: {how_to_make(path)}"
        )
    raise ValueError(f"'{path}' is no LMDB: the folder has no {_DATA_FILE}; {how_to_make(path)}")


def how_to_make(path: Path) -> str:
    """Return the command that makes a database at `path`, as well as its name tells."""
    if "fashion" in str(path).lower():
        return f"make it with: caffe prepare fashion-mnist -out {path.parent}"
    if "mnist" in path.name.lower():
        return f"make it with: caffe prepare idx -source FOLDER_WITH_IDX_FILES -out {path.parent}"
    return f"make it with: caffe prepare images -root FOLDER -list LIST_FILE -out {path}"
