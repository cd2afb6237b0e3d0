"""Streams of another processor (aarch64, emulated) are those of this one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sz_build import compile_objects, run

MAIN = Path(__file__).with_name("streams_main.cpp")
CROSS = "aarch64-linux-gnu-g++"
PACKAGES = {CROSS: "g++-aarch64-linux-gnu", "qemu-aarch64": "qemu-user", "g++": "g++"}


def test_aarch64_writes_and_reads_the_same(tmp_path: Path) -> None:
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    if missing:
        pytest.skip(f"needs the Debian packages {', '.join(missing)}")
    flags = ["-O1"]
    here, there = tmp_path / "here", tmp_path / "there"
    objects = compile_objects(here, flags, [MAIN])
    run(["g++", *objects, "-o", here / "program"])
    objects = compile_objects(there, flags, [MAIN], compiler=CROSS, wide=False)
    run([CROSS, "-static", *objects, "-o", there / "program"])
    expected = run([here / "program"])
    assert len(set(expected.splitlines())) == 4 * 3 * 3 * 5 * 2
    assert run(["qemu-aarch64", there / "program"]) == expected
