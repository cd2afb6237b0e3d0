"""Runs of layers: those that go through the batch slice by slice together, and the others alone.

Forward goes in slices where the user or a memory limit asks for it, and backward then goes the
same way. Other layers go back in slices where what they read is large: it is restored slice by
slice, and gradients are written in place, so that no second buffer of its size is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from caffe._core.layers import Layer
from caffe.buffers import Buffers
from caffe.gradients import Gradients
from caffe.kept_values import KeptValues
from caffe.runtime import BatchPart, RuntimeLayer, parts_of

#: Kept values larger than this are restored in slices of about this size, in bytes.
SLICE_BYTES = 8 * 2**20
#: About what a convolution's parts need beside the tensors, in bytes.
_WORKSPACE_BYTES = 32 * 2**20


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
    if batch and not _slices_pay(layers, buffers, start, last, slice_size / batch):
        return start, 0
    return last, batch


def _slices_pay(
    layers: Sequence[RuntimeLayer], buffers: Buffers, first: int, last: int, share: float
) -> bool:
    """Whether slices of that share of the batch make layers first..last need less at their peak.

    In slices, what enters and leaves the run is there as a whole all the time, beside a slice of
    what one layer reads and writes; else, what one layer reads and writes.
    """
    plan = buffers.plan
    crossing: set[int] = set()
    largest = 0
    for index in range(first, last + 1):
        node = layers[index].node
        bottoms = {buffers.root(value).index for value in node.bottoms}
        tops = {buffers.root(value).index for value in node.tops}
        written = set() if plan.forward[index].in_place else tops
        largest = max(largest, _bytes(buffers, bottoms | written))
        crossing |= {root for root in bottoms if buffers.graph.values[root].producer < first}
        crossing |= {root for root in tops if plan.last_reader[root] > last or root in plan.kept}
    return _bytes(buffers, crossing) + share * largest < largest


def _bytes(buffers: Buffers, roots: set[int]) -> int:
    return sum(4 * buffers.slots[root].count for root in roots)


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


@dataclass
class BackwardRun:
    """Layers first..last, whose backward goes through the batch together."""

    first: int
    last: int
    parts: list[BatchPart] = field(default_factory=list)  # none: the batch as a whole
    slices_gradients: bool = False  # gradients within the run are of a slice, too

    @property
    def layers(self) -> range:
        """The layers, in the order in which backward meets them."""
        return range(self.last, self.first - 1, -1)


class BackwardRuns:
    """Finds the runs of a backward pass, one after the other as it gets there."""

    def __init__(
        self,
        layers: Sequence[RuntimeLayer],
        buffers: Buffers,
        kept: KeptValues,
        gradients: Gradients,
    ) -> None:
        """Take note of what decides: what is in memory, and what was kept."""
        self._layers = layers
        self._buffers = buffers
        self._kept = kept
        self._gradients = gradients

    def enter(self, last: int, lowest: int) -> BackwardRun:
        """Return the run that backward enters at layer `last`; it ends at `lowest` or before."""
        parts = self._layers[last].parts
        if parts:
            first = last
            while first > lowest and self._layers[first - 1].parts == parts:
                first -= 1
            return BackwardRun(first, last, parts, slices_gradients=True)
        samples = self._samples(last)
        if not samples:
            return BackwardRun(last, last)
        first = last
        while first > lowest and self._writes_in_place(first) and self._writes_in_place(first - 1):
            follows = self._layers[first].node.bottoms[0].producer == first - 1
            # Behind one that needs sums the others would have to go back twice.
            below = 0 if self._layers[first].facts.traits.sums_first else self._samples(first - 1)
            if not follows or not below:
                break
            first, samples = first - 1, min(samples, below)
        if self._fits_whole(first, last):
            return BackwardRun(first, last)
        return BackwardRun(first, last, parts_of(self._batch(last), samples))

    def _fits_whole(self, first: int, last: int) -> bool:
        """Whether all that the run takes leaves the peak where forward had it: that is faster."""
        slots = self._buffers.slots
        values: set[int] = set()
        size = 0
        for index in range(first, last + 1):
            layer = self._layers[index]
            for root in self._kept.read_roots(layer):
                values.update(value.index for value in self._kept.on_the_way(root))
            if layer.propagation.bottoms[0] and not self._writes_in_place(index):
                size += 4 * slots[layer.node.bottoms[0].index].count
            if layer.layer.gradient_terms() > 0:
                size += _WORKSPACE_BYTES
        return size + sum(4 * slots[value].count for value in values) <= self._buffers.room()

    def _batch(self, index: int) -> int:
        shape = self._buffers.slots[self._layers[index].node.tops[0].index].shape
        return shape[0] if shape else 0

    def _writes_in_place(self, index: int) -> bool:
        return self._buffers.plan.backward[index].in_place

    def _samples(self, index: int) -> int:
        """Return how many samples at a time a layer that ran on the whole batch goes back with.

        0: the whole batch; slices would not give the same bits, or save nothing.
        """
        layer = self._layers[index]
        if not _goes_back_in_slices(layer) or self._buffers.plan.retains_all:
            return 0
        batch = self._batch(index)
        roots = self._kept.read_roots(layer)
        if not all(self._kept.comes_in_parts(root, batch) for root in roots):
            return 0
        values = [value for root in roots for value in self._kept.on_the_way(root)]
        size = max((4 * self._buffers.slots[value.index].count for value in values), default=0)
        if self._gradients.saves_a_buffer(layer):
            size = max(size, 4 * self._buffers.slots[layer.node.bottoms[0].index].count)
        exact = cast(Layer, layer.layer).exact_slice()
        samples = exact or max(1, batch * SLICE_BYTES // max(size, 1))
        return samples if size > SLICE_BYTES and samples < batch else 0


def _goes_back_in_slices(layer: RuntimeLayer) -> bool:
    """Whether a layer that ran on the whole batch has a backward pass that takes slices."""
    node, traits = layer.node, layer.facts.traits
    if not layer.facts.runs_backward or layer.parts or traits.alias:
        return False
    if len(node.bottoms) != 1 or len(node.tops) != 1:
        return False
    kept_whole = layer.layer.saved_bytes() > 0 and not traits.any_slices
    return traits.sums_first or (traits.slices and not kept_whole)
