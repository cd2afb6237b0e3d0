"""Input: tops that the user fills through net.blobs. No bottoms, no gradient, no arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe.layer_types.base import Layer


class Input(Layer):
    """Gives each top the shape that prototxt or a later blob.reshape() says."""

    differentiable_bottoms = 0
    backward_reads_data = False

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the shapes; ValueError unless there is one, or one a top, and no bottom."""
        if bottom:
            raise ValueError(f"takes no bottoms, has {len(bottom)}")
        shapes = [[int(size) for size in shape.dim] for shape in self.layer_param.input_param.shape]
        if len(shapes) == 1:
            shapes = shapes * len(top)
        if not shapes:
            shapes = [[] for _ in top]
        if len(shapes) != len(top):
            raise ValueError(
                f"input_param has {len(shapes)} shapes, needs one, or one for each of the "
                f"{len(top)} tops"
            )
        self.shapes = [list(shape) for shape in shapes]  # by top; blob.reshape() changes them

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops."""
        for blob, shape in zip(top, self.shapes):
            blob.reshape(*shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Leave what the user wrote."""

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""
