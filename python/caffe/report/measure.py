"""Memory figures of this process: what the tracker counts, and what the system sees."""

from __future__ import annotations

from pathlib import Path

from caffe._core import memory
from caffe.net import Net

#: Kinds that hold what backward will read, once a forward pass is over.
_KEPT_KINDS = ("raw_activations", "stored_activations", "data")


def kept_bytes(net: Net) -> int:
    """Run a forward pass; return the bytes kept for backward when it is over, the batch included.

    The net must be a solver's train net, and the only net in the process that holds anything.
    Draws a batch and moves running averages: measure last.
    """
    net.executor.forward(0, len(net.graph.nodes) - 1)
    live = memory.live()
    return sum(live[kind] for kind in _KEPT_KINDS)


def peak_resident_bytes() -> int:
    """Return the most memory that the system has seen this process use (VmHWM)."""
    # Not getrusage: its maximum counts the parent's memory at the time of the fork.
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM: not a Linux with a process file system?")
