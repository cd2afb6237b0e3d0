"""Arrays in files, read when they are wanted and to where they are wanted."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from caffe.proto import caffe_pb2 as pb

FloatArray = npt.NDArray[np.float32]


def blob_to_array(blob: pb.BlobProto) -> FloatArray:
    """Return the float32 values of any BlobProto; the old four sizes become a shape of four axes.

    Raises ValueError where the number of values does not fit the shape.
    """
    values = np.array(blob.double_data or blob.data, dtype=np.float32)
    old = (blob.num, blob.channels, blob.height, blob.width)
    shape = tuple(blob.shape.dim) if blob.HasField("shape") else old
    check_count(values.size, shape)
    return values.reshape(shape)


def check_count(count: float, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless a blob of this shape has `count` values."""
    if min(shape, default=0) < 0 or math.prod(shape) != count:
        raise ValueError(f"a blob has {count:g} values, its shape {shape} wants another number")


class StoredBlob(Protocol):
    """An array of a .caffemodel or .solverstate, of whatever format."""

    shape: tuple[int, ...]

    def copy_to(self, target: FloatArray) -> None:
        """Fill a contiguous array of as many values.

        Raises ValueError where the file was changed meanwhile.
        """


@dataclass
class ArrayBlob:
    """An array that is already in memory."""

    array: FloatArray

    def __post_init__(self) -> None:
        """Take over the array's shape."""
        self.shape: tuple[int, ...] = self.array.shape

    def copy_to(self, target: FloatArray) -> None:
        """Fill an array of as many values."""
        target[...] = self.array.reshape(target.shape)


@dataclass
class FileBlob:
    """Little-endian float32 values at one place of a file."""

    path: Path
    offset: int  # bytes
    shape: tuple[int, ...]

    def copy_to(self, target: FloatArray) -> None:
        """Read straight into a contiguous array of as many values."""
        with self.path.open("rb", buffering=0) as file:
            file.seek(self.offset)
            left = target.reshape(-1).view(np.uint8).data
            while left:  # one call reads 2 GiB at most
                got = file.readinto(left)
                if not got:
                    raise ValueError(f"'{self.path}' became shorter while it was read")
                left = left[got:]
        if sys.byteorder == "big":
            target.byteswap(inplace=True)
