"""Blobs as pycaffe shows them: named arrays `data` and `diff` with a shape.

A Blob is a window on a tensor that somebody else owns: a parameter, a value of a net, or what a
Python layer is given for the length of one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe._core import MemoryKind, Parameter, Tensor

FloatArray = npt.NDArray[np.float32]


class Blob:
    """An n-dimensional float32 array and its gradient. Subclasses say where the tensors are."""

    def _data_tensor(self) -> Tensor:
        raise NotImplementedError

    def _diff_tensor(self) -> Tensor:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        raise NotImplementedError

    def reshape(self, *shape: int) -> None:
        """Change the sizes of the axes; values are then undefined if the count changes."""
        raise NotImplementedError

    @property
    def data(self) -> FloatArray:
        """Float32 view of the values, `shape` in size; writing to it changes the blob."""
        return self._data_tensor().numpy()

    @property
    def diff(self) -> FloatArray:
        """Float32 view of the gradient, `shape` in size; writing to it changes the blob."""
        return self._diff_tensor().numpy()

    @property
    def count(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    def _legacy_axis(self, axis: int) -> int:
        if len(self.shape) > 4:
            raise ValueError(
                f"num, channels, height and width need at most 4 axes; this blob has "
                f"{len(self.shape)}: use shape"
            )
        return self.shape[axis] if axis < len(self.shape) else 1

    @property
    def num(self) -> int:
        """Size of axis 0, 1 if there is none. ValueError with more than 4 axes."""
        return self._legacy_axis(0)

    @property
    def channels(self) -> int:
        """Size of axis 1, 1 if there is none. ValueError with more than 4 axes."""
        return self._legacy_axis(1)

    @property
    def height(self) -> int:
        """Size of axis 2, 1 if there is none. ValueError with more than 4 axes."""
        return self._legacy_axis(2)

    @property
    def width(self) -> int:
        """Size of axis 3, 1 if there is none. ValueError with more than 4 axes."""
        return self._legacy_axis(3)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'x'.join(map(str, self.shape)) or 'scalar'}>"


class ParameterBlob(Blob):
    """A learnable blob."""

    def __init__(self, parameter: Parameter, shape: Sequence[int] | None = None) -> None:
        """Show `parameter`, under another shape where its layer shares one of that many values."""
        self.parameter = parameter
        self._shape = tuple(parameter.data.shape if shape is None else shape)

    def _data_tensor(self) -> Tensor:
        return self.parameter.data.reshaped(self._shape)

    def _diff_tensor(self) -> Tensor:
        return self.parameter.gradient.reshaped(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._shape

    def reshape(self, *shape: int) -> None:
        """Refuse: a parameter's shape follows from its layer (ValueError)."""
        if tuple(shape) != self.shape:
            raise ValueError(
                f"a parameter cannot be reshaped from {self.shape} to {shape}; its layer sets it"
            )


class LayerBlob(Blob):
    """A bottom or top as a Python layer sees it during one call."""

    def __init__(self, shape: Sequence[int] = ()) -> None:
        """Make a blob of this shape without buffers."""
        self._shape = tuple(int(size) for size in shape)
        self._data: Tensor | None = None
        self._diff: Tensor | None = None

    def bind(self, data: Tensor | None, diff: Tensor | None) -> None:
        """Show these tensors until the next call; undefined ones count as absent."""
        self._data = data if data is not None and data.defined else None
        self._diff = diff if diff is not None and diff.defined else None

    def set_shape(self, shape: Sequence[int]) -> None:
        """Take over a shape and let go of the buffers."""
        self._shape = tuple(int(size) for size in shape)
        self._data = self._diff = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._shape

    def reshape(self, *shape: Any) -> None:
        """Set the sizes of the axes; ValueError for a negative one."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
        new_shape = tuple(int(size) for size in sizes)
        if any(size < 0 for size in new_shape):
            raise ValueError(f"cannot reshape to {new_shape}: sizes must not be negative")
        if new_shape != self._shape:
            self.set_shape(new_shape)

    def _data_tensor(self) -> Tensor:
        # Layers may write a top already while they set themselves up: it gets a buffer then.
        if self._data is None:
            self._data = Tensor(self._shape, MemoryKind.WORKSPACE)
            self._data.zero()
        return self._data

    def _diff_tensor(self) -> Tensor:
        if self._diff is None:
            self._diff = Tensor(self._shape, MemoryKind.WORKSPACE)
            self._diff.zero()
        return self._diff


class BlobList(list[ParameterBlob]):
    """The learnable blobs of a Python layer."""

    def add_blob(self, *shape: int) -> ParameterBlob:
        """Append a blob of zeros of this shape, and return it."""
        self.append(ParameterBlob(Parameter([int(size) for size in shape])))
        return self[-1]
