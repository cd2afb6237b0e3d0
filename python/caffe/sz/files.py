"""Files of arrays and of streams for the command: `.npy`, raw values, `.sz`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_NPY = b"\x93NUMPY"


def read_array(path: Path, shape: tuple[int, ...] | None, dtype: str | None) -> NDArray[Any]:
    """Read a `.npy` file, or raw little-endian values if `shape` or `dtype` is given.

    Args:
        path: the file; `.npy` files are known by their first bytes.
        shape: of raw values; None is one axis of all there are.
        dtype: of raw values; None is float32.

    Raises:
        OSError: the file cannot be read.
        ValueError: its size does not fit the shape, or it is a `.npy` file with a shape of its own.
    """
    with path.open("rb") as file:
        is_npy = file.read(len(_NPY)) == _NPY
    if is_npy:
        if shape is not None or dtype is not None:
            raise ValueError(
                f"'{path}' is a .npy file, which has its own shape and type; omit -d, -t"
            )
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    if shape is None and dtype is None:
        raise ValueError(f"'{path}' is no .npy file; give a shape, as in -d 64x32x28x28, and -t")
    kind = np.dtype(dtype or "float32").newbyteorder("<")
    size = path.stat().st_size
    if shape is None:
        shape = (size // kind.itemsize,)
    expected = int(np.prod(shape, dtype=object)) * kind.itemsize
    if size != expected:
        raise ValueError(
            f"'{path}' has {size} bytes, but {'x'.join(map(str, shape))} {kind.name} values are "
            f"{expected}"
        )
    return np.fromfile(path, kind).reshape(shape)


def output_path(given: str, default: Path, overwrite: bool) -> Path:
    """Return where to write: what was given, else the default.

    Raises:
        ValueError: that is there already and `overwrite` is not set, or is a folder, or in none.
    """
    path = Path(given) if given else default
    if not path.parent.is_dir():
        raise ValueError(f"cannot write '{path}': there is no folder '{path.parent}'")
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder; give the name of a file with -o")
    if path.exists() and not overwrite:
        raise ValueError(f"'{path}' exists; give -overwrite, or another name with -o")
    return path


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file under a temporary name beside it, then rename it: no half of it is ever seen.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            write(file)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
