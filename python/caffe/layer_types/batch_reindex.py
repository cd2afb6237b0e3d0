"""BatchReindex: picks samples by index, in any order and as often as wanted.

Bottom 0: x, N x ... Bottom 1: M indices from 0 to N - 1. Top: M x ...

    y[m] = x[index[m]]      dx[n] = the sum of dy[m] over the m with index n

Backward reads: the indices, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, Reads
from caffe.layer_types.labels import add_rows, row_indices


class BatchReindex(BuiltIn):
    """The BatchReindex layer; see the module."""

    bottom_count = (2, 2)
    differentiable_bottoms = 1

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shape of the top; ValueError for bottoms without a first axis."""
        if not bottom[0].shape or len(bottom[1].shape) != 1:
            raise ValueError(
                f"bottoms have shapes {tuple(bottom[0].shape)} and {tuple(bottom[1].shape)}; needs "
                "samples along a first axis, and indices along one axis"
            )
        top[0].reshape(*bottom[1].shape, *bottom[0].shape[1:])

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """The indices."""
        return {1: Quality.EXACT}, {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the samples; ValueError for an index that is no sample."""
        top[0].data[...] = bottom[0].data[row_indices(bottom[1].data, bottom[0].shape[0])]

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if propagate_down[0]:
            gradient = bottom[0].diff
            gradient[...] = 0
            add_rows(gradient, row_indices(bottom[1].data, bottom[0].shape[0]), top[0].diff)
