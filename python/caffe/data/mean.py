"""The mean image of a database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.data.datum import parse_record
from caffe.data.lmdb_source import LmdbSource
from caffe.proto import caffe_pb2


def compute_mean(source: str | Path) -> caffe_pb2.BlobProto:
    """Return the mean of all images of an LMDB, as 1 x C x H x W.

    Raises:
        FileNotFoundError: no database there.
        ValueError: a damaged database or record, or images of several sizes.
    """
    database = LmdbSource(source)
    try:
        total: npt.NDArray[np.float64] | None = None
        shape: tuple[int, int, int] = (0, 0, 0)
        for _ in range(len(database)):
            key, value = database.read()
            try:
                record = parse_record(value)
            except ValueError as error:
                raise ValueError(f"LMDB '{source}', key {key!r}: {error}") from error
            pixels = record.pixels
            flat = np.frombuffer(pixels, np.uint8) if isinstance(pixels, bytes) else pixels.ravel()
            if total is None:
                total, shape = np.zeros(flat.size, dtype=np.float64), record.shape
            elif record.shape != shape:
                raise ValueError(
                    f"LMDB '{source}', key {key!r} has shape {record.shape}, "
                    f"the first record {shape}"
                )
            total += flat
        assert total is not None  # a source has at least one record
        values = (total / len(database)).astype(np.float32)
    finally:
        database.close()
    mean = caffe_pb2.BlobProto(num=1, channels=shape[0], height=shape[1], width=shape[2])
    mean.data.extend(values.tolist())
    return mean
