"""Crop: cuts its first bottom to the size of its second.

Bottom 0: x. Bottom 1: whose sizes the top takes from `axis` on; its values are not read. Top: the
part of x that starts at `offset`, one for all cut axes or one each (default 0).

    y = x[..., offset : offset + size]      dx = dy there, 0 elsewhere

Backward reads: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe._core.layers import BatchAxis
from caffe.layer_types.builtin import BuiltIn, canonical_axis


class Crop(BuiltIn):
    """The Crop layer; see the module."""

    bottom_count = (2, 2)
    differentiable_bottoms = 1

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shape of the top; ValueError where the part is not inside bottom 0."""
        x, wanted = tuple(bottom[0].shape), tuple(bottom[1].shape)
        axis = canonical_axis(self.layer_param.crop_param.axis, x)
        if len(wanted) != len(x):
            raise ValueError(
                f"bottom 0 has {len(x)} axes and bottom 1 {len(wanted)}; needs as many"
            )
        offsets = list(self.layer_param.crop_param.offset) or [0]
        cut = len(x) - axis
        if len(offsets) not in (1, cut):
            raise ValueError(
                f"crop_param has {len(offsets)} values of offset, needs 1 or {cut}: one for each "
                f"axis from {axis} on"
            )
        offsets = offsets * cut if len(offsets) == 1 else offsets
        self._part = [slice(0, size) for size in x[:axis]]
        for i, offset in zip(range(axis, len(x)), offsets):
            if offset + wanted[i] > x[i]:
                raise ValueError(
                    f"cannot cut {wanted[i]} values from offset {offset} on out of axis {i} of "
                    f"bottom 0, which has {x[i]}"
                )
            self._part.append(slice(offset, offset + wanted[i]))
        self.batch_axis = BatchAxis.INDEPENDENT if axis else BatchAxis.COUPLED
        top[0].reshape(*x[:axis], *wanted[axis:])

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the part."""
        top[0].data[...] = bottom[0].data[tuple(self._part)]

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if propagate_down[0]:
            gradient = bottom[0].diff
            gradient[...] = 0
            gradient[tuple(self._part)] = top[0].diff
