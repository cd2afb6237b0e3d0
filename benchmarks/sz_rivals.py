"""The compressors that sz_bench.py compares, each as a pair of functions."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from caffe import sz

PACKAGES = {"pysz": "pysz", "zfpy": "zfpy", "zstandard": "zstandard", "PIL": "pillow"}
SAMPLE_VALUES = 1 << 20  # rivals' settings are chosen on so many values of an array


@dataclass(frozen=True)
class Codec:
    """How to compress an array within a bound, and to restore it with its shape."""

    name: str
    compress: Callable[[np.ndarray, float], Any]  # returns something with a length in bytes
    expand: Callable[[Any, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Best:
    """What the best of several settings made of an array."""

    setting: str
    bytes: int


def check_packages() -> None:
    """Raise RuntimeError, naming what to install, if a rival is missing."""
    missing = [pip for name, pip in PACKAGES.items() if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(
            f"missing rivals: pip install {' '.join(missing)}, or give -without-rivals"
        )


def sample(values: np.ndarray) -> np.ndarray:
    """Return the first of axis 0 (or axis 1, if it is 1), SAMPLE_VALUES or little more."""
    axis = 0 if len(values) > 1 else 1
    each = values.size // values.shape[axis]
    count = -(-SAMPLE_VALUES // each)
    return np.ascontiguousarray(values[:count] if axis == 0 else values[:, :count])


def ours(*, keep_sign: bool = False, dither: int = 0, threads: int = 1) -> Codec:
    """Return caffe.sz; with dither 0 plain, else dithered from that seed."""
    # Only what is asked for is passed on, so that an older sz can be measured as well.
    options = {"dither": dither} if dither else {}
    return Codec(
        "dithered" if dither else "sign kept" if keep_sign else "plain",
        lambda values, bound: sz.compress(
            values, bound, keep_sign=keep_sign, threads=threads, **options
        ),
        lambda stream, _: sz.decompress(stream, threads=threads),
    )


# -- SZ3 -------------------------------------------------------------------------------------------

DEFAULT = "INTERP_LORENZO"
ALGORITHMS = (DEFAULT, "INTERP", "LORENZO_REG", "NOPRED")


def sz3(algorithm: str = DEFAULT, as_rows: bool = False) -> Codec:
    """Return SZ3 with one of ALGORITHMS, on the array's axes or on the matrix of its rows."""
    import pysz  # noqa: PLC0415 - an optional rival

    def compress(values: np.ndarray, bound: float) -> np.ndarray:
        shaped = values.reshape(-1, values.shape[-1]) if as_rows else values
        config = pysz.szConfig(shaped.shape)
        config.errorBoundMode = pysz.szErrorBoundMode.ABS
        config.absErrorBound = bound
        config.cmprAlgo = getattr(pysz.szAlgorithm, algorithm)
        return pysz.sz.compress(shaped, config)[0]

    def expand(stream: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        shaped = (int(np.prod(shape[:-1])), shape[-1]) if as_rows else shape
        return pysz.sz.decompress(stream, np.float32, shaped)[0].reshape(shape)

    name = f"{algorithm.lower().replace('_', '-')}{' on rows' if as_rows else ''}"
    return Codec(name, compress, expand)


@dataclass(frozen=True)
class Sz3:
    """What SZ3 makes of an array."""

    default: int  # bytes, of its default algorithm on the array's axes
    on_axes: Best  # of all algorithms on the array's axes
    best: Best  # of these and the same on the matrix of rows


def best_sz3(values: np.ndarray, bound: float) -> Sz3:
    """Try all settings of SZ3 on a sample, and the default and the best ones on the whole array."""
    on_axes = [sz3(algorithm) for algorithm in ALGORITHMS]
    on_rows = [sz3(algorithm, as_rows=True) for algorithm in ALGORITHMS[:-1]]
    part = sample(values)
    sizes: dict[Codec, int] = {}
    best = []
    for candidates in (on_axes, on_axes + on_rows):
        ranked = sorted(candidates, key=lambda codec: len(codec.compress(part, bound)))
        tried = {*ranked[:2], on_axes[0], *sizes}
        for codec in tried - sizes.keys():
            sizes[codec] = len(codec.compress(values, bound))
        least = min(tried, key=lambda codec: (sizes[codec], codec.name))
        best.append(Best(least.name, sizes[least]))
    return Sz3(sizes[on_axes[0]], *best)


# -- zfp and zstd ----------------------------------------------------------------------------------


def zfp(as_rows: bool = False) -> Codec:
    """Return zfp in its fixed-accuracy mode, on the array's axes or on the matrix of its rows."""
    import zfpy  # noqa: PLC0415

    def compress(values: np.ndarray, bound: float) -> bytes:
        shaped = values.reshape(-1, values.shape[-1]) if as_rows else values
        return zfpy.compress_numpy(shaped, tolerance=bound)

    return Codec(
        "on rows" if as_rows else "on axes",
        compress,
        lambda stream, shape: zfpy.decompress_numpy(stream).reshape(shape),
    )


def best_zfp(values: np.ndarray, bound: float) -> Best:
    """Return zfp's better setting, chosen on a sample, with its size on the whole array."""
    part = sample(values)
    better = min((zfp(), zfp(as_rows=True)), key=lambda codec: len(codec.compress(part, bound)))
    return Best(better.name, len(better.compress(values, bound)))


def zstd_bytes(codes: np.ndarray) -> int:
    """Return the size of codes, as the smallest integers that hold them, under zstd's default."""
    import zstandard  # noqa: PLC0415

    small = np.int8 if np.abs(codes).max() <= 127 else np.int16
    if np.abs(codes).max() > 32767:
        small = np.int32
    return len(zstandard.ZstdCompressor().compress(codes.astype(small)))
