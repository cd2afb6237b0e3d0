"""Where the gradients of values go in backward: buffers of the batch or of a slice of it.

A gradient is written over another one that nobody reads again, or added to what another reader of
the same value has given, where that saves a buffer. Knows the plan and which slice of the batch is
being worked on; what layers compute is not its affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caffe._core import MemoryKind, Tensor
from caffe.buffers import Buffers
from caffe.graph import Value
from caffe.runtime import RuntimeLayer, count_of

_NOTHING = Tensor()


@dataclass
class _Settlement:
    """A slice's gradient that is brought to its place once the layer is through."""

    gradient: Tensor
    place: Tensor
    adds: bool


class Gradients:
    """Gives each layer the gradients of its tops, and places for those of its bottoms."""

    def __init__(self, buffers: Buffers) -> None:
        """Start without gradients."""
        self._buffers = buffers
        self._joined: set[int] = set()  # values whose gradient is in that of the top before
        self._settlements: list[_Settlement] = []

    def of_tops(self, layer: RuntimeLayer) -> list[Tensor]:
        """Return what is being worked on of the tops' gradients, zeros where nobody gave one.

        What is part of another top's is left out.
        """
        buffers = self._buffers
        tensors = []
        for value in layer.node.tops:
            slot = buffers.slots[value.index]
            if value.index in self._joined:
                continue
            if slot.diff is None:
                buffers.zero_diff(value)
            assert slot.diff is not None
            tensors.append(buffers.view(slot.diff, slot.diff_part, slot.shape))
        return tensors

    def for_bottoms(self, layer: RuntimeLayer, lowest: int | None) -> list[Tensor]:
        """Return where a layer is to write its bottoms' gradients; settle() them afterwards.

        Args:
            layer: the layer.
            lowest: gradients of what layers below this one made are of the whole batch, the others
                of what is being worked on; None: all are of the whole batch.
        """
        buffers, node = self._buffers, layer.node
        tensors = []
        for position, value in enumerate(node.bottoms):
            slot = buffers.slots[value.index]
            if not layer.propagation.bottoms[position]:
                tensors.append(_NOTHING)
                continue
            part = buffers.part
            below = lowest is None or value.producer < lowest
            whole = part is None or below or buffers.is_kept(value)
            shared = position == 0 and self._may_share(layer)
            if not shared and lowest is None and part is not None and self._has_place(layer, value):
                tensors.append(self._aside(layer, value))
                continue
            if not (shared and self._share(value, node.tops, whole)):
                buffers.new_diff(value, whole)
            assert slot.diff is not None
            tensors.append(buffers.view(slot.diff, slot.diff_part, slot.shape))
        return tensors

    def settle(self) -> None:
        """Bring what a layer wrote aside to its place."""
        for settlement in self._settlements:
            if settlement.adds:
                settlement.place.add(settlement.gradient)
            else:
                settlement.place.copy_from(settlement.gradient)
        self._settlements.clear()

    def saves_a_buffer(self, layer: RuntimeLayer) -> bool:
        """Whether slices of a layer's only bottom gradient find a place in another gradient."""
        node = layer.node
        if len(node.bottoms) != 1 or not layer.propagation.bottoms[0] or self._may_share(layer):
            return False
        return self._has_place(layer, node.bottoms[0])

    def release(self, layer: RuntimeLayer, ends: bool) -> None:
        """Let go of the tops' gradients; `ends`: with this slice, or the whole, the batch ends."""
        for value in layer.node.tops:
            slot = self._buffers.slots[value.index]
            if (ends or slot.diff_part is not None) and not self._buffers.is_kept(value):
                slot.diff = slot.diff_part = None
            if ends:
                self._joined.discard(value.index)

    def clear(self) -> None:
        """Forget what a pass that did not come to its end left."""
        self._joined.clear()
        self._settlements.clear()

    # -- one buffer for two gradients --------------------------------------------------------------

    def _may_share(self, layer: RuntimeLayer) -> bool:
        view = layer.facts.traits.alias and len(layer.node.tops) == 1
        return view or self._buffers.plan.backward[layer.node.index].in_place

    def _share(self, bottom: Value, tops: Sequence[Value], whole: bool) -> bool:
        """Let the gradient of `bottom` be that of the first top, where the two fit together."""
        buffers = self._buffers
        slot, top = buffers.slots[bottom.index], buffers.slots[tops[0].index]
        assert top.diff is not None
        if count_of(slot.shape) != count_of(top.shape):
            return False
        if whole:
            if top.diff_part is not None:
                return False
            slot.diff, slot.diff_part = top.diff.reshaped(slot.shape), None
            return True
        view = buffers.view(top.diff, top.diff_part, top.shape)
        slot.diff, slot.diff_part = view.reshaped(buffers.shape(bottom)), buffers.part
        return True

    def _has_place(self, layer: RuntimeLayer, bottom: Value) -> bool:
        return self._next_reader(bottom) is not None or self._fits_top(layer, bottom)

    def _next_reader(self, value: Value) -> Value | None:
        """Return the top after `value` of a Split, if its gradient is that of all behind it."""
        buffers = self._buffers
        tops = buffers.graph.nodes[value.producer].tops
        following = tops[value.top + 1 :]
        shares = all(buffers.root(top) is buffers.root(value) for top in tops)
        if not following or not shares or any(map(buffers.is_kept, tops)):
            return None
        if following[0].index in self._joined:  # by a slice before this one
            return following[0]
        slot = buffers.slots[following[0].index]
        own = buffers.slots[value.index].diff
        if slot.diff is None or slot.diff_part is not None or own is not None:
            return None
        if self._is_kept(slot.diff):
            return None
        behind = all(top.index in self._joined for top in following[1:])
        return following[0] if behind else None

    def _fits_top(self, layer: RuntimeLayer, bottom: Value) -> bool:
        """Whether slices of the bottom's gradient may follow those of the top that are through."""
        buffers, tops = self._buffers, layer.node.tops
        slot, top = buffers.slots[bottom.index], buffers.slots[tops[0].index]
        if len(tops) != 1 or top.diff is None or top.diff_part is not None:
            return False
        fits = slot.shape[:1] == top.shape[:1] and count_of(slot.shape) == count_of(top.shape)
        return fits and not self._is_kept(top.diff)

    def _is_kept(self, gradient: Tensor) -> bool:
        """Whether a buffer is that of a value whose gradient stays readable."""
        buffers = self._buffers
        stay = [value for value in buffers.graph.values if buffers.is_kept(value)]
        diffs = [buffers.slots[value.index].diff for value in stay]
        return any(diff is not None and diff.shares_buffer(gradient) for diff in diffs)

    def _aside(self, layer: RuntimeLayer, bottom: Value) -> Tensor:
        """Return a buffer for a slice whose gradient settle() brings to its place."""
        buffers = self._buffers
        slot = buffers.slots[bottom.index]
        following = self._next_reader(bottom)
        if following is None:
            top = buffers.slots[layer.node.tops[0].index]
            assert top.diff is not None
            slot.diff, slot.diff_part = top.diff.reshaped(slot.shape), None
        elif following.index not in self._joined:
            other = buffers.slots[following.index]
            assert other.diff is not None
            slot.diff, slot.diff_part = other.diff.reshaped(slot.shape), None
            other.diff = None
            self._joined.add(following.index)
        assert slot.diff is not None
        gradient = buffers.allocate(buffers.shape(bottom), MemoryKind.GRADIENTS)
        place = buffers.view(slot.diff, slot.diff_part, slot.shape)
        self._settlements.append(_Settlement(gradient, place, following is not None))
        return gradient
