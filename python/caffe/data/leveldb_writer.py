"""Writing LevelDBs. Needs plyvel, the extra `leveldb`."""

from __future__ import annotations

from pathlib import Path

from caffe.data.leveldb_source import require_plyvel
from caffe.data.record_writer import RecordWriter


class LevelDbWriter(RecordWriter):
    """Writes a LevelDB; see RecordWriter. ImportError where plyvel is not installed."""

    def __init__(self, path: str | Path, overwrite: bool = False) -> None:
        """Create the temporary folder; see the class."""
        self._plyvel = require_plyvel()
        super().__init__(path, overwrite)

    def _open(self) -> None:
        self._database = self._plyvel.DB(str(self._folder), create_if_missing=True)

    def _write(self, records: dict[bytes, bytes]) -> None:
        try:
            with self._database.write_batch(sync=True) as batch:
                for key, value in records.items():
                    if self._database.get(key) is not None:
                        raise ValueError(f"key {key!r} occurs twice")
                    batch.put(key, value)
        except self._plyvel.Error as error:
            raise OSError(f"cannot write LevelDB '{self.path}': {error}") from error

    def _finish(self) -> None:
        """Do nothing: each batch has been synced."""

    def _close(self) -> None:
        self._database.close()
