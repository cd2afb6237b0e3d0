"""The seed that nets made without a solver follow (caffe.set_random_seed)."""

from __future__ import annotations

import secrets

_seed: int | None = None
_nets = 0


def set_random_seed(seed: int) -> None:
    """Make the nets and solvers made from now on repeatable; a negative seed undoes that."""
    global _seed, _nets  # noqa: PLW0603 - one seed a process is what the API means
    _seed = seed if seed >= 0 else None
    _nets = 0


def current() -> int:
    """Return a seed for one net: another for each net, the same from run to run if one was set."""
    global _nets  # noqa: PLW0603
    if _seed is None:
        return secrets.randbits(32)
    _nets += 1
    return (_seed + 0x9E3779B1 * (_nets - 1)) & 0xFFFFFFFF
