"""Writing LMDB databases that are complete or not there at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

import lmdb

_FIRST_MAP_SIZE = 64 << 20
_RECORDS_A_TRANSACTION = 1000
_BYTES_A_TRANSACTION = 64 << 20


class LmdbWriter:
    """Writes records to a new LMDB; to be used in a `with` statement.

    The records go to a temporary folder beside `path`, which is renamed when the statement ends
    well and removed when it ends with an exception. The map grows as needed.

    Args:
        path: folder of the database; it must not exist, unless `overwrite`.
        overwrite: replace what lies at `path` (when done, not before).

    Raises:
        FileExistsError: something lies at `path`.
    """

    def __init__(self, path: str | Path, overwrite: bool = False) -> None:
        """Create the temporary folder; see the class."""
        self.path = Path(path)
        if self.path.exists() and not overwrite:
            raise FileExistsError(
                f"'{path}' exists already; remove it, or allow it to be overwritten"
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._folder = Path(
            tempfile.mkdtemp(prefix=f".{self.path.name}.", suffix=".part", dir=self.path.parent)
        )
        self._map_size = _FIRST_MAP_SIZE
        self._environment = lmdb.open(str(self._folder), map_size=self._map_size, sync=False)
        self._pending: list[tuple[bytes, bytes]] = []
        self._pending_bytes = 0
        self.count = 0

    def put(self, key: bytes | str, value: bytes) -> None:
        """Add one record.

        Raises:
            ValueError: the key is empty, too long for LMDB (511 bytes), or was there before.
            lmdb.Error, OSError: writing fails, for want of space for instance.
        """
        name = key.encode() if isinstance(key, str) else key
        if not 0 < len(name) <= self._environment.max_key_size():
            raise ValueError(
                f"a key has 1 to {self._environment.max_key_size()} bytes, not {name!r}"
            )
        self._pending.append((name, value))
        self._pending_bytes += len(value)
        self.count += 1
        if (
            len(self._pending) >= _RECORDS_A_TRANSACTION
            or self._pending_bytes >= _BYTES_A_TRANSACTION
        ):
            self._flush()

    def _flush(self) -> None:
        while self._pending:
            try:
                with self._environment.begin(write=True) as transaction:
                    for key, value in self._pending:
                        if not transaction.put(key, value, overwrite=False):
                            raise ValueError(f"key {key!r} occurs twice")
            except lmdb.MapFullError:
                self._map_size = max(2 * self._map_size, self._map_size + 2 * self._pending_bytes)
                self._environment.set_mapsize(self._map_size)
                continue
            self._pending.clear()
            self._pending_bytes = 0

    def __enter__(self) -> LmdbWriter:
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
                self._environment.sync(True)
                self._environment.close()
                self._move_into_place()
        finally:
            self._environment.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _move_into_place(self) -> None:
        # Readers without write permission must not need a lock file, and mkdtemp is private.
        (self._folder / "lock.mdb").unlink(missing_ok=True)
        mask = os.umask(0)
        os.umask(mask)
        self._folder.chmod(0o777 & ~mask)
        if self.path.is_dir():
            shutil.rmtree(self.path)
        elif self.path.exists():
            self.path.unlink()
        self._folder.rename(self.path)
