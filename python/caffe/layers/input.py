"""Input: tops that the user fills through net.blobs. No bottoms, no gradient, no arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from caffe._core import Parameter, Tensor
from caffe._core.layers import ForwardContext, Needs, Propagation, Traits
from caffe.layers.base import Shape
from caffe.proto import caffe_pb2 as pb


class InputLayer:
    """Gives each top the shape that prototxt or a later blob.reshape() says."""

    def __init__(self, param: pb.LayerParameter) -> None:
        """Read the shapes; ValueError unless there is one, or one a top, and no bottom."""
        if param.bottom:
            raise ValueError(f"takes no bottoms, has {len(param.bottom)}")
        shapes = [[int(size) for size in shape.dim] for shape in param.input_param.shape]
        if len(shapes) == 1:
            shapes = shapes * len(param.top)
        if not shapes and param.top:
            shapes = [[] for _ in param.top]
        if len(shapes) != len(param.top):
            raise ValueError(
                f"input_param has {len(shapes)} shapes, needs one, or one for each of the "
                f"{len(param.top)} tops"
            )
        self.shapes = [list(shape) for shape in shapes]
        self.parameters: list[Parameter] = []

    def reshape(self, bottoms: Sequence[Shape]) -> list[list[int]]:
        """Shapes of the tops."""
        return self.shapes

    def needs(self, propagation: Propagation) -> Needs:
        """Nothing."""
        raise AssertionError("an Input layer has no backward pass")

    def traits(self) -> Traits:
        """Nothing special."""
        return Traits()

    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None:
        """Leave what the user wrote."""

    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: Propagation,
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""

    def gradient_terms(self) -> int:
        """Return 0: nothing learns."""
        return 0

    def saved_bytes(self) -> int:
        """Return 0: nothing is kept."""
        return 0

    def drop_saved(self) -> None:
        """Do nothing."""
