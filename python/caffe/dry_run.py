"""A pass through a net that does nothing but count memory: the executor's steps on hollow tensors.

What is alive when is the executor's own doing, run as it is on tensors without contents;
figures hold for any plan, in slices or not. Only sizes are guessed: what compressed values take
(recomputation.expected_bytes) and the workspace of convolutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from caffe._core import MemoryKind, Tensor, sz
from caffe._core.layers import ForwardContext, Layer, Needs, Propagation, Traits
from caffe._core.store import Form, StoredActivation
from caffe.buffers import Buffers
from caffe.executor import Executor
from caffe.graph import Graph, Node, Value
from caffe.kept_values import KeptValues
from caffe.layer_types.base import LayerLike
from caffe.memory_plan import MemoryPlan, SavedValue
from caffe.recomputation import Level, Way, expected_bytes, sparse_roots
from caffe.runtime import RuntimeLayer, Slot, count_of

#: caffe/layers/convolution_maps.cpp: the larger side of a part of a batch, at most, in bytes.
_PART_BYTES = 16 * 2**20
_IMAGE_CHANNELS = 3


class Meter:
    """Live and peak bytes, and the layer at which the peak was."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.live = 0
        self.peak = 0  # of the one pass that it counts
        self.layer = ""
        self.peak_layer = ""

    def add(self, size: int) -> None:
        """Count bytes that come, or go."""
        self.live += size
        if self.live > self.peak:
            self.peak, self.peak_layer = self.live, self.layer


class _Block:
    """Memory that counts as long as anybody refers to it."""

    def __init__(self, meter: Meter, size: int) -> None:
        self.size = size
        self._meter = meter
        meter.add(size)

    def __del__(self) -> None:
        self._meter.add(-self.size)


