"""The six solver types: what each keeps for a parameter, and how it changes one.

The loop around them is solver.py's; the arithmetic and its formulas are C++, caffe/solvers.
"""

from __future__ import annotations

from pathlib import Path

from caffe._core.solvers import (
    UpdateOptions,
    update_adadelta,
    update_adagrad,
    update_adam,
    update_nesterov,
    update_rmsprop,
    update_sgd,
)
from caffe.learning import LearnedBlob
from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_solver
from caffe.solver import Solver


class SGDSolver(Solver):
    """Stochastic gradient descent with momentum."""

    type = "SGD"
    history_holds_rate = True

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Apply history = momentum * history + rate * gradient; w -= history."""
        update_sgd(blob.parameter, self.history[index], options, self.param.momentum)

    def mean_momentum(self, index: int) -> float:
        """Return mean |history| / (lr * lr_mult): Caffe's history holds the learning rate."""
        return self.history[index].mean_abs() / self.rate_of(index)


class NesterovSolver(SGDSolver):
    """SGD with Nesterov's look ahead; its history is SGD's."""

    type = "Nesterov"

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Apply SGD's history, then w -= (1 + momentum) * new history - momentum * old one."""
        update_nesterov(blob.parameter, self.history[index], options, self.param.momentum)


class AdaGradSolver(Solver):
    """Steps divided by the root of the sum of squared gradients."""

    type = "AdaGrad"

    @classmethod
    def check_rule(cls, param: pb.SolverParameter) -> None:
        """Refuse momentum, and a delta that lets a dead weight divide 0 by 0 (ValueError)."""
        _check_no_momentum(cls.type, param)
        _check_delta(cls.type, param)

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Apply h += g^2; w -= rate * g / (sqrt(h) + delta)."""
        update_adagrad(blob.parameter, self.history[index], options, self.param.delta)


class RMSPropSolver(Solver):
    """Steps divided by the root of the mean of recent squared gradients."""

    type = "RMSProp"

    @classmethod
    def check_rule(cls, param: pb.SolverParameter) -> None:
        """Refuse momentum, an rms_decay outside 0 to 1, and a delta of 0 (ValueError)."""
        _check_no_momentum(cls.type, param)
        _check_share(cls.type, "rms_decay", param.rms_decay)
        _check_delta(cls.type, param)

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Apply h = rms_decay * h + (1 - rms_decay) * g^2; w -= rate * g / (sqrt(h) + delta)."""
        update_rmsprop(
            blob.parameter, self.history[index], options, self.param.rms_decay, self.param.delta
        )


class AdaDeltaSolver(Solver):
    """Steps as large as recent ones, by the ratio of two running means of squares."""

    type = "AdaDelta"
    histories = 2  # of squared gradients, of squared updates

    @classmethod
    def check_rule(cls, param: pb.SolverParameter) -> None:
        """Refuse a delta of 0, with which no weight ever moves (ValueError)."""
        _check_delta(cls.type, param)

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Apply the formulas of update_adadelta() in caffe/solvers/update.hpp."""
        update_adadelta(
            blob.parameter,
            self.history[index],
            self.second_history(index),
            options,
            self.param.momentum,
            self.param.delta,
        )


class AdamSolver(Solver):
    """Steps along the mean gradient, divided by the root of the mean square; both unbiased."""

    type = "Adam"
    histories = 2  # means m, mean squares v

    @classmethod
    def check_rule(cls, param: pb.SolverParameter) -> None:
        """Refuse a momentum2 outside 0 to 1, and a delta of 0 (ValueError)."""
        _check_share(cls.type, "momentum2", param.momentum2)
        _check_delta(cls.type, param)

    def update(self, blob: LearnedBlob, index: int, options: UpdateOptions) -> None:
        """Apply the formulas of update_adam() in caffe/solvers/update.hpp."""
        update_adam(
            blob.parameter,
            self.history[index],
            self.second_history(index),
            options,
            self.param.momentum,
            self.param.momentum2,
            self.param.delta,
            self.iter + 1,
        )

    def mean_momentum(self, index: int) -> float:
        """Return mean |m| / (1 - beta1): what SGD's momentum would have added up."""
        return self.history[index].mean_abs() / (1 - self.param.momentum)


SOLVERS: dict[str, type[Solver]] = {
    cls.type: cls
    for cls in (
        SGDSolver,
        NesterovSolver,
        AdaGradSolver,
        RMSPropSolver,
        AdaDeltaSolver,
        AdamSolver,
    )
}


def get_solver(solver: str | Path | pb.SolverParameter) -> Solver:
    """Make the solver that a prototxt file (or message) describes, of the type that it names.

    Raises:
        FileNotFoundError: no such file.
        ValueError: an unknown type, or whatever else is wrong with the solver or its nets.
    """
    param = solver if isinstance(solver, pb.SolverParameter) else read_solver(solver)
    if param.type not in SOLVERS:
        raise ValueError(f"unknown solver type '{param.type}'{suggestion(param.type, SOLVERS)}")
    return SOLVERS[param.type](param)


def _check_no_momentum(kind: str, param: pb.SolverParameter) -> None:
    if param.momentum != 0:
        raise ValueError(
            f"momentum is {param.momentum:g}, but solver type {kind} has none: leave it out"
        )


def _check_delta(kind: str, param: pb.SolverParameter) -> None:
    if not 0 < param.delta < float("inf"):
        raise ValueError(f"delta is {param.delta:g}, solver type {kind} needs more than 0")


def _check_share(kind: str, name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ValueError(
            f"{name} is {value:g}, solver type {kind} needs it to be from 0 to below 1"
        )
