"""Runs of layers: those that go through the batch slice by slice together, and the others alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from caffe.buffers import Buffers
from caffe.runtime import RuntimeLayer


def forward_run(
    layers: Sequence[RuntimeLayer],
    buffers: Buffers,
    slice_size: int,
    start: int,
    end: int,
    reshape: Callable[[int], None],
) -> tuple[int, int]:
    """Return the last layer of the run that starts at layer `start`, and its batch.

    Asked for when forward gets there: what shapes are beyond may depend on what layers before made.

    Args:
        layers: all layers.
        buffers: with the shapes of all values in front of the run.
        slice_size: samples of a slice; 0: no slices.
        start: first layer of the run.
        end: last layer that may belong to it.
        reshape: brings the shapes of a layer's tops up to date.

    Returns:
        (last, batch); batch 0: the first layer, alone and not in slices.
    """
    last, batch = start, 0
    for index in range(start, end + 1):
        if not _may_slice(layers[index], buffers, slice_size):
            break
        reshape(index)
        own = _batch_to_slice(layers[index], buffers, slice_size)
        if not own or batch not in (0, own):
            break
        last, batch = index, own
    return last, batch


def _may_slice(layer: RuntimeLayer, buffers: Buffers, slice_size: int) -> bool:
    node = layer.node
    if not slice_size or buffers.plan.retains_all or not node.bottoms:
        return False
    return layer.facts.traits.slices and not any(node.loss_weights)


def _batch_to_slice(layer: RuntimeLayer, buffers: Buffers, slice_size: int) -> int:
    """Return the batch of a layer that goes slice by slice; 0 where it does not."""
    values = [*layer.node.bottoms, *layer.node.tops]
    values += [buffers.root(value) for value in values]  # a Reshape may have folded the batch
    shapes = [buffers.slots[value.index].shape for value in values]
    batches = {shape[0] if shape else 0 for shape in shapes}
    batch = batches.pop()
    return batch if not batches and batch > slice_size else 0


def backward_runs(layers: Sequence[RuntimeLayer], start: int, end: int) -> list[tuple[int, int]]:
    """Cut layers start..end (inclusive) into runs (first, last) of equal slices in forward."""
    runs: list[tuple[int, int]] = []
    for index in range(start, end + 1):
        parts = layers[index].parts
        if runs and parts and layers[runs[-1][1]].parts == parts:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return runs
