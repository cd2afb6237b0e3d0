"""The buffers of a net's values: made, found, viewed under their shapes, let go.

Knows the plan and which slice of the batch is being worked on, not what layers do with the buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from caffe._core import Error, MemoryKind, Tensor, memory
from caffe.graph import Graph, Value
from caffe.memory_plan import MemoryPlan
from caffe.runtime import BatchPart, Slot


class Buffers:
    """Data and gradients of every value of a graph."""

    plan: MemoryPlan

    def __init__(self, graph: Graph) -> None:
        """Start without buffers and without a plan; set `plan` first."""
        self.graph = graph
        self.slots = [Slot() for _ in graph.values]
        self.part: BatchPart | None = None  # the slice that is being worked on

    # -- values ----------------------------------------------------------------------------------

    def data(self, value: Value) -> Tensor:
        """Return the values of `value`, under its own shape; caffe.Error once they are released."""
        root = self.root(value)
        slot = self.slots[root.index]
        if slot.data is None:
            if not (self.plan.retains_all or self.is_kept(value)):
                raise Error(
                    f"blob '{value.name}' is not in memory any more: under compression a blob is "
                    f"released after its last use; to keep it readable, add "
                    f'compression_param {{ keep: "{value.name}" }} to the solver'
                )
            slot.data = self._first_buffer(root)
        return self.view(slot.data, slot.data_part, self.slots[value.index].shape)

    def view(self, tensor: Tensor, held: BatchPart | None, shape: Sequence[int]) -> Tensor:
        """Return what is being worked on of a buffer that holds all, or part `held`, of a value."""
        if held is not None:
            return tensor.reshaped(held.shape_of(shape))
        whole = tensor.reshaped(shape)
        return whole if self.part is None else whole.slice(self.part.begin, self.part.end)

    def shape(self, value: Value) -> tuple[int, ...]:
        """Return the shape of what is being worked on."""
        shape = self.slots[value.index].shape
        return shape if self.part is None else self.part.shape_of(shape)

    def new_top(self, value: Value, whole: bool) -> None:
        """Give a value that a layer is about to write its buffer, unless it has one that stays."""
        slot = self.slots[value.index]
        if slot.data is not None and slot.data_part is None:
            stays = self.plan.retains_all or self.is_kept(value)
            if stays or (whole and self.part is not None and not self.part.is_first):
                return
        slot.data_part = None if whole else self.part
        shape = slot.shape if whole else self.shape(value)
        slot.data = self.allocate(shape, self._data_kind(value))
        if self.graph.nodes[value.producer].type == "Input":  # nobody writes it until the user does
            slot.data.zero()

    def drop_data(self, root: Value) -> None:
        """Let go of a value's buffer; what Python still looks at counts as Python's then."""
        slot = self.slots[root.index]
        if slot.data is not None and slot.data.pinned:
            slot.data.set_kind(MemoryKind.HELD_BY_PYTHON)
        slot.data = slot.data_part = None

    def _first_buffer(self, root: Value) -> Tensor:
        """Zeros for a value that no pass has written yet, where forward will write it."""
        node = self.graph.nodes[root.producer]
        shape = self.slots[root.index].shape
        if self.plan.retains_all and root.top == 0 and self.plan.forward[node.index].in_place:
            return self.data(node.bottoms[0]).reshaped(list(shape))
        tensor = self.allocate(shape, self._data_kind(root))
        tensor.zero()
        return tensor

    # -- gradients -------------------------------------------------------------------------------

    def diff(self, value: Value) -> Tensor:
        """Return the gradient of `value`, zeros where none was computed yet."""
        slot = self.slots[value.index]
        if slot.diff is None:
            if not self.plan.retains_all and not self.is_kept(value):
                raise Error(
                    f"the gradient of blob '{value.name}' is not in memory: under compression "
                    f"gradients of blobs are released once used; to keep it readable, add "
                    f'compression_param {{ keep: "{value.name}" }} to the solver'
                )
            self.zero_diff(value)
            assert slot.diff is not None
        return self.view(slot.diff, slot.diff_part, slot.shape)

    def zero_diff(self, value: Value) -> None:
        """Make the gradient of `value`, of what is being worked on, zeros."""
        self.new_diff(value, whole=self.part is None)
        tensor = self.slots[value.index].diff
        assert tensor is not None
        tensor.zero()

    def new_diff(self, value: Value, whole: bool) -> None:
        """Give a value a buffer for its gradient, unless it has the one of the whole batch."""
        slot = self.slots[value.index]
        if slot.diff is not None and slot.diff_part is None:
            later = self.part is not None and not self.part.is_first
            if self.plan.retains_all or (whole and later):
                return
        slot.diff_part = None if whole else self.part
        shape = slot.shape if whole else self.shape(value)
        slot.diff = self.allocate(shape, MemoryKind.GRADIENTS)

    # -- the whole -------------------------------------------------------------------------------

    def allocate(self, shape: Sequence[int], kind: MemoryKind) -> Tensor:
        """Return a new buffer."""
        return Tensor(shape, kind)

    def start_pass(self) -> None:
        """Say that a forward pass begins, and a backward pass may follow."""
        memory.start_pass()

    def room(self) -> int:
        """Return how many bytes may be taken without needing more than the pass did so far."""
        return memory.room()

    def release_all(self) -> None:
        """Let go of every buffer that is not the user's to fill."""
        for slot, value in zip(self.slots, self.graph.values):
            if self.graph.nodes[value.producer].type != "Input":
                self.drop_data(value)
            slot.diff = slot.diff_part = None
            slot.stored.clear()

    def set_shape(self, value: Value, shape: Sequence[int]) -> None:
        """Give a value a shape; buffers of another size are let go."""
        slot = self.slots[value.index]
        new_shape = tuple(int(size) for size in shape)
        if new_shape == slot.shape:
            return
        slot.shape = new_shape
        slot.data = slot.diff = slot.data_part = slot.diff_part = None
        slot.expected_bytes = 0

    def root(self, value: Value) -> Value:
        """Return the value whose buffer this one shares."""
        return self.plan.roots[value.index]

    def is_kept(self, value: Value) -> bool:
        """Whether the value stays readable."""
        return self.root(value).index in self.plan.kept

    def _data_kind(self, value: Value) -> MemoryKind:
        source = not self.graph.nodes[value.producer].bottoms
        return MemoryKind.DATA if source else MemoryKind.RAW_ACTIVATIONS
