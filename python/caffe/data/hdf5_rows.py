"""HDF5 files as rows: the first axis of a dataset counts samples. Needs h5py, the extra `hdf5`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe.hdf5_snapshot import require_h5py
from caffe.names import suggestion

FloatArray = npt.NDArray[np.float32]

_NUMBERS = "fiu"  # kinds of dtype: floats, signed and unsigned integers


class Hdf5Rows:
    """The rows of one file.

    Args:
        path: the file.
        where: which line of which list names it, for messages.
        names: of the datasets to read.

    Attributes:
        count: how many rows there are; every dataset has as many.
        shapes: of one row of each dataset.

    Raises:
        FileNotFoundError: no such file.
        ImportError: h5py is not installed.
        ValueError: no HDF5 file, a dataset is missing or holds no numbers, or lengths differ.
    """

    def __init__(self, path: Path, where: str, names: Sequence[str]) -> None:
        """Look at shapes and types; see the class."""
        self._path = path
        self._where = where
        self._names = list(names)
        with self._opened() as file:
            shapes = [self._shape_of(file, name) for name in names]
        self.count = shapes[0][0]
        self.shapes = [shape[1:] for shape in shapes]
        for name, shape in zip(names, shapes):
            if shape[0] != self.count:
                raise ValueError(
                    f"{where}: '{path}' has {shape[0]} rows of '{name}' and {self.count} of "
                    f"'{names[0]}'"
                )

    def load(self) -> list[FloatArray]:
        """Return all rows of each dataset, as float32.

        Raises FileNotFoundError or ValueError where the file is damaged or no longer what it was.
        """
        with self._opened() as file:
            shapes = [self._shape_of(file, name) for name in self._names]
            if shapes != [(self.count, *shape) for shape in self.shapes]:
                raise ValueError(f"{self._where}: '{self._path}' has changed since the start")
            return [np.asarray(file[name], dtype=np.float32) for name in self._names]

    def _shape_of(self, file: Any, name: str) -> tuple[int, ...]:
        found = file.get(name)
        if not hasattr(found, "dtype"):
            datasets = [key for key, item in file.items() if hasattr(item, "dtype")]
            raise ValueError(
                f"{self._where}: '{self._path}' has no dataset '{name}', which a top is named "
                f"after{suggestion(name, datasets)}"
            )
        if found.dtype.kind not in _NUMBERS or not found.shape:
            raise ValueError(
                f"{self._where}: dataset '{name}' of '{self._path}' has shape {found.shape} and "
                f"type {found.dtype}; needed are one axis or more, and numbers"
            )
        return tuple(found.shape)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        h5py = require_h5py()
        if not self._path.exists():
            raise FileNotFoundError(f"{self._where}: the file '{self._path}' does not exist")
        try:
            with h5py.File(self._path, "r") as file:
                yield file
        except OSError as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{self._where}: '{self._path}' cannot be read as HDF5: {reason}"
            ) from error


def read_file_list(path: str | Path) -> list[tuple[Path, str]]:
    """Read a list of files, one a line; blanks around a name and empty lines do no harm.

    Returns:
        (file, "list:line") for each.

    Raises:
        FileNotFoundError: no such list.
        ValueError: it is an HDF5 file itself, or empty.
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"list of HDF5 files '{path}' does not exist")
    content = source.read_bytes()
    if content.startswith(b"\x89HDF"):
        raise ValueError(
            f"'{path}' is an HDF5 file; needed is a text file that lists HDF5 files, one a line"
        )
    lines = content.decode("utf-8-sig", "surrogateescape").split("\n")
    files = [
        (Path(line.strip()), f"{path}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not files:
        raise ValueError(f"list of HDF5 files '{path}' is empty")
    return files
