"""HDF5Data: rows of the datasets in HDF5 files.

Tops: any number, each filled from the dataset of its name. A row may have any shape; the files may
hold floats or integers, and become float32. `source` is a text file that lists the HDF5 files, one
a line; a batch goes on from one file to the next, and behind the last with the first. One file at a
time is in memory, as a whole. `shuffle` draws, for each pass, a new order of files and of the rows
within each. The rows are not transformed. Needs the package h5py (extra "hdf5"). Backward reads:
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe.data.hdf5_rows import FloatArray, Hdf5Rows, read_file_list
from caffe.data.order import permutation
from caffe.layer_types.builtin import MANY, BuiltIn

IntArray = npt.NDArray[np.int64]


class HDF5Data(BuiltIn):
    """The HDF5Data layer; see the module. Position p is the p-th row, counted over all passes."""

    differentiable_bottoms = 0
    backward_reads_data = False
    bottom_count = (0, 0)
    top_count = (1, MANY)

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Look at all files.

        Raises:
            FileNotFoundError: the list, or a file in it, does not exist.
            ImportError: h5py is not installed.
            ValueError: options that make no sense, or files that do not fit the tops.
        """
        param = self.layer_param.hdf5_data_param
        if self.layer_param.HasField("transform_param"):
            raise ValueError("does not transform its data; leave out transform_param")
        if not param.source:
            raise ValueError("hdf5_data_param needs a source: a text file that lists HDF5 files")
        if param.batch_size < 1:
            raise ValueError("hdf5_data_param needs a batch_size of 1 or more")
        names = list(self.layer_param.top)
        files = read_file_list(param.source)
        self._files = [Hdf5Rows(path, where, names) for path, where in files]
        first = self._files[0]
        for rows, (path, where) in zip(self._files, files):
            for name, shape, expected in zip(names, rows.shapes, first.shapes):
                if shape != expected:
                    raise ValueError(
                        f"{where}: rows of '{name}' in '{path}' have shape {shape}, those in the "
                        f"first file {expected}"
                    )
        self._count = sum(rows.count for rows in self._files)
        if self._count == 0:
            raise ValueError(f"the files in '{param.source}' have no rows")
        self.position = 0
        self._shuffle = param.shuffle
        self._shuffled: tuple[tuple[int, int, int], IntArray] | None = (
            None  # seed, pass, file; order
        )
        self._loaded: tuple[int, list[FloatArray]] | None = None  # number of the file, its rows

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops: batch_size rows."""
        for blob, shape in zip(top, self._files[0].shapes):
            blob.reshape(self.layer_param.hdf5_data_param.batch_size, *shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the next batch. ValueError where a file cannot be read."""
        done, batch = 0, self.layer_param.hdf5_data_param.batch_size
        while done < batch:
            turn, at = divmod(self.position + done, self._count)
            number, row = self._find(turn, at)
            count = min(self._files[number].count - row, batch - done)
            chosen = self._chosen(turn, number, row, row + count)
            for blob, values in zip(top, self._load(number)):
                blob.data[done : done + count] = values[chosen]
            done += count
        self.position += batch

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""

    def _find(self, turn: int, at: int) -> tuple[int, int]:
        """Return the file, and the place in it, of the row at place `at` of a pass."""
        numbers = range(len(self._files))
        for number in self._order(len(numbers), "files", turn) if self._shuffle else numbers:
            if at < self._files[number].count:
                return int(number), at
            at -= self._files[number].count
        raise AssertionError("a pass has as many rows as its files")

    def _chosen(self, turn: int, number: int, begin: int, end: int) -> slice | IntArray:
        """Return the rows at places begin..end of a file in a pass."""
        if not self._shuffle:
            return slice(begin, end)
        key = (self.random_seed, turn, number)
        if self._shuffled is None or self._shuffled[0] != key:
            order = self._order(self._files[number].count, f"rows of {number}", turn)
            self._shuffled = (key, order)
        return self._shuffled[1][begin:end]

    def _order(self, count: int, what: str, turn: int) -> IntArray:
        return permutation(count, self.random_seed, f"{self.name}/{what}", turn)

    def _load(self, number: int) -> list[FloatArray]:
        if self._loaded is None or self._loaded[0] != number:
            self._loaded = None  # one file at a time
            self._loaded = (number, self._files[number].load())
        return self._loaded[1]
