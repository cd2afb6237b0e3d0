"""Arrays in files, read when they are wanted and to where they are wanted."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


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
