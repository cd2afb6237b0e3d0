"""The memory of a solver: what training is expected to take, and the limit that it is held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caffe import log
from caffe.compression_log import mib
from caffe.memory_estimate import MemoryEstimate, estimate, fit
from caffe.memory_limit import parse_limit

if TYPE_CHECKING:
    from caffe.solver import Solver


def fixed_bytes(solver: Solver) -> int:
    """Return the bytes of parameters, their gradients and history."""
    parameters = {
        id(parameter): parameter.data.bytes
        for layer in solver.net.executor.layers
        for parameter in layer.layer.parameters
    }
    gradients = sum(
        blob.parameter.data.bytes for blob in solver.net.learned if blob.spec.lr_mult != 0
    )
    history = sum(tensor.bytes for tensor in solver.history)
    return sum(parameters.values()) + gradients + history


def fit_limit(solver: Solver) -> None:
    """Let the batch go in slices as small as memory_limit makes it necessary.

    Raises ValueError where nothing is small enough, or mode NONE keeps everything.
    """
    compression = solver.param.compression_param
    if not compression.memory_limit:
        return
    if not solver.uses_plan:
        raise ValueError(
            "memory_limit needs activations to be released: set compression_param's mode to "
            "LOSSLESS, FIXED or ADAPTIVE"
        )
    limit = parse_limit(compression.memory_limit)
    executor = solver.net.executor
    executor.slice_size = fit(executor, fixed_bytes(solver), limit)


def expected(solver: Solver) -> MemoryEstimate:
    """Return what an iteration of training is expected to take."""
    return estimate(solver.net.executor, solver.net.plain_plan(), fixed_bytes(solver))


def log_expected(plan: MemoryEstimate) -> None:
    """Say what is expected, before training."""
    if plan.slice:
        log.info(f"Batches go in slices of {plan.slice} samples")
    log.info(
        f"Memory expected: {mib(plan.stored)} kept for backward, peak {mib(plan.planned_peak)} at "
        f"layer '{plan.peak_layer}' (plain Caffe: {mib(plan.plain_peak)}); parameters, their "
        f"gradients and history: {mib(plan.fixed)}"
    )


def log_real(solver: Solver, plan: MemoryEstimate) -> None:
    """Say what it was, after training."""
    executor = solver.net.executor
    kept = executor.own_bytes + sum(row.stored_bytes for row in executor.reports.values())
    log.info(
        f"Memory: {mib(kept)} kept for backward (expected {mib(plan.stored)}), peak "
        f"{mib(solver.peak_bytes)} (expected {mib(plan.planned_peak)})"
    )
