"""`caffe device_query`: what this machine offers."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from caffe import _core
from caffe.cli.common import GPU, no_arguments, warn_about_gpu
from caffe.cli.flags import Flags

FLAGS = (GPU,)
USAGE = "caffe device_query"

#: Instruction sets that matter here, best first, with the flag by which Linux calls them.
_SETS = (
    ("AVX-512", "avx512f"),
    ("AVX2", "avx2"),
    ("AVX", "avx"),
    ("SSE4.2", "sse4_2"),
    ("NEON", "asimd"),
)


def run(flags: Flags) -> int:
    """Print processor, cores, instruction set, oneDNN's version and memory to standard output."""
    no_arguments(flags)
    warn_about_gpu(flags)
    for name, value in describe_machine().items():
        print(f"{name + ':':<18} {value}")
    return 0


def describe_machine() -> dict[str, str]:
    """Return the facts that `run` prints, by name."""
    cpu = _cpu_info()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    features = set(cpu.get("flags", cpu.get("Features", "")).split())
    found = [name for name, flag in _SETS if flag in features]
    total, available = _memory()
    return {
        "Device": "CPU (this build has no GPU support)",
        "Processor": cpu.get("model name", platform.processor() or platform.machine()),
        "Cores": f"{usable} usable of {os.cpu_count()}, {_core.num_threads()} threads",
        "Instruction set": found[0] if found else platform.machine(),
        "oneDNN": str(_core.onednn_version()),
        "Memory": f"{total / 2**30:.1f} GiB, {available / 2**30:.1f} GiB available",
    }


def _cpu_info() -> dict[str, str]:
    """Return the first processor's entries of /proc/cpuinfo; empty where there is none."""
    path = Path("/proc/cpuinfo")
    entries: dict[str, str] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition(":")
        entries.setdefault(name.strip(), value.strip())
    return entries


def _memory() -> tuple[int, int]:
    """Return the bytes of memory in all and available."""
    path = Path("/proc/meminfo")
    if not path.exists():
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return total, total
    entries = dict(line.split(":") for line in path.read_text().splitlines())
    total = int(entries["MemTotal"].split()[0]) << 10
    return total, int(entries.get("MemAvailable", entries["MemFree"]).split()[0]) << 10
