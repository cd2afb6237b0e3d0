"""Times compressors against copying the same memory, for sz_bench.py.

All take turns on one array, and the least time of each counts, so that a noisy machine hits all
alike. The allocator keeps what it got, so that nobody pays for the kernel's clearing of fresh
pages, as in training, whose buffers are reused.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sz_rivals import Codec, ours, sz3

LEAST_BYTES = 32 << 20  # of an array that is timed; smaller ones are repeated
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # of mallopt(3)


@dataclass(frozen=True)
class Speed:
    """Least seconds for one array, the same bytes for each."""

    raw_bytes: int
    seconds: dict[str, float]


def keep_memory() -> None:
    """Make the process's allocator (glibc's) reuse large blocks instead of returning them."""
    libc = ctypes.CDLL(None)
    if not (libc.mallopt(_M_MMAP_MAX, 0) and libc.mallopt(_M_TRIM_THRESHOLD, -1)):
        raise RuntimeError("mallopt refused to keep memory; speeds would count page faults")


def least_seconds(jobs: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Run the jobs in turns, once to warm up and `repetitions` times; return the least times."""
    least = dict.fromkeys(jobs, float("inf"))
    for turn in range(repetitions + 1):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            seconds = time.perf_counter() - began
            if turn:
                least[name] = min(least[name], seconds)
    return least


def measure(values: np.ndarray, bound: float, keep_sign: bool, repetitions: int) -> Speed:
    """Time ours on one thread and two, SZ3's default, and a copy into touched memory."""
    copies = -(-LEAST_BYTES // values.nbytes)
    array = np.ascontiguousarray(np.concatenate([values] * copies))
    target = np.ones_like(array)
    jobs: dict[str, Callable[[], object]] = {"memcpy": lambda: np.copyto(target, array)}
    contestants = {
        "1": ours(keep_sign=keep_sign, threads=1),
        "2": ours(keep_sign=keep_sign, threads=2),
        "SZ3": sz3(),
    }
    for name, codec in contestants.items():
        jobs |= _jobs(name, codec, array, bound)
    return Speed(array.nbytes, least_seconds(jobs, repetitions))


def _jobs(
    name: str, codec: Codec, array: np.ndarray, bound: float
) -> dict[str, Callable[[], object]]:
    stream = codec.compress(array, bound)
    return {
        f"compress {name}": lambda: codec.compress(array, bound),
        f"expand {name}": lambda: codec.expand(stream, array.shape),
    }
