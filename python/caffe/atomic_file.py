"""Files that are there whole or not at all.

A file is written beside its place, synced and renamed: a full disk or a crash leaves the old one
whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file to write (and read); at the end of the block it takes the place of `path`.

    Raises OSError (no space, no such folder), naming `path`, and leaves nothing behind then.
    """
    try:
        with _atomic_file(Path(path)) as file:
            yield file
    except OSError as error:
        # The error of a full disk names no file, the others a temporary one.
        reason = error.strerror or str(error)
        raise type(error)(error.errno, f"cannot write '{path}': {reason}") from error


@contextmanager
def _atomic_file(path: Path) -> Iterator[BinaryIO]:
    handle, temporary = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield cast("BinaryIO", file)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes the file private; a snapshot has the mode that other files get.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` to `path`, so that at any moment the old or the new file is there whole.

    Raises OSError as atomic_file() does.
    """
    with atomic_file(path) as file:
        file.write(data)
