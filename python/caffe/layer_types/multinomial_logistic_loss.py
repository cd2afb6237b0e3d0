"""MultinomialLogisticLoss: the mean negative logarithm of the label's probability.

Bottom 0: probabilities p, N x ..., C values a sample. Bottom 1: labels, one a sample. Top: the
loss, a scalar.

    loss = -sum log(max(p[n, label], 1e-20)) / N
    dp = -w / (N max(p, 1e-20)) for the label, else 0; w is the gradient of the top

SoftmaxWithLoss does the same from scores, and is safe where p is 0. Backward reads: probabilities
and labels, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, Reads
from caffe.layer_types.labels import check_one_label_a_sample, class_labels

_LEAST = np.float32(1e-20)


class MultinomialLogisticLoss(BuiltIn):
    """The MultinomialLogisticLoss layer; see the module."""

    bottom_count = (2, 2)
    differentiable_bottoms = 1

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the top a scalar; ValueError unless there is one label a sample."""
        check_one_label_a_sample(bottom[0].shape, bottom[1].shape)
        top[0].reshape()

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Probabilities and labels, exactly."""
        return {0: Quality.EXACT, 1: Quality.EXACT}, {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the loss; ValueError for a label that is no class."""
        rows = bottom[0].data.reshape(bottom[0].shape[0], -1)
        labels, _ = class_labels(bottom[1].data, rows.shape[1], 1)
        picked = np.maximum(rows[np.arange(len(rows)), labels], _LEAST)
        top[0].data[...] = -np.sum(np.log(picked), dtype=np.float64) / max(len(rows), 1)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dp."""
        if not propagate_down[0]:
            return
        rows = bottom[0].data.reshape(bottom[0].shape[0], -1)
        labels, _ = class_labels(bottom[1].data, rows.shape[1], 1)
        at = np.arange(len(rows)), labels
        gradient = np.zeros_like(rows)
        gradient[at] = -top[0].diff / (np.maximum(rows[at], _LEAST) * np.float32(max(len(rows), 1)))
        bottom[0].diff[...] = gradient.reshape(bottom[0].shape)
