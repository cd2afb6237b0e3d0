"""ContrastiveLoss: pairs that are alike should lie near each other, others a margin apart.

Bottoms 0 and 1: a and b, N samples of one size. Bottom 2: y, one a sample, 0 for pairs that differ.
Top: the loss, a scalar.

    d = |a - b| over each sample
    alike:    loss += d^2 / (2 N)                     da = (a - b) * w / N
    differ:   loss += max(0, margin - d)^2 / (2 N)    da = -(a - b) * (margin - d) / d * w / N
    differ, legacy_version:
              loss += max(0, margin - d^2) / (2 N)    da = -(a - b) * w / N
    da = 0 where the maximum is 0; db = -da; w is the gradient of the top

Caffe divides by d + 1e-4, which guards against a d of 0. Backward reads: all bottoms, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, FloatArray, Reads
from caffe.layer_types.labels import check_batch, check_one_label_a_sample

_GUARD = np.float32(1e-4)


class ContrastiveLoss(BuiltIn):
    """The ContrastiveLoss layer; see the module."""

    bottom_count = (3, 3)
    differentiable_bottoms = 2

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the top a scalar; ValueError unless the bottoms fit each other."""
        check_batch(bottom[0].shape, bottom[1].shape, "bottom 1")
        if math.prod(bottom[0].shape) != math.prod(bottom[1].shape):
            raise ValueError(
                f"bottoms of shapes {tuple(bottom[0].shape)} and {tuple(bottom[1].shape)} have "
                "samples of different sizes"
            )
        check_one_label_a_sample(bottom[0].shape, bottom[2].shape)
        top[0].reshape()

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """All bottoms, exactly."""
        return dict.fromkeys(range(3), Quality.EXACT), {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the loss."""
        difference, alike = _pairs(bottom)
        squares = np.sum(np.square(difference), axis=1)
        far = np.where(alike, squares, self._shortfall(squares))
        top[0].data[...] = np.sum(far, dtype=np.float64) / (2 * max(len(far), 1))

    def _shortfall(self, squares: FloatArray) -> FloatArray:
        """Return what pairs that differ cost, from the squares of their distances."""
        param = self.layer_param.contrastive_loss_param
        if param.legacy_version:
            return np.asarray(np.maximum(param.margin - squares, 0))
        near: FloatArray = np.maximum(param.margin - np.sqrt(squares), 0)
        return near * near

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write da and db where wanted."""
        param = self.layer_param.contrastive_loss_param
        difference, alike = _pairs(bottom)
        squares = np.sum(np.square(difference), axis=1)
        if param.legacy_version:
            push = np.where(param.margin - squares > 0, np.float32(1), np.float32(0))
        else:
            distance = np.sqrt(squares)
            push = np.maximum(param.margin - distance, 0) / (distance + _GUARD)
        weight = top[0].diff / np.float32(max(len(squares), 1))
        factor = np.where(alike, np.float32(1), -push) * weight
        gradient = difference * factor[:, np.newaxis]
        for index, sign in enumerate((1, -1)):
            if propagate_down[index]:
                bottom[index].diff[...] = np.reshape(sign * gradient, bottom[index].shape)


def _pairs(bottom: Sequence[Any]) -> tuple[FloatArray, Any]:
    """Return a - b, N x values, and which pairs are alike."""
    batch = bottom[0].shape[0]
    difference = bottom[0].data.reshape(batch, -1) - bottom[1].data.reshape(batch, -1)
    return difference, np.trunc(bottom[2].data.ravel()) != 0
