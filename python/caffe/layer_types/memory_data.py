"""MemoryData: batches from arrays or datums that the user sets.

Bottoms: none. Tops: data (batch_size x channels x height x width) and label (batch_size).
`net.set_input_arrays(data, labels)` takes arrays as they are; `net.add_datums(datums)` takes
images, which are transformed. Forward writes one batch after the other, and starts again behind the
last. Backward reads: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe import log
from caffe.data.datum import datum_record
from caffe.data.transform import Transformer
from caffe.layer_types.builtin import BuiltIn
from caffe.proto import caffe_pb2

FloatArray = npt.NDArray[np.float32]


class MemoryData(BuiltIn):
    """The MemoryData layer; see the module. Arrays are not copied.

    Position p is row p modulo their number; solver states keep it, so set the arrays, or add the
    datums, before a state is restored.
    """

    differentiable_bottoms = 0
    backward_reads_data = False
    bottom_count = (0, 0)
    top_count = (2, 2)

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the sizes; ValueError unless all are given, and for a mean that makes no sense."""
        param = self.layer_param.memory_data_param
        sizes = ("batch_size", "channels", "height", "width")
        for name in sizes:
            if getattr(param, name) < 1:
                raise ValueError(f"memory_data_param needs {name}, of 1 or more")
        self._shape = tuple(int(getattr(param, name)) for name in sizes)
        self._data: FloatArray | None = None
        self._labels = np.zeros(0, dtype=np.float32)
        self.position = 0
        self._unread = False  # whether datums were added that no pass has reached
        self._added = 0  # datums so far, which tell their random crops apart
        self._transformer = Transformer(
            self.layer_param.transform_param, self.phase, self.random_seed, self.name
        )

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
        if self.layer_param.HasField("transform_param"):
            log.warning(f"layer '{self.name}': arrays set by the user are not transformed")
        images = np.ascontiguousarray(data, dtype=np.float32)
        marks = np.ascontiguousarray(labels, dtype=np.float32)
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
        self._take(images, marks.ravel())
        self._unread = False

    def add_datums(self, datums: Sequence[caffe_pb2.Datum]) -> None:
        """Take the batches from these images, transformed as transform_param says.

        Args:
            datums: a multiple of batch_size; encoded ones are decoded.

        Raises:
            ValueError: a damaged image, or one that does not become channels x height x width; some
                of those added before were not read yet; no multiple of batch_size.
        """
        where = f"layer '{self.name}'"
        if self._unread:
            raise ValueError(f"{where}: datums that were added before are still to be read")
        self._transformer.reseed(self.random_seed)  # a restored solver state may have changed it
        options = self.layer_param.transform_param
        images = np.empty((len(datums), *self._shape[1:]), dtype=np.float32)
        for number, datum in enumerate(datums):
            try:
                record = datum_record(datum, options.force_color, options.force_gray)
                becomes = self._transformer.output_shape(record.shape)
                if becomes != self._shape[1:]:
                    raise ValueError(f"it becomes {becomes}, needs {self._shape[1:]}")
                self._transformer.transform(
                    [record.pixels],
                    [record.shape],
                    self._added + number,
                    images[number : number + 1],
                )
            except ValueError as error:
                raise ValueError(f"{where}, datum {number}: {error}") from error
        self._take(images, np.array([datum.label for datum in datums], dtype=np.float32))
        self._unread = True
        self._added += len(datums)

    def _take(self, images: FloatArray, labels: FloatArray) -> None:
        if not len(images) or len(images) % self.batch_size:
            raise ValueError(
                f"layer '{self.name}': the data has {len(images)} rows, needs a multiple of "
                f"batch_size, {self.batch_size}"
            )
        self._data, self._labels, self.position = images, labels, 0

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops."""
        top[0].reshape(*self._shape)
        top[1].reshape(self.batch_size)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the next batch; ValueError where no arrays were set."""
        if self._data is None:
            raise ValueError("has no data yet: give it arrays by net.set_input_arrays()")
        rows = np.arange(self.position, self.position + self.batch_size)
        self._data.take(rows, axis=0, out=top[0].data, mode="wrap")
        self._labels.take(rows, out=top[1].data, mode="wrap")
        self.position += self.batch_size
        if self.position >= len(self._data):
            self._unread = False

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""
