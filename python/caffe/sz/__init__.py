"""Error-bounded compression of NumPy arrays.

For float32 and float64 arrays whose exact values do not matter below a known error, such as the
activations that training keeps for its backward pass. Arrays with many exact zeros compress best.

    >>> stream = sz.compress(array, error_bound=1e-3)
    >>> restored = sz.decompress(stream)       # abs(array - restored) <= 1e-3 everywhere

What is kept besides the bound: zeros stay zero, NaN and infinities keep their bits, and with
``keep_sign`` so does the sign of every value. The format is described in sz/FORMAT.md. The same
from a shell: ``python -m caffe.sz``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from caffe import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

__all__ = [
    "LARGEST_FACTOR",
    "Error",
    "Info",
    "compress",
    "decompress",
    "decompress_range",
    "info",
]

Error = _core.sz.Error
"""A stream that cannot be decoded; a RuntimeError."""

_MODES = ("abs", "rel")
LARGEST_FACTOR = 1024  # of negative values
_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Info(TypedDict):
    """What a stream's header says."""

    version: int
    dtype: str
    shape: tuple[int, ...]
    error_bound: float
    """Absolute, in either mode."""
    negative_factor: float
    """The bound of negative values is so many times as wide."""
    keep_sign: bool
    dither: int | None
    checksum: bool
    raw_bytes: int
    compressed_bytes: int
    chunks: int
    chunk_values: int


def compress(
    array: NDArray[Any],
    error_bound: float,
    mode: str = "abs",
    keep_sign: bool = False,
    *,
    dither: int | None = None,
    negative_factor: float = 1.0,
    row_length: int | None = None,
    checksum: bool = False,
    threads: int = 0,
) -> bytes:
    """Compress an array.

    Args:
        array: float32 or float64, of any shape; copied first if it is not C-contiguous.
        error_bound: largest difference of a restored value from the original, finite and not
            negative. 0 is lossless: every value comes back with the same bits.
        mode: unit of ``error_bound``: "abs" is the values' own, "rel" the difference of the largest
            and the smallest finite value.
        keep_sign: no non-zero value becomes zero or changes its sign.
        dither: a seed, 0 to 2^32 - 1, for subtractive dither: the errors of non-zero values are
            then uniform in the bound and independent of the values. None rounds to the nearest.
        negative_factor: the bound of negative values, in error bounds, from 1 to 1024; other than 1
            it needs ``keep_sign``, and leaves negative values without dither. For values of which
            the negative side matters less.
        row_length: how many values are in a row, for prediction; None takes the last axis.
        checksum: add 4 bytes a chunk by which `decompress` finds damage.
        threads: threads to use; 0 leaves it to OpenMP. The bytes do not depend on it.

    Returns:
        A stream for `decompress`, never more than a small header larger than the array.

    Raises:
        TypeError: ``array`` is not an array of float32 or float64.
        ValueError: another argument is out of range.
    """
    values = _float_array(array)
    if mode not in _MODES:
        raise ValueError(f"sz.compress: mode is {mode!r}; needs 'abs' or 'rel'")
    if not (math.isfinite(error_bound) and error_bound >= 0):
        raise ValueError(
            f"sz.compress: error_bound is {error_bound}; needs a finite number, 0 or more"
        )
    if dither is not None and not 0 <= dither < 2**32:
        raise ValueError(f"sz.compress: dither is {dither}; needs a seed from 0 to 2**32 - 1")
    if not 1 <= negative_factor <= LARGEST_FACTOR:
        raise ValueError(
            f"sz.compress: negative_factor is {negative_factor}; needs a number from 1 to "
            f"{LARGEST_FACTOR}"
        )
    if negative_factor != 1 and not keep_sign:
        raise ValueError(f"sz.compress: negative_factor is {negative_factor}; needs keep_sign")
    if row_length is not None and row_length < 1:
        raise ValueError(f"sz.compress: row_length is {row_length}; needs 1 or more")
    _check_threads("sz.compress", threads)
    return _core.sz.compress(
        values,
        error_bound,
        keep_sign,
        mode,
        dither,
        negative_factor,
        row_length=row_length or 0,
        checksum=checksum,
        threads=threads,
    )


def decompress(data: Buffer, *, out: NDArray[Any] | None = None, threads: int = 0) -> NDArray[Any]:
    """Restore the array of a stream, with its shape and dtype.

    Args:
        data: a stream from `compress`, in any contiguous bytes-like object.
        out: a writable C-contiguous array of the stream's dtype and shape to restore into and
            return.
        threads: threads to use; 0 leaves it to OpenMP.

    Raises:
        TypeError: ``data`` is not bytes-like, or ``out`` not an array of the stream's dtype.
        ValueError: ``out`` has another shape, is not C-contiguous or is read-only.
        Error: ``data`` is not a whole, sound stream.
    """
    _check_threads("sz.decompress", threads)
    view = _bytes_view("sz.decompress", data)
    if out is None:
        return _core.sz.decompress(view, threads=threads)
    header = info(view)
    if not isinstance(out, np.ndarray) or out.dtype != np.dtype(header["dtype"]):
        kind = f"an array of {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"sz.decompress: out is {kind}; the stream holds {header['dtype']}")
    if out.shape != header["shape"]:
        raise ValueError(
            f"sz.decompress: out has shape {out.shape}; the stream holds {header['shape']}"
        )
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError("sz.decompress: out must be C-contiguous and writable")
    _core.sz.decompress_into(view, out, threads=threads)
    return out


def decompress_range(data: Buffer, first: int, count: int, *, threads: int = 0) -> NDArray[Any]:
    """Restore the values [first, first + count) alone, in row-major order.

    Only the chunks that they are in are decoded; `info` gives ``chunk_values``.

    Returns:
        A one-dimensional array of ``count`` values.

    Raises:
        TypeError: ``data`` is not bytes-like.
        ValueError: the range is not inside the array.
        Error: ``data`` is not a whole stream, or one of the chunks is damaged.
    """
    _check_threads("sz.decompress_range", threads)
    if first < 0 or count < 0:
        raise ValueError(
            f"sz.decompress_range: first is {first} and count {count}; neither can be negative"
        )
    view = _bytes_view("sz.decompress_range", data)
    return _core.sz.decompress_range(view, first, count, threads=threads)


def info(data: Buffer) -> Info:
    """Read a stream's header without decoding its values.

    Raises:
        TypeError: ``data`` is not bytes-like.
        Error: ``data`` is not a whole stream.
    """
    header: Info = _core.sz.info(_bytes_view("sz.info", data))
    return header


def _float_array(array: Any) -> NDArray[Any]:
    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError(
            f"sz.compress: array is a {type(array).__name__}; needs a NumPy array of float32 or "
            "float64, use np.asarray(values, np.float32)"
        )
    native = array.dtype.newbyteorder("=")
    if native not in _TYPES:
        raise TypeError(
            f"sz.compress: array has dtype {array.dtype}; needs float32 or float64, "
            "use array.astype(np.float32)"
        )
    # ascontiguousarray would make a 0-d array 1-d; dtype also undoes a foreign byte order.
    return np.asarray(array, native, order="C")


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
