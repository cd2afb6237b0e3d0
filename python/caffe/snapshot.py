"""Weights and solver states in files of either format.

What is read is told by its content; what is written, by its caller. The formats are
binary_snapshot.py's and hdf5_snapshot.py's.
"""

from __future__ import annotations

from pathlib import Path

from caffe import binary_snapshot, hdf5_snapshot
from caffe.file_kind import Kind, kind_of
from caffe.proto import caffe_pb2 as pb
from caffe.stored_blob import StoredBlob


def load_weights(path: str | Path) -> list[tuple[str, dict[int, StoredBlob]]]:
    """Return (layer name, its blobs by index) for each layer of a file of weights that has blobs.

    Raises FileNotFoundError, ImportError where h5py is needed and missing, or ValueError for a file
    of another kind or a damaged one.
    """
    read = hdf5_snapshot.load_weights if _is_hdf5(path) else binary_snapshot.load_weights
    return read(path)


def load_state(path: str | Path) -> tuple[pb.SolverState, list[StoredBlob]]:
    """Read a solver state: itself without history, and the history's blobs.

    Raises FileNotFoundError, ImportError where h5py is needed and missing, or ValueError for a file
    of another kind or a damaged one.
    """
    read = hdf5_snapshot.load_state if _is_hdf5(path) else binary_snapshot.load_state
    state, history = read(path)
    # What is no UTF-8 comes as bytes.
    if state.iter < 0 or not isinstance(state.learned_net, str):
        raise ValueError(f"'{path}' is a solver state with damaged content")
    return state, history


def _is_hdf5(path: str | Path) -> bool:
    return Path(path).is_file() and kind_of(path) is Kind.HDF5


def weights_beside(state: Path, learned_net: str) -> Path:
    """Return the weights that a state names: as written, or of that name beside the state.

    Raises FileNotFoundError where they are in neither place.
    """
    named = Path(learned_net)
    beside = state.parent / named.name
    if named.is_file():
        return named
    if beside.is_file():
        return beside
    raise FileNotFoundError(
        f"'{state}' names the weights '{learned_net}', which are neither there nor beside it"
    )
