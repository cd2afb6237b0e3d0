"""`caffe train`: from a solver prototxt to a trained net."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from caffe import log, prototxt
from caffe.bound_check import check_regularly
from caffe.cli.common import (
    GPU,
    LEVEL,
    MEMORY_LIMIT,
    SOLVER,
    STAGE,
    WEIGHTS,
    no_arguments,
    required,
    warn_about_gpu,
)
from caffe.cli.flags import Flag, Flags, UsageError
from caffe.file_kind import require_file
from caffe.mode import set_mode_gpu
from caffe.proto import caffe_pb2
from caffe.solver_types import get_solver

_EFFECTS = ("stop", "snapshot", "none")
FLAGS = (
    SOLVER,
    WEIGHTS,
    Flag("snapshot", "", ".solverstate to resume from; excludes -weights"),
    GPU,
    LEVEL,
    STAGE,
    MEMORY_LIMIT,
    Flag("sigint_effect", "stop", "what an interrupt (Ctrl-C) does", _EFFECTS),
    Flag("sighup_effect", "snapshot", "what a hang-up signal does", _EFFECTS),
    Flag(
        "compression_log", "", "file for one JSON line an iteration on the compressed activations"
    ),
    Flag(
        "check_bounds",
        0,
        "every so many iterations, measure the errors of gradients and log a table; 0: never",
    ),
)
USAGE = "caffe train -solver FILE [-weights FILES | -snapshot FILE] FLAGS"


class Stoppable(Protocol):
    """What the signal handlers need of a solver; both only set a flag."""

    def request_stop(self) -> None:
        """Stop after this iteration."""

    def request_snapshot(self) -> None:
        """Write a snapshot after this iteration."""


def run(flags: Flags) -> int:
    """Train.

    Raises:
        UsageError: flags that are missing or exclude each other.
        ValueError, FileNotFoundError, caffe.Error: whatever is wrong with the files or the run.
    """
    no_arguments(flags)
    solver_file = required(flags, "solver", "the solver prototxt to train with")
    if flags.text("weights") and flags.text("snapshot"):
        raise UsageError("-snapshot (resume) and -weights (start from) exclude each other")
    if flags.text("snapshot"):
        require_file(flags.text("snapshot"), "solver state")
    if flags.number("check_bounds") < 0:
        raise UsageError(f"flag -check_bounds is {flags.number('check_bounds')}, needs 0 or more")
    warn_about_gpu(flags)
    param = prototxt.read_solver(solver_file)
    if param.solver_mode == caffe_pb2.SolverParameter.GPU:  # the default where nothing is written
        set_mode_gpu()
    weights = apply_flags(param, flags)
    for path in weights:
        require_file(path, "weights")
    log.info(f"Starting from solver {solver_file}")
    solver = get_solver(param)
    for path in weights:
        log.info(f"Finetuning from {path}")
        solver.net.copy_from(path)
    if flags.text("compression_log"):
        solver.compression_log = flags.text("compression_log")
    if flags.number("check_bounds"):
        check_regularly(solver, flags.number("check_bounds"))
    with signals(solver, flags.text("sigint_effect"), flags.text("sighup_effect")):
        try:
            solver.solve(flags.text("snapshot") or None)
        finally:
            solver.close()  # joins threads, which a second Ctrl-C must not cut short
    return 0


def apply_flags(param: caffe_pb2.SolverParameter, flags: Flags) -> list[str]:
    """Write what -level, -stage and -memory_limit say into the solver's settings.

    Returns:
        The files of weights to start from: -weights, or else those that the solver names; none with
        -snapshot.
    """
    apply_net_flags(param, flags)
    named = [path.strip() for paths in param.weights for path in paths.split(",")]
    del param.weights[:]
    if flags.text("snapshot"):
        return []
    return flags.words("weights") or [path for path in named if path]


def apply_net_flags(param: caffe_pb2.SolverParameter, flags: Flags) -> None:
    """Write what -level, -stage and -memory_limit say into the solver's settings."""
    if "level" in flags.given:
        param.train_state.level = flags.number("level")
    if "stage" in flags.given:
        del param.train_state.stage[:]
        param.train_state.stage.extend(flags.words("stage"))
    if flags.text("memory_limit"):
        param.compression_param.memory_limit = flags.text("memory_limit")


@contextmanager
def signals(solver: Stoppable, sigint_effect: str, sighup_effect: str) -> Iterator[None]:
    """Let SIGINT and SIGHUP act on `solver` while the block runs.

    A broken pipe (`caffe train 2>&1 | tee log`, and Ctrl-C ends tee first) must cost the log, not
    the snapshot: Python ignores SIGPIPE, and caffe.log a broken stream.
    """
    effects = {signal.SIGINT: sigint_effect}
    if hasattr(signal, "SIGHUP"):
        effects[signal.SIGHUP] = sighup_effect
    before = {}
    for number, effect in effects.items():
        before[number] = signal.signal(number, _handler(solver, effect))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _detach_broken_streams()


def _handler(solver: Stoppable, effect: str) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        if effect == "stop":
            solver.request_stop()
        elif effect == "snapshot":
            solver.request_snapshot()

    return handle


def _detach_broken_streams() -> None:
    """Keep Python's flush at exit from turning a broken pipe into a failure of the run."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            setattr(sys, name, None)
