"""Error-bounded compression of NumPy arrays.

For float32 arrays whose exact values do not matter below a known error, such as the activations
that training keeps for its backward pass. Arrays with many exact zeros compress best.

    >>> stream = sz.compress(array, error_bound=1e-3)
    >>> restored = sz.decompress(stream)       # abs(array - restored) <= 1e-3 everywhere

What is kept besides the bound: zeros stay zero, NaN and infinities keep their bits, and with
``keep_sign`` so does the sign of every value. The format is described in sz/FORMAT.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from caffe import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

__all__ = ["Error", "Info", "compress", "decompress", "info"]

Error = _core.sz.Error
"""A stream that cannot be decoded; a RuntimeError."""

_MODES = ("abs",)


class Info(TypedDict):
    """What a stream's header says."""

    version: int
    dtype: str
    shape: tuple[int, ...]
    error_bound: float
    keep_sign: bool
    raw_bytes: int
    compressed_bytes: int
    chunks: int


def compress(
    array: NDArray[np.float32],
    error_bound: float,
    mode: str = "abs",
    keep_sign: bool = False,
    *,
    threads: int = 0,
) -> bytes:
    """Compress an array.

    Args:
        array: float32, of any shape; copied first if it is not C-contiguous.
        error_bound: largest difference of a restored value from the original, finite and not
            negative. 0 is lossless: every value comes back with the same bits.
        mode: unit of ``error_bound``; "abs" (the values' own unit) is the only one so far.
        keep_sign: no non-zero value becomes zero or changes its sign.
        threads: threads to use; 0 leaves it to OpenMP. The bytes do not depend on it.

    Returns:
        A stream for `decompress`, never more than a small header larger than the array.

    Raises:
        TypeError: ``array`` is not a float32 array.
        ValueError: another argument is out of range.
    """
    values = _float32_array(array)
    if mode not in _MODES:
        raise ValueError(f"sz.compress: mode is {mode!r}; only 'abs' works so far")
    if not (math.isfinite(error_bound) and error_bound >= 0):
        raise ValueError(
            f"sz.compress: error_bound is {error_bound}; needs a finite number, 0 or more"
        )
    _check_threads("sz.compress", threads)
    stream: bytes = _core.sz.compress(values, error_bound, keep_sign, threads=threads)
    return stream


def decompress(data: Buffer, *, threads: int = 0) -> NDArray[np.float32]:
    """Restore the array of a stream, with its shape and dtype.

    Args:
        data: a stream from `compress`, in any contiguous bytes-like object.
        threads: threads to use; 0 leaves it to OpenMP.

    Raises:
        TypeError: ``data`` is not bytes-like.
        Error: ``data`` is not a whole, sound stream.
    """
    _check_threads("sz.decompress", threads)
    array: NDArray[np.float32] = _core.sz.decompress(
        _bytes_view("sz.decompress", data), threads=threads
    )
    return array


def info(data: Buffer) -> Info:
    """Read a stream's header without decoding its values.

    Raises:
        TypeError: ``data`` is not bytes-like.
        Error: ``data`` is not a whole stream.
    """
    header: Info = _core.sz.info(_bytes_view("sz.info", data))
    return header


def _float32_array(array: Any) -> NDArray[np.float32]:
    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError(
            f"sz.compress: array is a {type(array).__name__}; needs a NumPy array of float32, "
            "use np.asarray(values, np.float32)"
        )
    if array.dtype.newbyteorder("=") != np.float32:
        raise TypeError(
            f"sz.compress: array has dtype {array.dtype}; only float32 works so far, "
            "use array.astype(np.float32)"
        )
    # ascontiguousarray would make a 0-d array 1-d; dtype also undoes a foreign byte order.
    return np.asarray(array, np.float32, order="C")


def _check_threads(where: str, threads: int) -> None:
    if threads < 0:
        raise ValueError(f"{where}: threads is {threads}; needs 0 (OpenMP's default) or more")


def _bytes_view(where: str, data: Any) -> memoryview:
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(
            f"{where}: data is a {type(data).__name__}; needs bytes or another bytes-like object"
        ) from None
    if not view.c_contiguous:
        raise ValueError(f"{where}: data is not contiguous; pass bytes(data)")
    return view.cast("B")