class HollowTensor:
    """A tensor with a shape and a share of a block, without contents."""

    pinned = False
    is_mask = False
    defined = True

    def __init__(self, shape: Sequence[int], block: _Block) -> None:
        """View `block` under this shape."""
        self.shape = tuple(shape)
        self.count = count_of(shape)
        self.bytes = 4 * self.count
        self.block = block

    def reshaped(self, shape: Sequence[int]) -> HollowTensor:
        """Return the same under another shape."""
        return HollowTensor(shape, self.block)

    def slice(self, begin: int, end: int) -> HollowTensor:
        """Return elements [begin, end) of axis 0."""
        return HollowTensor((end - begin, *self.shape[1:]), self.block)

    def shares_buffer(self, other: HollowTensor) -> bool:
        """Whether both view one block."""
        return self.block is other.block

    def zero(self) -> None:
        """Do nothing."""

    def copy_from(self, other: HollowTensor) -> None:
        """Do nothing."""

    def add(self, other: HollowTensor) -> None:
        """Do nothing."""

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return some values, of a loss."""
        return np.empty(self.shape, np.float32)


class _HollowStored:
    """What stands for a stored activation."""

    def __init__(self, form: Form, raw_bytes: int, stored_bytes: int, held: object) -> None:
        self.form = form
        self.raw_bytes = raw_bytes
        self.stored_bytes = stored_bytes
        self.held = held


class _DryBuffers(Buffers):
    def __init__(self, graph: Graph, meter: Meter) -> None:
        super().__init__(graph)
        self.meter = meter

    def start_pass(self) -> None:
        pass

    def room(self) -> int:
        return self.meter.peak - self.meter.live

    def allocate(self, shape: Sequence[int], kind: MemoryKind) -> Tensor:
        return cast(Tensor, HollowTensor(shape, _Block(self.meter, 4 * count_of(shape))))


class _DryKept(KeptValues):
    """Keeps the expected bytes."""

    def __init__(self, buffers: _DryBuffers, layers: Sequence[RuntimeLayer]) -> None:
        super().__init__(buffers, layers, None, 0)
        self._dry = buffers
        self._sparse: set[int] = set()

    def _store(
        self, saved: SavedValue, slot: Slot, tensor: Tensor, pass_number: int
    ) -> tuple[StoredActivation, float]:
        buffers = self._dry
        if not self._sparse:
            self._sparse = sparse_roots(buffers.graph, buffers.plan.roots)
        size, held = tensor.bytes, cast(object, tensor)
        if saved.form != Form.RAW:
            level = Level.SIGN if saved.form == Form.SIGN else saved.level
            size = expected_bytes(level, tensor.count, saved.value.index in self._sparse)
            held = _Block(buffers.meter, size)
        stored = _HollowStored(saved.form, tensor.bytes, size, held)
        return cast(StoredActivation, stored), 0.0

    def error_factor(self, step: tuple[int, Way]) -> float:
        return 1.0

    def _restored(self, root: Value) -> Tensor:
        buffers = self._dry
        for stored in buffers.slots[root.index].stored:
            activation = cast(_HollowStored, stored.activation)
            if stored.part == buffers.part and activation.form == Form.RAW:
                return cast(Tensor, activation.held)
        return buffers.allocate(buffers.shape(root), MemoryKind.RAW_ACTIVATIONS)


class _DryLayer:
    """Answers for a layer without doing its arithmetic."""

    def __init__(self, layer: LayerLike, node: Node, meter: Meter, slots: Sequence[Any]) -> None:
        self._layer = layer
        self._node = node
        self._meter = meter
        self._slots = slots
        self._own: list[_Block] = []
        self.parameters = layer.parameters

    def reshape(self, bottoms: Sequence[Sequence[int]]) -> list[list[int]]:
        return [list(self._slots[value.index].shape) for value in self._node.tops]

    def needs(self, propagation: Propagation) -> Needs:
        return self._layer.needs(propagation)

    def traits(self) -> Traits:
        return self._layer.traits()

    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None:
        if context.slice.index == 0:
            self._own.clear()
        self._use_workspace(src, dst)
        if context.save_for_backward:
            size = self._own_bytes(dst)
            if size:
                self._own.append(_Block(self._meter, size))

    def add_up(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        propagation: Propagation,
        part: object,
    ) -> None:
        pass

    def rerun(self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext) -> None:
        pass

    def invert(self, dst: Tensor, src: Tensor, part: object) -> None:
        pass

    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: Propagation,
        part: object = None,
    ) -> None:
        self._use_workspace(src, diff_dst)

    def gradient_terms(self) -> int:
        return self._layer.gradient_terms()

    def exact_slice(self) -> int:
        return cast(Layer, self._layer).exact_slice()

    def saved_bytes(self) -> int:
        return sum(block.size for block in self._own)

    def drop_saved(self) -> None:
        self._own.clear()

    def _own_bytes(self, tops: Sequence[Tensor]) -> int:
        """Return what the layer keeps for backward itself."""
        param, kind = self._node.param, self._node.type
        if kind == "Pooling" and param.pooling_param.pool != param.pooling_param.AVE:
            kernel = param.pooling_param
            window = (kernel.kernel_h or kernel.kernel_size) * (
                kernel.kernel_w or kernel.kernel_size
            )
            return tops[0].count * max(1, (max(window, 2) - 1).bit_length()) // 8
        if kind == "SoftmaxWithLoss":
            return 4 * count_of(self._slots[self._node.bottoms[0].index].shape)
        if kind == "BatchNorm":
            return 8 * tops[0].shape[1] if len(tops[0].shape) > 1 else 8
        return 0

    def _use_workspace(self, src: Sequence[Tensor], dst: Sequence[Tensor]) -> None:
        """Count the copies of a convolution's parts in oneDNN's layouts, for a moment."""
        if self._node.type not in ("Convolution", "Deconvolution"):
            return
        bottom, top = self._node.bottoms[0], self._node.tops[0]
        shapes = [self._slots[value.index].shape for value in (bottom, top)]
        batch = next((tensor.shape[0] for tensor in [*dst, *src] if tensor.count), shapes[0][0])
        samples = [4 * count_of(shape[1:]) for shape in shapes]
        part = max(1, min(batch, _PART_BYTES // max(*samples, 1)))
        weights = 4 * count_of(self.parameters[0].data.shape)
        blocked = [4 * _blocked(shape[1]) * count_of(shape[2:]) for shape in shapes]
        size = part * sum(blocked) + weights
        self._meter.add(size)
        self._meter.add(-size)


def _blocked(channels: int) -> int:
    """Return the channels in oneDNN's layouts, in blocks as wide as vectors; images have none."""
    block = 16 if sz.supported("avx512") else 8
    return channels if channels == _IMAGE_CHANNELS else -(-channels // block) * block


class DryExecutor(Executor):
    """An executor of hollow tensors, for a net whose layers are set up."""

    def __init__(self, executor: Executor, plan: MemoryPlan, slice_size: int) -> None:
        """Stand beside `executor`, with another plan and size of slices."""
        self.meter = Meter()
        buffers = _DryBuffers(executor.graph, self.meter)
        layers = [
            RuntimeLayer(
                real.node,
                cast(LayerLike, _DryLayer(real.layer, real.node, self.meter, executor.slots)),
                real.facts,
                real.propagation,
                0,
                list(real.bottom_shapes),
            )
            for real in executor.layers
        ]
        super().__init__(
            executor.graph,
            layers,
            train=executor.train,
            saves=executor.saves,
            buffers=buffers,
            kept=_DryKept(buffers, layers),
        )
        for slot, real_slot in zip(self.slots, executor.slots):
            slot.shape = real_slot.shape
        self.plan = plan
        self.slice_size = slice_size

    def set_scope(self, layer: str) -> None:
        """Let the peak be that layer's."""
        self.meter.layer = layer

    def run(self) -> None:
        """Go forward, and backward where the net learns."""
        last = len(self.graph.nodes) - 1
        self.forward(0, last)
        if self.saves:
            self.seed_losses()
            self.backward(last, 0)
