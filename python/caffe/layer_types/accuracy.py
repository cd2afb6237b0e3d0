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

from caffe.layer_types.builtin import BuiltIn, canonical_axis
from caffe.layer_types.labels import check_label_count, class_labels


class Accuracy(BuiltIn):
    """The Accuracy layer; see the module."""

    bottom_count = (2, 2)
    top_count = (1, 2)
    differentiable_bottoms = 0

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Check options.

        Raises:
            ValueError: top_k is 0.
        """
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
        axis = canonical_axis(self.layer_param.accuracy_param.axis, shape)
        outer, classes, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        if self._top_k > classes:
            raise ValueError(f"top_k {self._top_k} exceeds the {classes} classes of axis {axis}")
        check_label_count(shape, bottom[1].shape, axis)
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
        labels, counted = class_labels(bottom[1].data, classes, inner, self._ignored)
        scores, labels = scores[counted], labels[counted]
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
