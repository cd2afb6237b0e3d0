"""`.caffemodel` and `.solverstate` as BVLC Caffe's binary protocol buffers.

Values go straight from file to parameter and back: the messages around them are taken apart and put
together here, by the field numbers of caffe.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Union

import numpy as np
from google.protobuf.message import DecodeError

from caffe import wire
from caffe.atomic_file import atomic_file
from caffe.file_kind import Kind
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import check_binary
from caffe.stored_blob import (
    ArrayBlob,
    FileBlob,
    FloatArray,
    StoredBlob,
    blob_to_array,
    check_count,
)
from caffe.wire import Field

_NET_LAYER, _NET_V1_LAYER = 100, 2
_V1_V0_LAYER = 1
_STATE_HISTORY = 3
_BLOB_SIZES = (1, 2, 3, 4)  # num, channels, height, width
_BLOB_DATA, _BLOB_DIFF, _BLOB_SHAPE, _BLOB_DOUBLES = 5, 6, 7, 8
_LAYER_BLOBS = 7
#: Layer message -> the numbers of its name and its blobs.
_LAYER, _V1_LAYER, _V0_LAYER = (1, _LAYER_BLOBS), (4, 6), (1, 50)

_Part = Union[bytes, memoryview]

# -- writing -----------------------------------------------------------------------------------


def save_weights(
    path: str | Path,
    net: pb.NetParameter,
    blobs: Sequence[Sequence[FloatArray]],
    diffs: Sequence[Sequence[FloatArray]] = (),
) -> None:
    """Write a .caffemodel.

    Args:
        path: where to.
        net: the net without weights.
        blobs: for each layer of `net`, the values of its learnable blobs.
        diffs: likewise their gradients; empty: they are not written.

    Raises OSError where it cannot be written; an older file stays whole then.
    """
    head = pb.NetParameter()
    head.CopyFrom(net)
    del head.layer[:]
    with atomic_file(path) as file:
        file.write(head.SerializeToString())
        for index, layer in enumerate(net.layer):
            gradients = diffs[index] if diffs else [None] * len(blobs[index])
            parts: list[_Part] = [layer.SerializeToString()]
            for array, gradient in zip(blobs[index], gradients):
                parts += _message(_LAYER_BLOBS, _blob(array, gradient))
            file.writelines(_message(_NET_LAYER, parts))


def save_state(path: str | Path, state: pb.SolverState, history: Iterable[FloatArray]) -> None:
    """Write a .solverstate: `state` without history, and the history's values.

    Raises OSError where it cannot be written; an older file stays whole then.
    """
    with atomic_file(path) as file:
        file.write(state.SerializeToString())
        for array in history:
            file.writelines(_message(_STATE_HISTORY, _blob(array, None)))


def _message(number: int, parts: list[_Part]) -> list[_Part]:
    return [wire.header(number, sum(map(len, parts))), *parts]


def _blob(array: FloatArray, diff: FloatArray | None) -> list[_Part]:
    parts = _message(_BLOB_SHAPE, [pb.BlobShape(dim=array.shape).SerializeToString()])
    for number, values in ((_BLOB_DATA, array), (_BLOB_DIFF, diff)):
        if values is not None:
            flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
            parts += _message(number, [flat.view(np.uint8).data])
    return parts


# -- reading -----------------------------------------------------------------------------------


def load_weights(path: str | Path) -> list[tuple[str, dict[int, StoredBlob]]]:
    """Return (layer name, its blobs by index) for each layer of a .caffemodel that has blobs.

    Layers of all formats, V0 and V1 included, are read as they are.

    Raises FileNotFoundError, or ValueError for a file of another kind or a damaged one.
    """
    file = check_binary(path, Kind.NET_BINARY)
    found = []
    with _content(file, "a .caffemodel (weights)") as data:
        for field in wire.fields(data):
            if field.number in (_NET_LAYER, _NET_V1_LAYER) and field.wire == wire.BYTES:
                name, blobs = _layer(file, data, field)
                if blobs:
                    found.append((name, blobs))
    return found


def load_state(path: str | Path) -> tuple[pb.SolverState, list[StoredBlob]]:
    """Read a .solverstate: the state without history, and the history's blobs.

    Raises FileNotFoundError, or ValueError for a file of another kind or a damaged one.
    """
    file = check_binary(path, Kind.STATE_BINARY)
    history: list[StoredBlob] = []
    state = pb.SolverState()
    with _content(file, "a .solverstate") as data:
        start = 0
        for field in wire.fields(data):
            if field.number == _STATE_HISTORY and field.wire == wire.BYTES:
                history.append(_stored_blob(file, data, field))
            else:
                state.MergeFromString(data[start : field.end])
            start = field.end
    return state, history


@contextmanager
def _content(file: Path, what: str) -> Iterator[mmap.mmap]:
    """The bytes of a file; what turns out to be damaged becomes one line that names it."""
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            yield data
        except (ValueError, DecodeError) as error:
            raise ValueError(f"'{file}' is {what} with damaged content: {error}") from error


def _layer(file: Path, data: mmap.mmap, message: Field) -> tuple[str, dict[int, StoredBlob]]:
    numbers = _LAYER if message.number == _NET_LAYER else _V1_LAYER
    name = ""
    blobs: list[Field] = []
    for field in _flattened(data, message, numbers):
        if field.number == numbers[0]:
            name = data[field.begin : field.end].decode("utf-8")
        elif field.number == numbers[1]:
            blobs.append(field)
    return name, {index: _stored_blob(file, data, blob) for index, blob in enumerate(blobs)}


def _flattened(data: mmap.mmap, message: Field, numbers: tuple[int, int]) -> Iterator[Field]:
    """Yield the name and the blobs of a layer, those of a V0 layer within it under its numbers."""
    for field in wire.fields(data, message.begin, message.end):
        if field.wire != wire.BYTES:
            continue
        if numbers == _V1_LAYER and field.number == _V1_V0_LAYER:
            for inner in wire.fields(data, field.begin, field.end):
                if inner.wire == wire.BYTES and inner.number in _V0_LAYER:
                    yield inner._replace(number=numbers[_V0_LAYER.index(inner.number)])
        elif field.number in numbers:
            yield field


def _stored_blob(file: Path, data: mmap.mmap, message: Field) -> StoredBlob:
    shape: tuple[int, ...] | None = None
    sizes = [0, 0, 0, 0]
    values = []
    for field in wire.fields(data, message.begin, message.end):
        if field.number == _BLOB_SHAPE and field.wire == wire.BYTES:
            shape = tuple(pb.BlobShape.FromString(data[field.begin : field.end]).dim)
        elif field.number in _BLOB_SIZES and field.wire == wire.VARINT:
            sizes[_BLOB_SIZES.index(field.number)] = field.value
        elif field.number in (_BLOB_DATA, _BLOB_DOUBLES):
            values.append(field)
    shape = tuple(sizes) if shape is None else shape
    if [(field.number, field.wire) for field in values] == [(_BLOB_DATA, wire.BYTES)]:
        check_count((values[0].end - values[0].begin) / 4, shape)
        return FileBlob(file, values[0].begin, shape)
    # Doubles, or floats in several pieces: as old or other writers have them.
    return ArrayBlob(blob_to_array(pb.BlobProto.FromString(data[message.begin : message.end])))
