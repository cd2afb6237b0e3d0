"""Memory does not grow, however often sz is called."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs by itself: what other tests leave behind in this process would blur the counts.
PROGRAM = """
import resource
import numpy as np
from pathlib import Path
from caffe import sz

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

rng = np.random.default_rng(1)
arrays = [np.maximum(rng.normal(size=size), 0).astype(dtype)
          for size in (0, 100, 3000, 20000) for dtype in (np.float32, np.float64)]
broken = bytearray(sz.compress(arrays[4], 0.1))
broken[-9] ^= 255

def call(i):
    array = arrays[i % len(arrays)]
    stream = sz.compress(array, (i % 3) * 0.05, keep_sign=i % 2 == 0, checksum=i % 5 == 0,
                         dither=i if i % 7 else None, threads=1)
    sz.decompress(stream, threads=1)
    sz.decompress_range(stream, array.size // 2, array.size // 4, threads=1)
    sz.decompress(stream, out=np.empty_like(array), threads=1)
    if i % 10 == 0:
        try:
            sz.decompress(broken)
        except sz.Error:
            pass

for i in range(2000):
    call(i)
before = resident()
for i in range(10_000):
    call(i)
print(resident() - before)
"""


def test_ten_thousand_rounds() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 300 bytes a round would be too much; malloc itself needs some room to settle.
    assert int(done.stdout) < 3 << 20
