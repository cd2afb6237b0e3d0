"""What built-in layers in Python may say of themselves, and users' layers may not.

How many blobs they take, what exactly backward reads, what they keep in between: with it a layer in
Python fits into the memory plan as one in C++ does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe._core import Tensor
from caffe._core.layers import BatchAxis, ForwardContext, Need, Needs, Propagation, Quality, Traits
from caffe.layer_types.base import Layer, PythonLayer, Shape
from caffe.proto import caffe_pb2 as pb

FloatArray = npt.NDArray[np.float32]

#: By index of a bottom or top: how well backward must know it. What is left out is not read.
Reads = Mapping[int, Quality]

MANY = 1_000_000


class BuiltIn(Layer):
    """Base class of the built-in layers in Python."""

    #: Least and most bottoms and tops.
    bottom_count: tuple[int, int] = (1, 1)
    top_count: tuple[int, int] = (1, 1)
    #: True where shapes of tops depend on the bottoms' values: see reshape_to_data().
    shaped_by_data: bool = False

    def __init__(self) -> None:
        """Keep nothing yet."""
        super().__init__()
        self.saved: dict[str, npt.NDArray[Any]] = {}  # what forward leaves for backward
        self.saves = True  # whether a backward pass may follow this forward pass
        self.learns: list[bool] = []  # which blobs want their gradient; set before backward()
        self.batch_axis = BatchAxis.COUPLED

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Return what backward reads of bottoms and of tops; nothing unless overridden.

        Args:
            wanted: which bottoms want a gradient.
            learns: which blobs learn.
        """
        return {}, {}

    def reshape_to_data(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of tops from the bottoms' values, right before forward()."""


class BuiltInRunner(PythonLayer):
    """Runs a BuiltIn behind the interface of the core's layers."""

    layer: BuiltIn

    def __init__(self, layer: BuiltIn, param: pb.LayerParameter) -> None:
        """Wrap `layer`. ValueError unless the number of bottoms and tops fits it."""
        super().__init__(layer, param)
        _check_count("bottoms", len(param.bottom), layer.bottom_count)
        _check_count("tops", len(param.top), layer.top_count)

    def needs(self, propagation: Propagation) -> Needs:
        """Return what the layer says that backward reads."""
        bottoms, tops = self.layer.reads(list(propagation.bottoms), list(propagation.parameters))
        return Needs(_needs(bottoms, len(self._bottom)), _needs(tops, len(self._top)))

    def traits(self) -> Traits:
        """Return what the layer says."""
        traits = super().traits()
        traits.batch_axis = self.layer.batch_axis
        return traits

    def shapes_by_data(self, src: Sequence[Tensor]) -> list[Shape]:
        """Shapes of the tops for bottoms of these values."""
        self._bind(src, [], [None] * len(src), [])
        self.layer.reshape_to_data(self._bottom, self._top)
        self._unbind()
        return [blob.shape for blob in self._top]

    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None:
        """Run the layer's forward() on views of these tensors."""
        self.layer.saved.clear()
        self.layer.saves = context.save_for_backward
        super().forward(src, dst, context)

    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: Propagation,
    ) -> None:
        """Run the layer's backward() on views of these tensors."""
        self.layer.learns = list(propagation.parameters)
        super().backward(src, dst, diff_dst, diff_src, propagation)

    def saved_bytes(self) -> int:
        """Bytes of what the layer keeps for backward."""
        return sum(array.nbytes for array in self.layer.saved.values())

    def drop_saved(self) -> None:
        """Let go of it."""
        self.layer.saved.clear()


def _needs(reads: Reads, count: int) -> list[Need]:
    return [Need(reads.get(index, Quality.NOTHING)) for index in range(count)]


def _check_count(what: str, count: int, limits: tuple[int, int]) -> None:
    least, most = limits
    if least <= count <= most:
        return
    needed = f"{least}" if least == most else f"{least} to {most}"
    if most == MANY:
        needed = f"{least} or more"
    raise ValueError(f"has {count} {what}, needs {needed}")


def canonical_axis(axis: int, shape: Sequence[int], what: str = "axis") -> int:
    """Return a possibly negative axis of `shape` as an index; ValueError where there is none."""
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{what} {axis} does not exist: the bottom has {len(shape)} axes")
    return axis % len(shape)
