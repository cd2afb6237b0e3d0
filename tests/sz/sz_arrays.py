"""Test arrays from integer arithmetic alone, so that they are the same under any NumPy."""

from __future__ import annotations

import numpy as np

F32, F64 = np.float32, np.float64


def random_bits(count: int, seed: int) -> np.ndarray:
    """Counter-based 64-bit random integers (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def gaussian(count: int, seed: int = 0) -> np.ndarray:
    """Nearly normal values of variance 1: sums of twelve uniform integers, exact in float32."""
    total = np.zeros(count, np.int64)
    for i in range(12):
        total += (random_bits(count, 100 * seed + i) >> np.uint64(48)).astype(np.int64)
    return ((total - 6 * 65535).astype(F32) / F32(65536)).astype(F32)


def relu(count: int, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    """What a ReLU leaves of normal values; shift -0.25 makes about 60% zeros."""
    return np.maximum(gaussian(count, seed) + F32(shift), F32(0))


def any_bits(count: int, seed: int = 0) -> np.ndarray:
    """Random bit patterns: NaN, infinities, denormals and all magnitudes."""
    return (random_bits(count, seed) >> np.uint64(32)).astype(np.uint32).view(F32)


def specials() -> np.ndarray:
    """Every kind of awkward value, and NaN payloads."""
    bits = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF,
            0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0xFFFFFFFF,
            0x3F800000, 0xBF800000, 0x33800000, 0x4B800001]  # fmt: skip
    return np.array(bits, np.uint32).view(F32)


def cases() -> dict[str, np.ndarray]:
    """Named arrays that every property must hold for."""
    n = 70_000
    ramp = np.arange(n, dtype=F32)
    sparse = relu(n, 3)
    sparse[random_bits(n, 4) % np.uint64(20) != 0] = 0
    mixed = gaussian(n, 5)
    mixed[::997] = np.resize(specials(), mixed[::997].shape)
    outliers = relu(n, 6)
    outliers[::100] *= F32(3000)
    return {
        "relu": relu(n),
        "relu60": relu(n, 1, -0.25),
        "gaussian": gaussian(n, 2),
        "sparse95": sparse,
        "mixed": mixed,
        "outliers": outliers,
        "any_bits": any_bits(n, 7),
        "specials": np.resize(specials(), 1000),
        "ramp": ramp,
        "saw": (ramp % F32(300)) - F32(150),
        "negative": -relu(n, 8),
        "zeros": np.zeros(n, F32),
        "minus_zeros": np.full(n, -0.0, F32),
        "ones": np.ones(n, F32),
        "denormals": (random_bits(n, 9) >> np.uint64(42)).astype(np.uint32).view(F32),
        "huge": gaussian(n, 10) * F32(1e37),
        "nan": np.full(300, np.nan, F32),
    }


def gaussian64(count: int, seed: int = 0) -> np.ndarray:
    """Nearly normal values of variance 1 with 52-bit mantissas, exact in float64."""
    low = (random_bits(count, 100 * seed + 50) >> np.uint64(33)).astype(F64)
    return gaussian(count, seed).astype(F64) + low * F64(2.0**-48)


def relu64(count: int, seed: int = 0) -> np.ndarray:
    """What a ReLU leaves of normal values in float64."""
    return np.maximum(gaussian64(count, seed), F64(0))


def any_bits64(count: int, seed: int = 0) -> np.ndarray:
    """Random bit patterns of float64."""
    return random_bits(count, seed).view(F64)


def specials64() -> np.ndarray:
    """Every kind of awkward float64, and NaN payloads."""
    bits = [0, 1 << 63, 1, 1 << 63 | 1, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF,
            0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
            0xFFF8000000000001, 0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF, 0x3FF0000000000000,
            0xBFF0000000000000, 0x3CA0000000000000, 0x4340000000000001]  # fmt: skip
    return np.array(bits, np.uint64).view(F64)


def cases64() -> dict[str, np.ndarray]:
    """Named arrays of float64."""
    n = 40_000
    mixed = gaussian64(n, 5)
    mixed[::997] = np.resize(specials64(), mixed[::997].shape)
    sparse = relu64(n, 3)
    sparse[random_bits(n, 4) % np.uint64(20) != 0] = 0
    return {
        "relu64": relu64(n),
        "gaussian64": gaussian64(n, 2),
        "sparse64": sparse,
        "mixed64": mixed,
        "any_bits64": any_bits64(n, 7),
        "specials64": np.resize(specials64(), 1000),
        "ramp64": np.arange(n, dtype=F64) / F64(8),
        "float32s64": gaussian(n, 6).astype(F64),
        "ones64": np.ones(n, F64),
        "minus_zeros64": np.full(n, -0.0, F64),
        "denormals64": (random_bits(n, 9) >> np.uint64(13)).view(F64),
        "huge64": gaussian64(n, 10) * F64(2.0**1020),
    }


def smooth(shape: tuple[int, ...], seed: int = 0, width: int = 5) -> np.ndarray:
    """Images in the last two axes: noise averaged over squares, of a standard deviation near 1."""
    *outer, height, columns = shape
    padded = (*outer, height + width, columns + width)
    noise = (random_bits(int(np.prod(padded)), seed) >> np.uint64(48)).astype(np.int64)
    sums = noise.reshape(padded).cumsum(axis=-1).cumsum(axis=-2)
    box = (
        sums[..., width:, width:] - sums[..., :-width, width:]
        - sums[..., width:, :-width] + sums[..., :-width, :-width]
    )  # fmt: skip
    centred = (box - width * width * 32768).astype(F32)
    return (centred / F32(width * 16384)).astype(F32)


def shaped() -> dict[str, np.ndarray]:
    """Named arrays with axes, whose rows and planes matter."""
    maps = smooth((2, 5, 56, 56), 1)
    return {
        "images": maps,
        "images_relu": np.maximum(maps, F32(0)),
        "images64": smooth((3, 2, 40, 30), 2).astype(F64),
        "page": smooth((150, 700), 3),
        "wide_page": smooth((30, 3000), 4, 9),
        "small_maps": smooth((16, 40, 7, 7), 5, 3),
        "columns": np.repeat(gaussian(2000, 6), 30).reshape(50, 40, 30),
        "noise": gaussian(60_000, 12).reshape(6, 10, 20, 50),
        "noise64": gaussian64(30_000, 13).reshape(30, 1000),
    }


def all_cases() -> dict[str, np.ndarray]:
    """All named arrays, of both types."""
    return {**cases(), **cases64(), **shaped()}
