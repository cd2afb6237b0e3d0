"""The mean image of a database."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.data.databases import SOURCES, checked_backend
from caffe.data.datum import parse_record, times
from caffe.progress import Progress
from caffe.proto import caffe_pb2


class MeanSum:
    """Adds images up, in double precision."""

    def __init__(self) -> None:
        """Start with none."""
        self.count = 0
        self._total: npt.NDArray[np.float64] = np.zeros(0)

    def add(self, image: npt.NDArray[np.uint8] | npt.NDArray[np.float32]) -> None:
        """Add an image, C x H x W. ValueError where it has another shape than the first."""
        if not self.count:
            self._total = np.zeros(image.shape)
        if image.shape != self._total.shape:
            raise ValueError(
                f"the image is {times(image.shape)}, the first {times(self._total.shape)}: a mean "
                "needs images of one size"
            )
        self._total += image
        self.count += 1

    def blob(self) -> caffe_pb2.BlobProto:
        """Return the mean as 1 x C x H x W. ValueError where no image was added."""
        if not self.count:
            raise ValueError("there is no mean of no images")
        channels, height, width = self._total.shape
        mean = caffe_pb2.BlobProto(num=1, channels=channels, height=height, width=width)
        mean.data.extend((self._total / self.count).astype(np.float32).ravel().tolist())
        return mean


def compute_mean(source: str | Path, backend: str = "lmdb") -> caffe_pb2.BlobProto:
    """Return the mean of all images of a database, as 1 x C x H x W.

    Args:
        source: the database.
        backend: its kind, lmdb or leveldb.

    Raises:
        FileNotFoundError: no database there.
        ImportError: a LevelDB, and plyvel is not installed.
        ValueError: a damaged database or record, or images of several sizes.
    """
    database = SOURCES[checked_backend(backend)](source)
    mean = MeanSum()
    try:
        with Progress(len(database), "images") as progress:
            for number in range(len(database)):
                progress.update(number)
                key, value = database.read()
                try:
                    record = parse_record(value)
                    pixels = record.pixels
                    if isinstance(pixels, bytes):
                        pixels = np.frombuffer(pixels, np.uint8)
                    mean.add(pixels.reshape(record.shape))
                except ValueError as error:
                    raise ValueError(f"{database}, key {key!r}: {error}") from error
    finally:
        database.close()
    return mean.blob()
