"""How many processes train one net, in pycaffe's words: this build trains in one."""

from __future__ import annotations


def has_nccl() -> bool:
    """Return False: there is no NCCL in this build, and no class caffe.NCCL."""
    return False


def solver_count() -> int:
    """Return 1, the number of solvers that train one net."""
    return 1


def set_solver_count(count: int) -> None:
    """Accept 1. ValueError for more solvers."""
    if count != 1:
        raise ValueError(f"solver_count is {count}, but this build trains in one process: set 1")


def solver_rank() -> int:
    """Return 0, the number of this solver among them."""
    return 0


def set_solver_rank(rank: int) -> None:
    """Accept 0. ValueError for another rank."""
    if rank != 0:
        raise ValueError(f"solver_rank is {rank}, but this build trains in one process: set 0")


def set_multiprocess(multiprocess: bool) -> None:
    """Accept False. ValueError for True."""
    if multiprocess:
        raise ValueError("this build trains in one process: set_multiprocess(True) has no meaning")
