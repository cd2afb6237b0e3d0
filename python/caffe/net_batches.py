"""Arrays of many batches: forward_all(), forward_backward_all(), set_input_arrays(), add_datums().

Written as methods of Net, which takes them over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from caffe.layer_types.base import PythonLayer
from caffe.layer_types.memory_data import MemoryData
from caffe.proto import caffe_pb2 as pb

if TYPE_CHECKING:
    from caffe.net import Net

FloatArray = npt.NDArray[np.float32]
Arrays = dict[str, FloatArray]


def forward_all(self: Net, blobs: Sequence[str] | None = None, **inputs: npt.ArrayLike) -> Arrays:
    """Run forward in batches; a last batch that is not full is filled up with zeros.

    Args:
        self: the net.
        blobs: names of blobs to return besides the outputs.
        **inputs: arrays for the net's inputs, N x ... of any N; without any, one pass is run.

    Returns:
        Blob name -> float32 array of N rows, or of a blob's own shape where that has no batch axis.

    Raises:
        ValueError: unknown names, shapes that do not fit, or inputs of different N.
        caffe.Error: a layer failed.
    """
    passes: dict[str, list[FloatArray]] = {}
    count = _count(inputs)
    size = _batch_size(self, inputs)
    for batch in _batches(inputs, size, count):
        for name, values in self.forward(blobs, None, None, **batch).items():
            passes.setdefault(name, []).append(values.copy())
    return _joined(passes, size, count)


def forward_backward_all(
    self: Net,
    blobs: Sequence[str] | None = None,
    diffs: Sequence[str] | None = None,
    **arrays: npt.ArrayLike,
) -> tuple[Arrays, Arrays]:
    """Run forward and backward in batches; see forward_all().

    Args:
        self: the net.
        blobs: names of blobs to return besides the outputs.
        diffs: names of blobs whose gradients to return besides those of the inputs.
        **arrays: arrays for the net's inputs, and gradients for its outputs.

    Returns:
        Blobs and gradients by name, as forward_all().

    Raises:
        ValueError: unknown names, shapes that do not fit, or arrays of different N.
        caffe.Error: a layer failed.
    """
    count = _count(arrays)
    inputs = {name: array for name, array in arrays.items() if name in self.inputs}
    gradients = {name: array for name, array in arrays.items() if name in self.outputs}
    forward: dict[str, list[FloatArray]] = {}
    backward: dict[str, list[FloatArray]] = {}
    size = _batch_size(self, arrays)
    nothing: Arrays = {}
    pairs = zip_longest(
        _batches(inputs, size, count), _batches(gradients, size, count), fillvalue=nothing
    )
    for batch, gradient in pairs:
        for name, values in self.forward(blobs, None, None, **batch).items():
            forward.setdefault(name, []).append(values.copy())
        for name, values in self.backward(diffs, None, None, **gradient).items():
            backward.setdefault(name, []).append(values.copy())
    return _joined(forward, size, count), _joined(backward, size, count)


def set_input_arrays(self: Net, data: npt.ArrayLike, labels: npt.ArrayLike) -> None:
    """Let the net's MemoryData layer take its batches from these arrays.

    Args:
        self: the net.
        data: N x C x H x W, N a multiple of the layer's batch_size; kept, not copied.
        labels: N values.

    Raises:
        ValueError: no such layer, or shapes that do not fit it.
    """
    _memory_data(self, "set_input_arrays").set_arrays(data, labels)


def add_datums(self: Net, datums: Sequence[pb.Datum]) -> None:
    """Let the net's MemoryData layer take its batches from these images, once transformed.

    Args:
        self: the net.
        datums: images with labels, as many as a multiple of the layer's batch_size.

    Raises:
        ValueError: no such layer, damaged images, shapes that do not fit the layer, or datums that
            were added before and that no pass has reached.
    """
    _memory_data(self, "add_datums").add_datums(datums)


def _memory_data(net: Net, caller: str) -> MemoryData:
    for runtime in net.executor.layers:
        runner = runtime.layer
        if isinstance(runner, PythonLayer) and isinstance(runner.layer, MemoryData):
            return runner.layer
    raise ValueError(f"{caller}() needs a layer of type MemoryData; the net has none")


def _count(arrays: Mapping[str, npt.ArrayLike]) -> int | None:
    """Return the N that all arrays share; None without arrays."""
    counts = {name: len(np.atleast_1d(np.asarray(array))) for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"the arrays have different numbers of rows: {counts}")
    count = next(iter(counts.values()), None)
    if count == 0:
        raise ValueError("the arrays have no rows")
    return count


def _batches(
    arrays: Mapping[str, npt.ArrayLike], size: int, count: int | None
) -> Iterator[dict[str, FloatArray]]:
    """Cut arrays into batches of `size`; the last is filled up with zeros."""
    if not arrays or count is None:
        yield {}
        return
    for start in range(0, count, size):
        batch = {}
        for name, array in arrays.items():
            rows = np.asarray(array, dtype=np.float32)[start : start + size]
            padding = np.zeros((size - len(rows), *rows.shape[1:]), dtype=np.float32)
            batch[name] = np.concatenate([rows, padding]) if len(padding) else rows
        yield batch


def _batch_size(net: Net, names: Collection[str]) -> int:
    """Return the rows that all these blobs have; 0 without any."""
    unknown = sorted(set(names) - {*net.inputs, *net.outputs})
    if unknown:
        raise ValueError(
            f"arrays were given for {unknown}; the net has inputs {net.inputs} and outputs "
            f"{net.outputs}"
        )
    sizes = {name: net.blobs[name].shape[:1] for name in names}
    if not sizes:
        return 0
    if len(set(sizes.values())) != 1 or not next(iter(sizes.values()))[:1] > (0,):
        raise ValueError(f"the net has no one batch size for these blobs: {sizes}")
    return next(iter(sizes.values()))[0]


def _joined(passes: Mapping[str, list[FloatArray]], size: int, count: int | None) -> Arrays:
    """Stack what the passes gave; blobs with a row for each of `size` lose those of padding."""
    joined = {}
    for name, values in passes.items():
        rows = np.stack(values) if values[0].ndim == 0 else np.concatenate(values)
        is_batch = values[0].ndim > 0 and len(values[0]) == size
        joined[name] = rows[:count] if is_batch else rows
    return joined
