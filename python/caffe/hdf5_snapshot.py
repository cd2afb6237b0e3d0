"""`.caffemodel.h5` and `.solverstate.h5`, laid out as BVLC Caffe does.

    weights   /data/<layer>/<index>   float32 arrays; a blob that another layer owns is left out
              /diff/<layer>/<index>   likewise their gradients, where they were asked for
    state     /iter, /current_step    int32 arrays of one value
              /learned_net            string, ended by a zero
              /history/<index>        float32 arrays
              /comet                  bytes of a CometState; ours, and skipped by BVLC Caffe

Needs h5py, the extra `hdf5`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from caffe.atomic_file import atomic_file
from caffe.file_kind import require_file
from caffe.proto import caffe_pb2 as pb
from caffe.stored_blob import FloatArray, StoredBlob

Layers = Sequence[tuple[str, Mapping[int, FloatArray]]]


def require_h5py() -> Any:
    """Return h5py. ImportError, naming the extra to install, where it is missing."""
    try:
        import h5py  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'comet-caffe[hdf5]'") from error
    return h5py


@dataclass
class Hdf5Blob:
    """A float32 array of an HDF5 file."""

    path: Path
    name: str
    shape: tuple[int, ...]

    def copy_to(self, target: FloatArray) -> None:
        """Read straight into a contiguous array of as many values."""
        with _opened(self.path, "an array") as file:
            file[self.name].read_direct(target.reshape(self.shape))


# -- weights -----------------------------------------------------------------------------------


def save_weights(path: str | Path, layers: Layers, diffs: Layers = ()) -> None:
    """Write weights, and gradients where `diffs` has them.

    Args:
        path: where to.
        layers: (layer name, blobs that it owns by index).
        diffs: likewise gradients; empty: they are not written.

    Raises ImportError without h5py, or OSError where the file cannot be written.
    """
    with _new_file(path) as file:
        for group, content in (("data", layers), ("diff", diffs)):
            for name, blobs in content:
                folder = file.require_group(f"{group}/{name}")
                for index, array in blobs.items():
                    folder.create_dataset(str(index), data=np.asarray(array, dtype="<f4"))


def load_weights(path: str | Path) -> list[tuple[str, dict[int, StoredBlob]]]:
    """Return (layer name, its blobs by index) for each layer that has blobs.

    Raises FileNotFoundError, ImportError without h5py, or ValueError for an HDF5 file of something
    else.
    """
    file_path = require_file(path, "weights")
    found = []
    with _opened(file_path, "weights") as file:
        for name, folder in _layers_of(file["data"]):
            blobs: dict[int, StoredBlob] = {
                int(index): Hdf5Blob(file_path, dataset.name, tuple(dataset.shape))
                for index, dataset in folder.items()
            }
            if blobs:
                found.append((name, dict(sorted(blobs.items()))))
    return found


def _layers_of(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (layer name, its folder); a slash in a layer's name made folders within folders."""
    for name, folder in group.items():
        within = {key: item for key, item in folder.items() if not hasattr(item, "dtype")}
        if within:
            yield from _layers_of(folder, f"{prefix}{name}/")
        datasets = {key: item for key, item in folder.items() if key not in within}
        if datasets:
            yield prefix + name, datasets


# -- states ------------------------------------------------------------------------------------


def save_state(path: str | Path, state: pb.SolverState, history: Iterable[FloatArray]) -> None:
    """Write `state` without history, and the history's values.

    Raises ImportError without h5py, or OSError where the file cannot be written.
    """
    with _new_file(path) as file:
        for name in ("iter", "current_step"):
            file.create_dataset(name, data=np.array([getattr(state, name)], dtype="<i4"))
        _write_string(file, "learned_net", state.learned_net.encode())
        file.create_dataset("comet", data=np.frombuffer(state.comet.SerializeToString(), np.uint8))
        folder = file.create_group("history")
        for index, array in enumerate(history):
            folder.create_dataset(str(index), data=np.asarray(array, dtype="<f4"))


def _write_string(file: Any, name: str, text: bytes) -> None:
    """Write a string of fixed length with a zero at its end, as H5LTmake_dataset_string does."""
    h5py = require_h5py()
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(text) + 1)
    kind.set_strpad(h5py.h5t.STR_NULLTERM)
    space = h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.h5d.create(file.id, name.encode(), kind, space)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(text, dtype=f"S{len(text) + 1}"), kind)


def load_state(path: str | Path) -> tuple[pb.SolverState, list[StoredBlob]]:
    """Read a state: itself without history, and the history's blobs.

    Raises FileNotFoundError, ImportError without h5py, or ValueError for an HDF5 file of something
    else.
    """
    file_path = require_file(path, "solver state")
    with _opened(file_path, "a solver state") as file:
        text = file["learned_net"][()]
        state = pb.SolverState(
            iter=int(np.ravel(file["iter"][()])[0]),
            current_step=int(np.ravel(file["current_step"][()])[0]),
            learned_net=text.decode() if isinstance(text, bytes) else str(text),
        )
        if "comet" in file:
            state.comet.ParseFromString(file["comet"][()].tobytes())
        folder = file["history"]
        history: list[StoredBlob] = [
            Hdf5Blob(file_path, folder[str(index)].name, tuple(folder[str(index)].shape))
            for index in range(len(folder))
        ]
    return state, history


# -- files -------------------------------------------------------------------------------------


@contextmanager
def _new_file(path: str | Path) -> Iterator[Any]:
    h5py = require_h5py()
    with atomic_file(path) as stream, h5py.File(stream, "w") as file:
        yield file


@contextmanager
def _opened(path: Path, what: str) -> Iterator[Any]:
    """Open to read; whatever is missing or damaged in the file becomes one line that names it."""
    h5py = require_h5py()
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (KeyError, OSError, TypeError, AttributeError, ValueError, DecodeError) as error:
        reason = " ".join(str(error).split()).strip('"')
        raise ValueError(f"'{path}' is an HDF5 file, but not {what}: {reason}") from error
