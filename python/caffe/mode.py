"""Where to compute: this build does on the CPU, and warns once when asked for a GPU."""

from __future__ import annotations

from caffe import log

_warned = False


def set_mode_cpu() -> None:
    """Compute on the CPU, as this build always does."""


def set_mode_gpu() -> None:
    """Warn once that this build has no GPU code; computing goes on on the CPU."""
    global _warned  # noqa: PLW0603 - once a process is the point
    if not _warned:
        _warned = True
        log.warning("this build has no GPU code: computing on the CPU")


def set_device(device_id: int) -> None:
    """Choose a GPU, of which this build has none: as set_mode_gpu()."""
    set_mode_gpu()
