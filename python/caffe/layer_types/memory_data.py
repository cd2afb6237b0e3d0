"""MemoryData: batches from arrays that the user sets (net.set_input_arrays).

Bottoms: none. Tops: data (batch_size x channels x height x width) and label (batch_size). Forward
writes one batch after the other, and starts again behind the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe import log
from caffe.layer_types.builtin import BuiltIn

FloatArray = npt.NDArray[np.float32]


class MemoryData(BuiltIn):
    """The MemoryData layer; see the module. The arrays are not copied."""

    differentiable_bottoms = 0
    backward_reads_data = False
    bottom_count = (0, 0)
    top_count = (2, 2)

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the sizes; ValueError unless all are given."""
        param = self.layer_param.memory_data_param
        sizes = ("batch_size", "channels", "height", "width")
        for name in sizes:
            if getattr(param, name) < 1:
                raise ValueError(f"memory_data_param needs {name}, of 1 or more")
        self._shape = tuple(int(getattr(param, name)) for name in sizes)
        self._data: FloatArray | None = None
        self._labels = np.zeros(0, dtype=np.float32)
        self._next = 0
        if self.layer_param.HasField("transform_param"):
            log.warning(f"layer '{self.name}': arrays set by the user are not transformed")

    @property
    def batch_size(self) -> int:
        """Images in a batch."""
        return self._shape[0]

    def set_arrays(self, data: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        """Take the batches from these arrays, beginning with the first.

        Args:
            data: N x channels x height x width; N a multiple of batch_size.
            labels: N values, of any shape that begins with N.

        Raises:
            ValueError: shapes that do not fit.
        """
        images = np.ascontiguousarray(data, dtype=np.float32)
        marks = np.ascontiguousarray(labels, dtype=np.float32)
        size = self.batch_size
        if images.ndim != 4 or images.shape[1:] != self._shape[1:] or not len(images):
            raise ValueError(
                f"layer '{self.name}': the data has shape {images.shape}, needs "
                f"(N, {', '.join(map(str, self._shape[1:]))})"
            )
        if marks.size != len(images) or marks.shape[:1] != images.shape[:1]:
            raise ValueError(
                f"layer '{self.name}': the labels have shape {marks.shape}, needed is one a row "
                f"of the data of shape {images.shape}"
            )
        if len(images) % size:
            raise ValueError(
                f"layer '{self.name}': the data has {len(images)} rows, needs a multiple of "
                f"batch_size, {size}"
            )
        self._data, self._labels, self._next = images, marks.ravel(), 0

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops."""
        top[0].reshape(*self._shape)
        top[1].reshape(self.batch_size)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the next batch; ValueError where no arrays were set."""
        if self._data is None:
            raise ValueError("has no data yet: give it arrays by net.set_input_arrays()")
        end = self._next + self.batch_size
        top[0].data[...] = self._data[self._next : end]
        top[1].data[...] = self._labels[self._next : end]
        self._next = end % len(self._data)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""
