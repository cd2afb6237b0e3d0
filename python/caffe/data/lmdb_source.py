"""Reading LMDB databases in key order, round and round."""

from __future__ import annotations

from pathlib import Path

import lmdb

from caffe.data.record_source import RecordSource
from caffe.data.shared_handles import SharedHandles

_DATA_FILE = "data.mdb"
_PAGE_COUNT_FROM = 1


def _open_environment(path: Path) -> lmdb.Environment:
    return lmdb.open(str(path), readonly=True, lock=False, create=False, subdir=path.is_dir())


_environments = SharedHandles(_open_environment)


class LmdbSource(RecordSource):
    """The records of one LMDB; see RecordSource.

    Args:
        path: the LMDB's folder (or its single file).

    Raises:
        FileNotFoundError: nothing lies at `path`.
        ValueError: no LMDB, a damaged or cut off one, or one without records.
    """

    kind, article = "LMDB", "an"

    def __init__(self, path: str | Path) -> None:
        """Open the database; see the class."""
        check_lmdb(Path(path))
        self._transaction: lmdb.Transaction | None = None
        super().__init__(path, _environments, lmdb.Error)

    def _begin(self) -> None:
        self._count = self._check_size()
        self._transaction = self._database.begin()
        self._cursor = self._transaction.cursor()
        self._at: int | None = None  # record the cursor stands on

    def __len__(self) -> int:
        """Return the number of records."""
        return self._count

    def _record(self, position: int) -> tuple[bytes, bytes]:
        wanted = position % self._count
        try:
            self._move_to(wanted)
            key, value = self._cursor.item()
        except lmdb.Error as error:
            raise ValueError(f"{self} is damaged at record {wanted}: {error}") from error
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
                f"{self} is damaged: it claims {self._count} records, and ends after {at}"
            )

    def _end(self) -> None:
        if self._transaction is not None:
            self._cursor.close()
            self._transaction.abort()

    def _check_size(self) -> int:
        """Return the number of records, after making sure that all pages are there.

        Reading a page beyond the end of the file would kill the process.
        """
        statistics = self._database.stat()
        pages = self._database.info()["last_pgno"] + _PAGE_COUNT_FROM
        file = self.path / _DATA_FILE if self.path.is_dir() else self.path
        size, needed = file.stat().st_size, pages * statistics["psize"]
        if size < needed:
            raise ValueError(
                f"{self} is cut off: {file.name} has {size} bytes, its header says "
                f"{needed}; was the copy or download complete?"
            )
        count = int(statistics["entries"])
        if count == 0:
            raise ValueError(f"{self} is empty: it has no records")
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


#: Part of a database's path -> the command that makes it, given the folder it lies in.
_RECIPES = {
    "fashion": "caffe prepare fashion-mnist -out {folder}",
    "mnist": "caffe prepare mnist FOLDER_WITH_IDX_FILES {folder}",
    "cifar10": "caffe prepare cifar10 cifar-10-binary.tar.gz {folder}",
    "dogs": "caffe prepare dogs IMAGES_TAR {folder}",
    "ilsvrc12": "caffe prepare imagenet TRAIN VAL {folder} -val_list LIST_FILE",
}


def how_to_make(path: Path) -> str:
    """Return the command that makes a database at `path`, as well as its name tells."""
    recipe = "caffe prepare images -root FOLDER -list LIST_FILE -out {path}"
    names = f"{path.parent.name}/{path.name}".lower()
    recipe = next((made for part, made in _RECIPES.items() if part in names), recipe)
    return f"make it with: {recipe.format(folder=path.parent, path=path)}"
