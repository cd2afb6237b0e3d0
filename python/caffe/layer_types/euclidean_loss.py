"""EuclideanLoss: half the mean squared distance of two bottoms.

Bottoms 0 and 1: a and b, N samples of one size. Top: the loss, a scalar.

    loss = sum((a - b)^2) / (2 N)
    da = (a - b) * w / N      db = -da      w is the gradient of the top

Backward reads: both bottoms, exactly: near the end of training the difference is far smaller than
they are, and a bound on them would be none on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, Reads
from caffe.layer_types.labels import check_batch


class EuclideanLoss(BuiltIn):
    """The EuclideanLoss layer; see the module."""

    bottom_count = (2, 2)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the top a scalar; ValueError unless the bottoms fit each other."""
        check_batch(bottom[0].shape, bottom[1].shape, "bottom 1")
        if math.prod(bottom[0].shape) != math.prod(bottom[1].shape):
            raise ValueError(
                f"bottoms of shapes {tuple(bottom[0].shape)} and {tuple(bottom[1].shape)} have "
                "samples of different sizes"
            )
        top[0].reshape()

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Both bottoms, exactly."""
        return {0: Quality.EXACT, 1: Quality.EXACT}, {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the loss."""
        difference = bottom[0].data.ravel() - bottom[1].data.ravel()
        squares = float(np.sum(np.square(difference), dtype=np.float64))
        top[0].data[...] = squares / (2 * max(bottom[0].shape[0], 1))

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write da and db where wanted."""
        weight = top[0].diff / np.float32(max(bottom[0].shape[0], 1))
        gradient = (bottom[0].data.ravel() - bottom[1].data.ravel()) * weight
        for index, sign in enumerate((1, -1)):
            if propagate_down[index]:
                bottom[index].diff[...] = np.reshape(sign * gradient, bottom[index].shape)
