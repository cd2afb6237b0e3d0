"""Builds the compressor's sources for tests in C and C++: with sanitizers, for other machines."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

SZ = Path(__file__).parents[2] / "sz"
_FLAGS = ("-std=c++17", "-ffp-contract=off", "-Wno-unknown-pragmas",
          f"-I{SZ / 'include'}", f"-I{SZ / 'src'}")  # fmt: skip
_BITS = ("-mbmi", "-mbmi2", "-mlzcnt", "-mpopcnt")
# By a part of the file's name.
_WIDE = {
    "avx2": ("-mavx2", *_BITS),
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", *_BITS),
}


class Sanitized(NamedTuple):
    """sz built with ASan and UBSan, and the flags to build and link the rest with."""

    flags: list[str]
    objects: list[Path]


def compile_objects(
    folder: Path,
    flags: Sequence[str],
    more: Sequence[Path] = (),
    *,
    compiler: str = "g++",
    wide: bool = True,
) -> list[Path]:
    """Compile sz and `more` C++ sources into `folder`; returns the object files."""
    folder.mkdir(parents=True, exist_ok=True)

    def build(source: Path) -> Path:
        sets = [more for name, more in _WIDE.items() if wide and f"_{name}_" in source.stem]
        target = folder / f"{source.stem}.o"
        run([compiler, *_FLAGS, *flags, *sum(sets, ()), "-c", source, "-o", target])
        return target

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(build, [*sorted((SZ / "src").glob("*.cpp")), *more]))


def run(command: Sequence[str | Path]) -> str:
    """Run a command and return what it prints, complaints last; if it fails they are the test's."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command[0]}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr
