"""Writing LMDBs."""

from __future__ import annotations

import lmdb

from caffe.data.record_writer import RecordWriter

_FIRST_MAP_SIZE = 64 << 20


class LmdbWriter(RecordWriter):
    """Writes an LMDB, whose map grows as needed; see RecordWriter. Keys have 1 to 511 bytes."""

    def _open(self) -> None:
        self._map_size = _FIRST_MAP_SIZE
        self._environment = lmdb.open(str(self._folder), map_size=self._map_size, sync=False)

    def _check_key(self, key: bytes) -> None:
        if not 0 < len(key) <= self._environment.max_key_size():
            raise ValueError(
                f"a key has 1 to {self._environment.max_key_size()} bytes, not {key!r}"
            )

    def _write(self, records: dict[bytes, bytes]) -> None:
        while True:
            try:
                with self._environment.begin(write=True) as transaction:
                    for key, value in records.items():
                        if not transaction.put(key, value, overwrite=False):
                            raise ValueError(f"key {key!r} occurs twice")
                return
            except lmdb.MapFullError:
                needed = sum(map(len, records.values()))
                self._map_size = max(2 * self._map_size, self._map_size + 2 * needed)
                self._environment.set_mapsize(self._map_size)
            except lmdb.Error as error:
                raise OSError(f"cannot write LMDB '{self.path}': {error}") from error

    def _finish(self) -> None:
        try:
            self._environment.sync(True)
        except lmdb.Error as error:
            raise OSError(f"cannot write LMDB '{self.path}': {error}") from error

    def _close(self) -> None:
        self._environment.close()
        # Readers without write permission must not need a lock file.
        (self._folder / "lock.mdb").unlink(missing_ok=True)
