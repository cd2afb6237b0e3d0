"""Data: images and labels from an LMDB or a LevelDB.

Tops: data (N x C x H x W, transformed) and, if wanted, label (N). The records are read in the
background, and encoded images decoded there in several threads; crop, mirror, mean and scale go
straight into the top, in one parallel pass, so that no second copy of a batch in floats exists.
Without a crop, the images of a batch must be of one size, those of the next may be of another.
LevelDB, which is what Caffe takes where no backend is named, needs the package plyvel (extra
"leveldb").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from caffe.data.datum import Pixels, Record, parse_record
from caffe.data.image_file import decoding_threads
from caffe.data.leveldb_source import LevelDbSource
from caffe.data.lmdb_source import LmdbSource
from caffe.data.record_source import RecordSource
from caffe.layer_types.image_source import Batch, ImageShape, ImageSource, check_size
from caffe.proto import caffe_pb2

_BACKENDS: dict[int, Callable[[str], RecordSource]] = {
    caffe_pb2.DataParameter.LMDB: LmdbSource,
    caffe_pb2.DataParameter.LEVELDB: LevelDbSource,
}


class _Reader:
    """Reads and decodes batches of records."""

    def __init__(self, param: caffe_pb2.LayerParameter, seed: int) -> None:
        self.seed = seed  # the order is the database's, whatever the seed
        self._batch_size = param.data_param.batch_size
        self._transform = param.transform_param
        self.source: RecordSource = _BACKENDS[param.data_param.backend](param.data_param.source)
        self._threads: ThreadPoolExecutor | None = None
        try:
            key, value = self.source.read()
            self.first_shape = self._parse((key, value))[1].shape
            if caffe_pb2.Datum.FromString(value).encoded:
                self._threads = decoding_threads()
        except BaseException:
            self.source.close()
            raise

    def __len__(self) -> int:
        return len(self.source)

    def produce(self, position: int) -> tuple[Batch, int]:
        """Return the batch that starts at `position`, and the position after it."""
        self.source.position = position
        images: list[Pixels] = []
        shapes: list[ImageShape] = []
        labels = np.empty(self._batch_size, dtype=np.float32)
        read = [self.source.read() for _ in range(self._batch_size)]
        parse = self._threads.map if self._threads else map
        for i, (where, record) in enumerate(parse(self._parse, read)):
            images.append(record.pixels)
            shapes.append(record.shape)
            labels[i] = record.label
            self._check_size(where, record.shape, shapes[0])
        return Batch(images, shapes, labels, position), position + self._batch_size

    def close(self) -> None:
        """Stop the threads and close the database."""
        if self._threads:
            self._threads.shutdown()
        self.source.close()

    def _parse(self, record_read: tuple[bytes, bytes]) -> tuple[str, Record]:
        key, value = record_read
        where = f"{self.source}, key '{key.decode(errors='backslashreplace')}'"
        try:
            record = parse_record(value, self._transform.force_color, self._transform.force_gray)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        return where, record

    def _check_size(self, where: str, shape: ImageShape, first: ImageShape) -> None:
        remedy = (
            "store all in one size (caffe prepare images -resize_height -resize_width), or set "
            "crop_size"
        )
        if shape[0] != first[0]:
            remedy = "set force_color or force_gray for encoded images, or store all in one form"
        check_size(where, shape, first, self._transform.crop_size, remedy)


class Data(ImageSource):
    """The Data layer; see the module."""

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Open the database and look at its first record.

        Raises:
            FileNotFoundError: no database there; says how to make one.
            ImportError: a LevelDB, and plyvel is not installed.
            ValueError: options that make no sense, or a damaged database.
        """
        param = self.layer_param.data_param
        if not param.source:
            raise ValueError("data_param needs a source: the folder of an LMDB or LevelDB")
        self.start(
            lambda begin: _Reader(self.layer_param, self.random_seed),
            param.batch_size,
            param.rand_skip,
            "data_param",
        )
