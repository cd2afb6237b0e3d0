"""Test arrays from integer arithmetic alone, so that they are the same under any NumPy."""

from __future__ import annotations

import numpy as np

F32 = np.float32


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
