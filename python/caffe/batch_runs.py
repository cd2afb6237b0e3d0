"""Runs of layers: those that go through the batch slice by slice together, and the others alone."""

from __future__ import annotations

from collections.abc import Sequence

from caffe.buffers import Buffers
from caffe.runtime import RuntimeLayer


def forward_runs(
    layers: Sequence[RuntimeLayer], buffers: Buffers, slice_size: int, start: int, end: int
) -> list[tuple[int, int, int]]:
    """Cut layers start..end (inclusive) into runs (first, last, batch); batch 0: not in slices.

    Args:
        layers: all layers.
        buffers: with the shapes of all values.
        slice_size: samples of a slice; 0: no slices.
        start: first layer.
        end: last layer.
    """
    runs: list[tuple[int, int, int]] = []
    for index in range(start, end + 1):
        batch = _batch_to_slice(layers[index], buffers, slice_size)
        if runs and batch and runs[-1][2] == batch:
            runs[-1] = (runs[-1][0], index, batch)
        else:
            runs.append((index, index, batch))
    return runs


def _batch_to_slice(layer: RuntimeLayer, buffers: Buffers, slice_size: int) -> int:
    """Return the batch of a layer that can go slice by slice and is to; else 0."""
    node = layer.node
    if not slice_size or buffers.plan.retains_all or not node.bottoms:
        return 0
    if not layer.facts.traits.slices or any(node.loss_weights):
        return 0
    shapes = [buffers.slots[value.index].shape for value in [*node.bottoms, *node.tops]]
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
