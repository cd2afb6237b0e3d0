"""SigmoidCrossEntropyLoss: independent logistic losses, one for each score.

Bottom 0: scores x. Bottom 1: targets t, as many, from 0 to 1. Top: the loss, a scalar.

    s = 1 / (1 + e^-x)
    loss = -sum(t log(s) + (1 - t) log(1 - s)) / n, worked out as max(x, 0) - x t + log(1 + e^-|x|)
    dx = (s - t) * w / n, 0 where the target is ignore_label; w is the gradient of the top

n, at least 1: FULL all scores; VALID those not ignored; BATCH_SIZE (the default here) samples;
NONE 1. Backward reads: scores and targets, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, Reads
from caffe.layer_types.labels import BoolArray, check_batch, divisor, normalization
from caffe.proto import caffe_pb2 as pb


class SigmoidCrossEntropyLoss(BuiltIn):
    """The SigmoidCrossEntropyLoss layer; see the module."""

    bottom_count = (2, 2)
    differentiable_bottoms = 1

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the options."""
        param = self.layer_param.loss_param
        self._mode = normalization(param, pb.LossParameter.BATCH_SIZE)
        self._ignored = param.ignore_label if param.HasField("ignore_label") else None

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the top a scalar; ValueError unless there is a target for each score."""
        check_batch(bottom[0].shape, bottom[1].shape, "the targets")
        if math.prod(bottom[0].shape) != math.prod(bottom[1].shape):
            raise ValueError(
                f"the scores have shape {tuple(bottom[0].shape)}, the targets "
                f"{tuple(bottom[1].shape)}; one target a score is needed"
            )
        top[0].reshape()

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Scores and targets, exactly."""
        return {0: Quality.EXACT, 1: Quality.EXACT}, {}

    def _counted(self, targets: Any) -> BoolArray:
        if self._ignored is None:
            return np.ones(targets.shape, bool)
        return np.asarray(np.trunc(targets) != self._ignored)

    def _divisor(self, bottom: Sequence[Any], counted: BoolArray) -> int:
        batch = bottom[0].shape[0]
        inner = counted.size // max(batch, 1)
        return divisor(self._mode, batch, inner, int(np.count_nonzero(counted)))

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the loss."""
        x, t = bottom[0].data.ravel(), bottom[1].data.ravel()
        counted = self._counted(t)
        losses = np.maximum(x, 0) - x * t + np.log1p(np.exp(-np.abs(x)))
        total = np.sum(losses[counted], dtype=np.float64)
        top[0].data[...] = total / self._divisor(bottom, counted)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if not propagate_down[0]:
            return
        x, t = bottom[0].data.ravel(), bottom[1].data.ravel()
        counted = self._counted(t)
        tail = np.exp(-np.abs(x))  # e^-|x|: no overflow on either side
        sigmoid = np.where(x >= 0, np.float32(1), tail) / (1 + tail)
        weight = top[0].diff / np.float32(self._divisor(bottom, counted))
        gradient = np.where(counted, (sigmoid - t) * weight, np.float32(0))
        bottom[0].diff[...] = gradient.reshape(bottom[0].shape)
