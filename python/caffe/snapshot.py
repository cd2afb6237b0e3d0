"""Weights and solver states in files, as BVLC Caffe writes and reads them.

A file is written beside its place, synced and renamed: a full disk or a crash leaves the old one
whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from caffe.file_kind import Kind, kind_of
from caffe.proto import caffe_pb2 as pb
from caffe.proto import weights_pb2 as wire
from caffe.prototxt import read_binary_net, read_binary_state

FloatArray = npt.NDArray[np.float32]
_M = TypeVar("_M", bound=Message)


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write `data` to `path`, so that at any moment the old or the new file is there whole.

    Raises OSError (no space, no such folder) and leaves nothing behind then.
    """
    try:
        _write_atomically(Path(path), data)
    except OSError as error:
        # The error of a full disk names no file, the others a temporary one.
        raise type(error)(error.errno, f"cannot write '{path}': {error.strerror}") from error


def _write_atomically(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes the file private; a snapshot has the mode that other files get.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def array_to_wire(array: FloatArray, blob: wire.Blob) -> None:
    """Write a float32 array of any shape into an empty blob message."""
    blob.shape.dim.extend(array.shape)
    blob.data = np.ascontiguousarray(array, dtype="<f4").tobytes()


def wire_to_array(blob: wire.Blob) -> FloatArray | None:
    """Return the blob's float32 values under its own shape, or None where it is of another kind.

    Other kinds: doubles, unpacked floats, the old num/channels/height/width.
    """
    values = np.frombuffer(blob.data, dtype="<f4")
    if not blob.HasField("shape") or np.prod(blob.shape.dim, dtype=np.int64) != values.size:
        return None
    return values.reshape(tuple(blob.shape.dim)).astype(np.float32, copy=False)


def blob_to_array(blob: pb.BlobProto) -> FloatArray:
    """Return the float32 values of any BlobProto; the old four sizes become a shape of four axes.

    Raises ValueError where the number of values does not fit the shape.
    """
    values = np.array(blob.double_data if blob.double_data else blob.data, dtype=np.float32)
    if blob.HasField("shape"):
        shape = tuple(blob.shape.dim)
    else:
        shape = (blob.num, blob.channels, blob.height, blob.width)
    if np.prod(shape, dtype=np.int64) != values.size:
        raise ValueError(f"a blob has {values.size} values, its shape {shape} wants another number")
    return values.reshape(shape)


def save_weights(
    path: str | Path, net: pb.NetParameter, blobs: Sequence[Iterable[FloatArray]]
) -> None:
    """Write a .caffemodel.

    Args:
        path: where to.
        net: the net without weights.
        blobs: for each layer of `net`, the values of its learnable blobs.
    """
    message = wire.Net.FromString(net.SerializeToString())
    for layer, arrays in zip(message.layer, blobs):
        del layer.blobs[:]
        for array in arrays:
            array_to_wire(array, layer.blobs.add())
    write_atomically(path, message.SerializeToString())


def load_weights(path: str | Path) -> list[tuple[str, list[FloatArray]]]:
    """Return (layer name, blobs) for each layer of a .caffemodel that has blobs.

    Raises FileNotFoundError, or ValueError for a file of another kind or in pieces.
    """
    message = _read_wire(path, Kind.NET_BINARY, wire.Net())
    if message is not None and not message.v1_layer:
        layers = [(layer.name, _arrays(layer.blobs)) for layer in message.layer if layer.blobs]
        plain = [(name, arrays) for name, arrays in layers if arrays is not None]
        if layers and len(plain) == len(layers):
            return plain
    net = read_binary_net(path)
    return [
        (layer.name, list(map(blob_to_array, layer.blobs))) for layer in net.layer if layer.blobs
    ]


def _read_wire(path: str | Path, kind: Kind, message: _M) -> _M | None:
    """Fill `message` from a file of this kind; None where the careful reader must have a look."""
    if not Path(path).is_file() or kind_of(path) is not kind:
        return None
    try:
        message.ParseFromString(Path(path).read_bytes())
    except DecodeError:
        return None
    return message


def _arrays(blobs: Iterable[wire.Blob]) -> list[FloatArray] | None:
    arrays = [wire_to_array(blob) for blob in blobs]
    plain = [array for array in arrays if array is not None]
    return plain if len(plain) == len(arrays) else None


def save_state(path: str | Path, state: pb.SolverState, history: Iterable[FloatArray]) -> None:
    """Write a .solverstate: `state` without history, and the history's values."""
    message = wire.State.FromString(state.SerializeToString())
    for array in history:
        array_to_wire(array, message.history.add())
    write_atomically(path, message.SerializeToString())


def load_state(path: str | Path) -> tuple[pb.SolverState, list[FloatArray]]:
    """Read a .solverstate: the state without history, and the history's values.

    Raises FileNotFoundError, or ValueError for a file of another kind or a damaged one.
    """
    message = _read_wire(path, Kind.STATE_BINARY, wire.State())
    history = _arrays(message.history) if message is not None else None
    if message is None or history is None:
        state = read_binary_state(path)
        history = [blob_to_array(blob) for blob in state.history]
        del state.history[:]
    else:
        del message.history[:]
        try:
            state = pb.SolverState.FromString(message.SerializeToString())
        except DecodeError as error:
            raise ValueError(f"'{path}' is a .solverstate with damaged content: {error}") from error
    # What is no UTF-8 comes as bytes.
    if state.iter < 0 or not isinstance(state.learned_net, str):
        raise ValueError(f"'{path}' is a .solverstate with damaged content")
    return state, history


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
