"""The two kinds of databases by name: what reads one, and what writes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from caffe.data.leveldb_source import LevelDbSource
from caffe.data.leveldb_writer import LevelDbWriter
from caffe.data.lmdb_source import LmdbSource
from caffe.data.lmdb_writer import LmdbWriter
from caffe.data.record_source import RecordSource
from caffe.data.record_writer import RecordWriter

#: Backend -> what opens such a database, given its path.
SOURCES: dict[str, Callable[[str | Path], RecordSource]] = {
    "lmdb": LmdbSource,
    "leveldb": LevelDbSource,
}
#: Backend -> what makes one, given its path and whether to replace what is there.
WRITERS: dict[str, Callable[[str | Path, bool], RecordWriter]] = {
    "lmdb": LmdbWriter,
    "leveldb": LevelDbWriter,
}


def checked_backend(name: str) -> str:
    """Return `name` in lower case; ValueError unless it is a kind of database."""
    if name.lower() not in SOURCES:
        raise ValueError(f"database kind '{name}' must be one of {', '.join(SOURCES)}")
    return name.lower()
