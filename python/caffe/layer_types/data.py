"""Data: images and labels from an LMDB.

Tops: data (N x C x H x W, transformed) and, if wanted, label (N). The records are read and decoded
in the background; crop, mirror, mean and scale go straight into the top, in one parallel pass, so
that no second copy of a batch in floats exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from caffe.data.datum import Pixels, Record, parse_record
from caffe.data.lmdb_source import LmdbSource
from caffe.data.prefetch import Prefetcher
from caffe.data.transform import Transformer, random_key
from caffe.layer_types.base import Layer
from caffe.proto import caffe_pb2

_MOST_PREFETCH = 256


class _Batch(NamedTuple):
    images: list[Pixels]
    shapes: list[tuple[int, int, int]]
    labels: npt.NDArray[np.float32]
    first_index: int


class _Reader:
    """Reads and decodes batches; all that the prefetch thread knows of the layer."""

    def __init__(self, param: caffe_pb2.LayerParameter) -> None:
        self._batch_size = param.data_param.batch_size
        self._transform = param.transform_param
        self.source = LmdbSource(param.data_param.source)
        try:
            self.first_shape = self._read()[1].shape
        except BaseException:
            self.source.close()
            raise

    def produce(self, position: int) -> tuple[_Batch, int]:
        """Return the batch that starts at `position`, and the position after it."""
        self.source.position = position
        images: list[Pixels] = []
        shapes: list[tuple[int, int, int]] = []
        labels = np.empty(self._batch_size, dtype=np.float32)
        for i in range(self._batch_size):
            key, record = self._read()
            self._check_size(key, record.shape)
            images.append(record.pixels)
            shapes.append(record.shape)
            labels[i] = record.label
        return _Batch(images, shapes, labels, position), position + self._batch_size

    def _read(self) -> tuple[bytes, Record]:
        key, value = self.source.read()
        try:
            return key, parse_record(value, self._transform.force_color, self._transform.force_gray)
        except ValueError as error:
            raise ValueError(f"LMDB '{self.source.path}', key {_text(key)}: {error}") from error

    def _check_size(self, key: bytes, shape: tuple[int, int, int]) -> None:
        first, crop = self.first_shape, self._transform.crop_size
        if shape == first or (crop and shape[0] == first[0] and crop <= min(shape[1:])):
            return
        if shape[0] != first[0]:
            hint = "set force_color or force_gray for encoded images, or store all in one form"
        elif crop:
            hint = f"no side may be below crop_size {crop}"
        else:
            hint = (
                "store all in one size (caffe prepare images -resize_height -resize_width), or set "
                "crop_size"
            )
        raise ValueError(
            f"LMDB '{self.source.path}', key {_text(key)}: the image is {_times(shape)}, the "
            f"first record {_times(first)}; {hint}"
        )


class Data(Layer):
    """The Data layer; see the module. Position p is the p-th record, counted over all passes."""

    differentiable_bottoms = 0
    backward_reads_data = False

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Open the database and look at its first record.

        Raises:
            FileNotFoundError: no database there; says how to make one.
            ValueError: options that make no sense, or a damaged database.
        """
        param = self.layer_param.data_param
        if bottom or len(top) not in (1, 2):
            raise ValueError(
                f"takes no bottoms and 1 or 2 tops (data, label), has {len(bottom)} and {len(top)}"
            )
        if param.backend == caffe_pb2.DataParameter.LEVELDB:
            what = "backend: LEVELDB" if param.HasField("backend") else "no backend, so LEVELDB,"
            raise ValueError(
                f"data_param has {what} which is not supported; make an LMDB and set backend: LMDB"
            )
        if not param.source:
            raise ValueError("data_param needs a source: the folder of an LMDB")
        if not 1 <= param.prefetch <= _MOST_PREFETCH:
            raise ValueError(
                f"data_param has prefetch {param.prefetch}, needs 1 to {_MOST_PREFETCH}: batches "
                "that are read ahead, and held in memory"
            )
        if param.batch_size < 1:
            raise ValueError("data_param needs a batch_size of 1 or more")
        transform = self.layer_param.transform_param
        self._transformer = Transformer(transform, self.phase, self.random_seed, self.name)
        self._batch_size = param.batch_size
        self._reader = _Reader(self.layer_param)
        try:
            self._shape = self._transformer.output_shape(self._reader.first_shape)
        except BaseException:
            self._reader.source.close()
            raise
        start = 0
        if param.rand_skip:
            start = random_key(self.random_seed, f"{self.name}/rand_skip") % (param.rand_skip + 1)
        self._prefetcher: Prefetcher[_Batch] = Prefetcher(
            self._reader.produce, param.prefetch, start
        )

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops: N x C x H x W, and N."""
        top[0].reshape(self._batch_size, *self._shape)
        if len(top) > 1:
            top[1].reshape(self._batch_size)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the next batch.

        Raises:
            ValueError: a damaged record, or one of another size; with its key.
        """
        batch = self._prefetcher.get()
        self._transformer.reseed(self.random_seed)  # a restored solver state may have changed it
        self._transformer.transform(batch.images, batch.shapes, batch.first_index, top[0].data)
        if len(top) > 1:
            top[1].data[...] = batch.labels

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""

    @property
    def position(self) -> int:
        """Number of the next batch's first record, counted over all passes; for solver states."""
        return self._prefetcher.position

    @position.setter
    def position(self, value: int) -> None:
        self._prefetcher.position = value

    @property
    def epoch(self) -> int:
        """Passes over the database completed before the next batch."""
        return self.position // len(self._reader.source)

    def close(self) -> None:
        """Stop reading and close the database. Closing twice does no harm."""
        if hasattr(self, "_prefetcher"):
            self._prefetcher.close()
        if hasattr(self, "_reader"):
            self._reader.source.close()

    def __del__(self) -> None:
        """Close, where nobody did."""
        self.close()


def _text(key: bytes) -> str:
    return f"'{key.decode(errors='backslashreplace')}'"


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in shape)
