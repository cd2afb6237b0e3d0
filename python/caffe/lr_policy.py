"""Learning-rate policies: the seven of Caffe, one formula each."""

from __future__ import annotations

import math
from collections.abc import Callable

from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb


def _fixed(solver: pb.SolverParameter, iteration: int) -> float:
    return solver.base_lr


def _step(solver: pb.SolverParameter, iteration: int) -> float:
    return solver.base_lr * float(solver.gamma ** (iteration // solver.stepsize))


def _exp(solver: pb.SolverParameter, iteration: int) -> float:
    return solver.base_lr * float(solver.gamma**iteration)


def _inv(solver: pb.SolverParameter, iteration: int) -> float:
    return solver.base_lr * float((1 + solver.gamma * iteration) ** -solver.power)


def _multistep(solver: pb.SolverParameter, iteration: int) -> float:
    return solver.base_lr * float(solver.gamma ** current_step(solver, iteration))


def _poly(solver: pb.SolverParameter, iteration: int) -> float:
    # Beyond max_iter the base would be negative, and its power complex.
    return solver.base_lr * float(max(1 - iteration / solver.max_iter, 0.0) ** solver.power)


def _sigmoid(solver: pb.SolverParameter, iteration: int) -> float:
    exponent = -solver.gamma * (iteration - solver.stepsize)
    return solver.base_lr / (1 + math.exp(exponent)) if exponent < _MOST_EXPONENT else 0.0


#: exp() of more does not fit a double.
_MOST_EXPONENT = 709.0

POLICIES: dict[str, Callable[[pb.SolverParameter, int], float]] = {
    "fixed": _fixed,
    "step": _step,
    "exp": _exp,
    "inv": _inv,
    "multistep": _multistep,
    "poly": _poly,
    "sigmoid": _sigmoid,
}

_REQUIRED = {
    "step": ("gamma", "stepsize"),
    "exp": ("gamma",),
    "inv": ("gamma", "power"),
    "multistep": ("gamma", "stepvalue"),
    "poly": ("power", "max_iter"),
    "sigmoid": ("gamma", "stepsize"),
}


def current_step(solver: pb.SolverParameter, iteration: int) -> int:
    """Return the number of step values that lie at or before `iteration`."""
    return sum(iteration >= value for value in solver.stepvalue)


def steps_taken(solver: pb.SolverParameter, iterations: int) -> int:
    """Return what a solver state says after so many iterations: steps before the last one's rate.

    0 for policies without steps.
    """
    last = max(iterations - 1, 0)
    if solver.lr_policy == "step":
        return last // solver.stepsize
    return current_step(solver, last) if solver.lr_policy == "multistep" else 0


def check_policy(solver: pb.SolverParameter) -> None:
    """Raise ValueError for an unknown policy, or one whose fields are not set."""
    policy = solver.lr_policy
    if policy not in POLICIES:
        raise ValueError(f"unknown lr_policy '{policy}'{suggestion(policy, POLICIES)}")
    for name in _REQUIRED.get(policy, ()):
        missing = not solver.stepvalue if name == "stepvalue" else not solver.HasField(name)
        if missing:
            raise ValueError(f"lr_policy '{policy}' needs {name} in the solver")
    if policy == "poly" and solver.max_iter <= 0:
        raise ValueError(f"lr_policy 'poly' has max_iter {solver.max_iter}, needs more than 0")
    if policy == "step" and solver.stepsize <= 0:
        raise ValueError(f"lr_policy 'step' has stepsize {solver.stepsize}, needs more than 0")


def learning_rate(solver: pb.SolverParameter, iteration: int) -> float:
    """Return the rate of iteration `iteration` (from 0), before any lr_mult.

    Source: the comment on lr_policy in Caffe's schema gives the seven formulas.
    """
    try:
        rate = POLICIES[solver.lr_policy](solver, iteration)
    except (ArithmeticError, TypeError):  # too large; 0 to a negative power; a complex number
        rate = math.nan
    if not math.isfinite(rate):
        raise ValueError(
            f"lr_policy '{solver.lr_policy}' gives no learning rate at iteration {iteration}: "
            f"look at base_lr, gamma and power"
        )
    return rate
