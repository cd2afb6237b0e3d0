"""HDF5Output: writes batches to an HDF5 file.

Bottoms: data and labels, N samples each. Tops: none. The file `file_name` is made anew when the net
is; each forward pass adds its batch to the datasets "data" and "label", of float32. There is no
gradient. Backward reads: nothing. Needs the package h5py (extra "hdf5").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe.layer_types.builtin import BuiltIn
from caffe.layer_types.labels import check_batch

_NAMES = ("data", "label")


class HDF5Output(BuiltIn):
    """The HDF5Output layer; see the module."""

    bottom_count = (2, 2)
    top_count = (0, 0)
    differentiable_bottoms = 0

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the file.

        Raises:
            ImportError: h5py is not installed.
            ValueError: no file_name.
            OSError: the file cannot be made.
        """
        name = self.layer_param.hdf5_output_param.file_name
        if not name:
            raise ValueError("hdf5_output_param has no file_name")
        try:
            import h5py  # noqa: PLC0415 - an extra, and slow to import
        except ImportError as error:
            raise ImportError(
                f"needs the package h5py ({error}); install it, or this package with its extra "
                "'hdf5': pip install '.[hdf5]'"
            ) from error
        try:
            self._file = h5py.File(name, "w")
        except OSError as error:
            raise OSError(f"cannot make the HDF5 file '{name}': {error}") from error
        for dataset, blob in zip(_NAMES, bottom):
            shape = tuple(blob.shape)
            self._file.create_dataset(
                dataset, (0, *shape[1:]), "float32", maxshape=(None, *shape[1:]), chunks=True
            )

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make sure that the bottoms fit each other and the file (ValueError)."""
        check_batch(bottom[0].shape, bottom[1].shape, "the labels")
        for name, blob in zip(_NAMES, bottom):
            kept = tuple(self._file[name].shape[1:])
            if tuple(blob.shape[1:]) != kept:
                raise ValueError(
                    f"samples of '{name}' have shape {tuple(blob.shape[1:])}, those in the file "
                    f"{kept}"
                )

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Add the batch to the file."""
        for name, blob in zip(_NAMES, bottom):
            dataset = self._file[name]
            before = dataset.shape[0]
            dataset.resize(before + blob.shape[0], axis=0)
            dataset[before:] = blob.data
        self._file.flush()

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is no gradient."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()
