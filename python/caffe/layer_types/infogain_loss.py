"""InfogainLoss: cross entropy with a matrix that weighs each class against each label.

Bottom 0: scores x, with classes along `axis`. Bottom 1: labels, one for each position outside the
axis. Bottom 2, or the file `source` (a .binaryproto): the matrix H, classes x classes. Top 0: the
loss, a scalar. Top 1, if wanted: p, of x's shape.

    p = softmax(x) along the axis
    loss = -sum over positions, classes of H[label, c] log(max(p[c], 1e-20)) / n
    dx[c] = (p[c] sum of H[label] - H[label, c]) * w / n, 0 where the label is ignore_label;
    w is the gradient of top 0

n, at least 1: FULL all positions; VALID (the default) those not ignored; BATCH_SIZE what lies
before the axis; NONE 1. With the unit matrix as H it is SoftmaxWithLoss. Backward reads: labels and
H, exactly. Keeps p between the passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, FloatArray, Reads, canonical_axis
from caffe.layer_types.labels import check_label_count, class_labels, divisor, normalization
from caffe.prototxt import read_blob

_LEAST = np.float32(1e-20)


class InfogainLoss(BuiltIn):
    """The InfogainLoss layer; see the module."""

    bottom_count = (2, 3)
    top_count = (1, 2)
    differentiable_bottoms = 1

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the options, and the matrix from its file.

        Raises:
            FileNotFoundError: no such file.
            ValueError: no matrix, or two; or a file of another kind.
        """
        source = self.layer_param.infogain_loss_param.source
        if (len(bottom) == 3) == bool(source):
            raise ValueError(
                "needs its matrix from infogain_loss_param's source or from a third bottom, one of "
                "them"
            )
        self._from_file: FloatArray | None = None
        if source:
            self._from_file = np.array(read_blob(source).data, np.float32)
        param = self.layer_param.loss_param
        self._mode = normalization(param)
        self._ignored = param.ignore_label if param.HasField("ignore_label") else None

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops; ValueError unless scores, labels and matrix fit."""
        shape = tuple(bottom[0].shape)
        axis = canonical_axis(self.layer_param.infogain_loss_param.axis, shape)
        check_label_count(shape, bottom[1].shape, axis)
        classes = shape[axis]
        values = math.prod(bottom[2].shape) if self._from_file is None else self._from_file.size
        if values != classes * classes:
            raise ValueError(
                f"the infogain matrix has {values} values, needs {classes} x {classes} for the "
                f"{classes} classes of axis {axis}"
            )
        self._layout = (math.prod(shape[:axis]), classes, math.prod(shape[axis + 1 :]))
        top[0].reshape()
        if len(top) > 1:
            top[1].reshape(*shape)

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Labels and matrix, exactly."""
        return {1: Quality.EXACT, 2: Quality.EXACT}, {}

    def _matrix(self, bottom: Sequence[Any]) -> FloatArray:
        values: FloatArray = bottom[2].data if self._from_file is None else self._from_file
        return values.reshape(self._layout[1], self._layout[1])

    def _label_rows(self, bottom: Sequence[Any]) -> tuple[FloatArray, int]:
        """Return H[label] of each position, outer x classes x inner, 0 if ignored, and n."""
        outer, classes, inner = self._layout
        labels, counted = class_labels(bottom[1].data, classes, inner, self._ignored)
        rows = self._matrix(bottom)[labels] * counted[:, np.newaxis]
        valid = int(np.count_nonzero(counted))
        rows = rows.reshape(outer, inner, classes).transpose(0, 2, 1)
        return rows, divisor(self._mode, outer, inner, valid)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the loss, and p if wanted; ValueError for a label that is no class."""
        scores = bottom[0].data.reshape(self._layout)
        p = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        p /= p.sum(axis=1, keepdims=True)
        rows, n = self._label_rows(bottom)
        top[0].data[...] = -np.sum(rows * np.log(np.maximum(p, _LEAST)), dtype=np.float64) / n
        if len(top) > 1:
            top[1].data[...] = p.reshape(top[1].shape)
        if self.saves:
            self.saved["p"] = p

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if not propagate_down[0]:
            return
        rows, n = self._label_rows(bottom)
        gradient = self.saved["p"] * rows.sum(axis=1, keepdims=True) - rows
        gradient *= top[0].diff / np.float32(n)
        bottom[0].diff[...] = gradient.reshape(bottom[0].shape)
