"""Accuracy: the share of samples whose label is among the top_k best scores.

Bottoms: scores, and labels with one for each position outside `axis`. Tops: the accuracy (a scalar)
and, if wanted, the accuracy of each class. With ties, a label counts as beaten by every other score
that is greater or equal, as in Caffe. There is no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe.layers.base import Layer


class Accuracy(Layer):
    """The Accuracy layer; see the module."""

    differentiable_bottoms = 0
    backward_reads_data = False

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Check options.

        Raises:
            ValueError: wrong number of blobs, or top_k is 0.
        """
        if len(bottom) != 2 or len(top) not in (1, 2):
            raise ValueError(
                "takes 2 bottoms (scores, labels) and 1 or 2 tops, "
                f"has {len(bottom)} and {len(top)}"
            )
        param = self.layer_param.accuracy_param
        if param.top_k < 1:
            raise ValueError("accuracy_param has top_k 0, needs 1 or more")
        self._top_k = param.top_k
        self._ignored = param.ignore_label if param.HasField("ignore_label") else None

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops: (), and (classes).

        Raises:
            ValueError: the axis does not exist, top_k exceeds the classes, or scores and labels
                do not fit each other.
        """
        shape = tuple(bottom[0].shape)
        axis = self.layer_param.accuracy_param.axis
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"axis {axis} does not exist: the scores have {len(shape)} axes")
        axis %= len(shape)
        outer, classes, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        if self._top_k > classes:
            raise ValueError(f"top_k {self._top_k} exceeds the {classes} classes of axis {axis}")
        labels = math.prod(bottom[1].shape)
        if labels != outer * inner:
            raise ValueError(
                f"the scores of shape {shape} have {outer * inner} positions outside axis {axis}, "
                f"the labels of shape {tuple(bottom[1].shape)} are {labels}; one label a position "
                "is needed"
            )
        self._layout = (outer, classes, inner)
        top[0].reshape()
        if len(top) > 1:
            top[1].reshape(classes)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Count.

        Raises:
            ValueError: a label that is no class; with the sample's index and the value.
        """
        outer, classes, inner = self._layout
        scores = bottom[0].data.reshape(outer, classes, inner).transpose(0, 2, 1)
        scores = scores.reshape(outer * inner, classes)
        raw = bottom[1].data.ravel()
        counted = np.ones(raw.shape, bool) if self._ignored is None else raw != self._ignored
        bad = np.flatnonzero(counted & ~((raw > -1) & (raw < classes)))
        if bad.size:
            raise ValueError(
                f"label {raw[bad[0]]:g} of sample {bad[0] // inner} is not one of the {classes} "
                f"classes (0 to {classes - 1})"
            )
        scores, labels = scores[counted], raw[counted].astype(np.int64)
        own = np.take_along_axis(scores, labels[:, np.newaxis], axis=1)
        # The label's own score is among those counted. A NaN beats nothing and is no hit either.
        beaten_by = np.count_nonzero(scores >= own, axis=1) - 1
        hits = (beaten_by < self._top_k) & ~np.isnan(own[:, 0])
        top[0].data[...] = np.mean(hits) if hits.size else 0
        if len(top) > 1:
            samples = np.bincount(labels, minlength=classes)
            right = np.bincount(labels, weights=hits, minlength=classes)
            top[1].data[...] = right / np.maximum(samples, 1)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: the accuracy has no gradient."""
