"""HingeLoss: one class against all others, with a margin of 1.

Bottom 0: scores x, N x ..., C values a sample. Bottom 1: labels, one a sample. Top: the loss.

    m[n, c] = max(0, 1 - x[n, c] if c is the label, else 1 + x[n, c])
    L1: loss = sum(m) / N         dx = s * [m > 0] * w / N
    L2: loss = sum(m^2) / N       dx = s * 2 m * w / N
    s = -1 for the label, else 1; w is the gradient of the top

Backward reads: scores and labels, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, FloatArray, Reads
from caffe.layer_types.labels import check_one_label_a_sample, class_labels
from caffe.proto import caffe_pb2 as pb


class HingeLoss(BuiltIn):
    """The HingeLoss layer; see the module."""

    bottom_count = (2, 2)
    differentiable_bottoms = 1

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the top a scalar; ValueError unless there is one label a sample."""
        check_one_label_a_sample(bottom[0].shape, bottom[1].shape)
        top[0].reshape()

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Scores and labels, exactly."""
        return {0: Quality.EXACT, 1: Quality.EXACT}, {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the loss; ValueError for a label that is no class."""
        margins, _ = _margins(bottom)
        if self.layer_param.hinge_loss_param.norm == pb.HingeLossParameter.L2:
            margins *= margins
        top[0].data[...] = np.sum(margins, dtype=np.float64) / max(len(margins), 1)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if not propagate_down[0]:
            return
        margins, signs = _margins(bottom)
        weight = top[0].diff / np.float32(max(len(margins), 1))
        if self.layer_param.hinge_loss_param.norm == pb.HingeLossParameter.L2:
            gradient = 2 * margins * signs * weight
        else:
            gradient = np.sign(margins) * signs * weight
        bottom[0].diff[...] = gradient.reshape(bottom[0].shape)


def _margins(bottom: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
    """Return m and s, N x C."""
    scores = bottom[0].data.reshape(bottom[0].shape[0], -1)
    labels, _ = class_labels(bottom[1].data, scores.shape[1], 1)
    signs = np.ones_like(scores)
    signs[np.arange(len(scores)), labels] = -1
    return np.maximum(0, 1 + signs * scores), signs
