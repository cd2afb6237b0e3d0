"""ArgMax: where the largest values are, and how large.

Bottom: scores. Top: with `axis`, the bottom's shape with top_k along the axis: indices along it, or
with out_max_val the values. Without: N x 1 x top_k indices within a sample, or with out_max_val
N x 2 x top_k, indices and then values; more axes of size 1 if the bottom has more than 3. The
largest comes first; of equal values, as in Caffe, the one with the higher index. There is no
gradient. Backward reads: nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe.layer_types.builtin import BuiltIn, canonical_axis


class ArgMax(BuiltIn):
    """The ArgMax layer; see the module."""

    differentiable_bottoms = 0

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shape of the top; ValueError for no axis, or a top_k that is not there."""
        param = self.layer_param.argmax_param
        shape = list(bottom[0].shape)
        if not shape:
            raise ValueError("bottom 0 is a scalar, needs at least 1 axis")
        if param.HasField("axis"):
            axis = canonical_axis(param.axis, shape)
            self._rows = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
            top_shape = [*shape[:axis], param.top_k, *shape[axis + 1 :]]
        else:
            self._rows = (shape[0], math.prod(shape[1:]), 1)
            top_shape = [shape[0], 2 if param.out_max_val else 1, param.top_k]
            top_shape += [1] * (len(shape) - 3)
        if not 1 <= param.top_k <= self._rows[1]:
            raise ValueError(
                f"argmax_param has top_k {param.top_k}, needs 1 to {self._rows[1]}: the values "
                "that there are"
            )
        top[0].reshape(*top_shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write indices, values or both."""
        param = self.layer_param.argmax_param
        values = bottom[0].data.reshape(self._rows)
        # Sorted in rising order, ties by rising index; the last ones are wanted, backwards.
        order = np.argsort(values, axis=1, kind="stable")[:, : -param.top_k - 1 : -1]
        best = np.take_along_axis(values, order, axis=1)
        if param.HasField("axis"):
            top[0].data[...] = (best if param.out_max_val else order).reshape(top[0].shape)
        elif param.out_max_val:
            top[0].data[...] = np.stack([order, best], axis=1).reshape(top[0].shape)
        else:
            top[0].data[...] = order.reshape(top[0].shape)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: indices have no gradient."""
