"""`caffe memory`: what training a solver's net will take, value by value, without training."""

from __future__ import annotations

import json

from caffe import prototxt
from caffe.cli.common import LEVEL, MEMORY_LIMIT, SOLVER, STAGE, no_arguments, required
from caffe.cli.flags import Flag, Flags
from caffe.cli.train import apply_net_flags
from caffe.compression_log import mib
from caffe.memory_estimate import MemoryEstimate
from caffe.solver_types import get_solver

FLAGS = (
    SOLVER,
    MEMORY_LIMIT,
    Flag("json", False, "print one JSON object, sizes in bytes"),
    LEVEL,
    STAGE,
)
USAGE = "caffe memory -solver FILE [-memory_limit SIZE] [-json] FLAGS"


def run(flags: Flags) -> int:
    """Print the memory plan of a solver's net and what it is expected to take.

    Raises:
        UsageError: flags that are missing.
        ValueError, FileNotFoundError, caffe.Error: whatever is wrong with the files, or a limit
            that cannot be kept.
    """
    no_arguments(flags)
    param = prototxt.read_solver(required(flags, "solver", "the solver prototxt to look at"))
    apply_net_flags(param, flags)
    solver = get_solver(param)
    try:
        expected = solver.memory_estimate()
    finally:
        solver.close()
    if flags.on("json"):
        print(json.dumps(expected.as_dict()))
    else:
        print("\n".join(lines(expected)))
    return 0


def lines(expected: MemoryEstimate) -> list[str]:
    """Return a table of the values, and the peaks."""
    width = max([len("blob"), *(len(value.name) for value in expected.values)])
    writer = max([len("layer"), *(len(value.producer) for value in expected.values)])
    head = (
        f"{'blob':<{width}}  {'layer':<{writer}}  {'kept as':<10}  {'raw KB':>10}  {'kept KB':>10}"
    )
    text = [head]
    text += [
        f"{value.name:<{width}}  {value.producer:<{writer}}  {value.kept_as:<10}  "
        f"{value.raw / 1024:>10.1f}  {value.stored / 1024:>10.1f}"
        for value in expected.values
    ]
    slices = f", in slices of {expected.slice} samples" if expected.slice else ""
    text += [
        f"Kept between forward and backward: {mib(expected.stored)}",
        f"Peak: {mib(expected.planned_peak)} at layer '{expected.peak_layer}'{slices}",
        f"Peak of plain Caffe: {mib(expected.plain_peak)} at layer '{expected.plain_layer}'",
        f"Parameters, their gradients and history, on top of either: {mib(expected.fixed)}",
    ]
    return text
