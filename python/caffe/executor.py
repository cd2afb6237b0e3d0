"""Runs the layers of a net and carries out its memory plan, the batch whole or slice by slice.

Runs of layers that take slices go through all of them for one slice after the other; what crosses
the ends of a run is whole. Names, prototxt and the pycaffe API are net.py's; bounds are
error_bound.py's; what is kept how is memory_plan.py's choice and kept_values.py's work.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import cast

from caffe._core import Error, Tensor, memory
from caffe._core.layers import BatchSlice, ForwardContext, Layer, Quality
from caffe.batch_runs import backward_runs, forward_run
from caffe.buffers import Buffers
from caffe.debug_info import DebugInfo
from caffe.graph import Graph, Value
from caffe.kept_values import KeptValues
from caffe.layer_errors import LayerErrors
from caffe.layer_types.builtin import BuiltInRunner
from caffe.memory_plan import ForwardStep, MemoryPlan
from caffe.recomputation import Way
from caffe.runtime import (
    BatchPart,
    BoundSource,
    Hooks,
    RuntimeLayer,
    Slot,
    StoredReport,
    check_shape,
    count_of,
    parts_of,
)

_NOTHING = Tensor()

#: A kept input of a convolution larger than this is restored in slices of about this size, bytes.
_SLICE_BYTES = 16 * 2**20


class Executor:
    """Forward and backward over a graph."""

    def __init__(
        self,
        graph: Graph,
        layers: list[RuntimeLayer],
        *,
        train: bool,
        saves: bool,
        seed: int = 0,
        bounds: BoundSource | None = None,
        buffers: Buffers | None = None,
        kept: KeptValues | None = None,
    ) -> None:
        """Start without buffers and without a plan; set `plan` before running."""
        self.graph = graph
        self.layers = layers
        self.train = train
        self.saves = saves
        self.bounds = bounds
        self.buffers = buffers or Buffers(graph)
        self.kept = kept or KeptValues(self.buffers, layers, bounds, seed)
        self.slice_size = 0  # samples of a slice; 0: the whole batch at once
        self.forward_count = 0  # training passes, which number the random draws
        self.hooks = Hooks()
        self.debug: DebugInfo | None = None  # told what each layer writes
        self.own_bytes = 0  # what layers themselves kept in the last forward pass
        self._went_back: set[int] = set()  # layers whose backward pass followed the last forward
        self._held: set[int] = set()  # root values that the pass under way does not release

    # -- what others ask -------------------------------------------------------------------------

    @property
    def plan(self) -> MemoryPlan:
        """The memory plan in force."""
        return self.buffers.plan

    @plan.setter
    def plan(self, plan: MemoryPlan) -> None:
        self.buffers.plan = plan

    def plan_digest(self) -> str:
        """Return a hash of what makes results differ in their last bits: plan and slices."""
        return self.plan.digest(self.slice_size)

    @property
    def slots(self) -> list[Slot]:
        """The buffers of each value."""
        return self.buffers.slots

    @property
    def reports(self) -> dict[int, StoredReport]:
        """By root index: what keeping it cost in the last forward pass."""
        return self.kept.reports

    @property
    def counts_values(self) -> bool:
        """Whether compressing takes statistics, which costs time."""
        return self.kept.counts_values

    @counts_values.setter
    def counts_values(self, wanted: bool) -> None:
        self.kept.counts_values = wanted

    @property
    def seed(self) -> int:
        """What the dither follows from."""
        return self.kept.seed

    @seed.setter
    def seed(self, seed: int) -> None:
        self.kept.seed = seed

    def error_factor(self, step: tuple[int, Way]) -> float:
        """Return what multiplies an error on its way through a step of a recipe, as of now."""
        return self.kept.error_factor(step)

    def data(self, value: Value) -> Tensor:
        """Return the values of `value`, under its own shape; caffe.Error once they are released."""
        return self.buffers.data(value)

    def diff(self, value: Value) -> Tensor:
        """Return the gradient of `value`, zeros where none was computed yet."""
        return self.buffers.diff(value)

    def set_shape(self, value: Value, shape: Sequence[int]) -> None:
        """Give a value a shape; buffers of another size are let go."""
        self.buffers.set_shape(value, shape)

    def set_scope(self, layer: str) -> None:
        """Let memory that is allocated from now on count as that layer's."""
        memory.set_scope(layer)

    def release_all(self) -> None:
        """Let go of every buffer that is not the user's to fill, and of what layers keep."""
        self.buffers.release_all()
        for layer in self.layers:
            layer.layer.drop_saved()

    # -- forward ---------------------------------------------------------------------------------

    def reshape(self, index: int) -> None:
        """Bring the shapes of a layer's tops up to date with its bottoms."""
        layer = self.layers[index]
        shapes = [self.slots[value.index].shape for value in layer.node.bottoms]
        is_source = not layer.node.bottoms
        if shapes == layer.bottom_shapes and not (layer.always_reshape or is_source):
            return
        with LayerErrors(layer.node, users_code=True):
            tops = layer.layer.reshape(shapes)
        with LayerErrors(layer.node):
            if len(tops) != len(layer.node.tops):
                raise ValueError(f"has {len(layer.node.tops)} tops, makes {len(tops)}")
            for value, shape in zip(layer.node.tops, tops):
                check_shape(value.name, shape)
                self.set_shape(value, shape)
        layer.bottom_shapes = shapes

    def forward(self, start: int, end: int, hold: Iterable[Value] = ()) -> list[float]:
        """Run layers start..end (inclusive); returns the milliseconds that each took.

        The values in `hold` are not released in this pass.
        """
        self._held = {self.buffers.root(value).index for value in hold}
        if self.train and self.saves:
            self.forward_count += 1
        self.reports.clear()
        self._went_back.clear()
        self.own_bytes = 0
        times: list[float] = []
        slices = 0 if self.debug else self.slice_size
        index = start
        while index <= end:
            last, batch = forward_run(self.layers, self.buffers, slices, index, end, self.reshape)
            if batch:
                times += self._forward_slices(index, last, batch)
            else:
                times.append(self._forward_layer(index))
            index = last + 1
        return times

    def _forward_layer(self, index: int) -> float:
        layer = self.layers[index]
        layer.parts = []
        for hook in self.hooks.before_forward:
            hook(index)
        self.set_scope(layer.node.name)
        self.reshape(index)
        with LayerErrors(layer.node):
            self._reshape_to_data(layer)
            took = self._run_forward(layer, self.plan.forward[index], index)
        self.own_bytes += layer.layer.saved_bytes()
        for hook in self.hooks.after_forward:
            hook(index)
        return took

    def _forward_slices(self, first: int, last: int, batch: int) -> list[float]:
        """Run layers first..last for one slice after the other."""
        indices = range(first, last + 1)
        for index in indices:
            for hook in self.hooks.before_forward:
                hook(index)
            self.reshape(index)
            self.layers[index].parts = []
        times = [0.0] * len(indices)
        for part in parts_of(batch, self.slice_size):
            self.buffers.part = part
            try:
                for index in indices:
                    layer = self.layers[index]
                    self.set_scope(layer.node.name)
                    layer.parts.append(part)
                    with LayerErrors(layer.node):
                        times[index - first] += self._run_forward(
                            layer, self.plan.forward[index], last
                        )
                self._drop_parts(first, last)
            finally:
                self.buffers.part = None
        for index in indices:
            self.own_bytes += self.layers[index].layer.saved_bytes()
            for hook in self.hooks.after_forward:
                hook(index)
        return times

    def _reshape_to_data(self, layer: RuntimeLayer) -> None:
        """Give the tops the shapes that follow from the bottoms' values, if the layer says so."""
        runner = layer.layer
        if not (isinstance(runner, BuiltInRunner) and runner.layer.shaped_by_data):
            return
        shapes = runner.shapes_by_data([self.data(value) for value in layer.node.bottoms])
        for value, shape in zip(layer.node.tops, shapes):
            self.set_shape(value, shape)

    def _run_forward(self, layer: RuntimeLayer, step: ForwardStep, last: int) -> float:
        """Run one layer on what is being worked on; `last` is the last layer of its run."""
        node, part = layer.node, self.buffers.part
        src = [self.data(value) for value in node.bottoms]
        passes = self.forward_count
        for root in step.save_before:
            self.kept.save(root, passes)
        held = bool(node.bottoms) and self.buffers.root(node.bottoms[0]).index in self._held
        dst = self._tops(layer, src, step.in_place and not held, last)
        layer.context = ForwardContext(
            train=self.train,
            save_for_backward=self.saves and layer.facts.runs_backward,
            random_key=layer.random_key,
            forward_count=max(passes - 1, 0),
            inverts=step.inverts,
            slice=part.core if part else BatchSlice(),
        )
        began = time.perf_counter()
        if not layer.facts.traits.alias:
            with LayerErrors(node, users_code=True):
                layer.layer.forward(src, dst, layer.context)
        took = time.perf_counter() - began
        if self.debug:
            self.debug.forward(layer, [self.data(value) for value in node.tops])
        del src, dst
        for root in step.save_after:
            self.kept.save(root, passes)
        for root in step.release:
            held_whole = self.slots[root.index].data_part is None
            if root.index not in self._held and (not held_whole or part is None or part.is_last):
                self.buffers.drop_data(root)
        return took * 1e3

    def _tops(
        self, layer: RuntimeLayer, src: list[Tensor], in_place: bool, last: int
    ) -> list[Tensor]:
        if layer.facts.traits.alias:
            return []
        buffers = self.buffers
        for position, value in enumerate(layer.node.tops):
            slot = self.slots[value.index]
            whole = buffers.part is None or self._leaves(value, last)
            if position == 0 and in_place:
                bottom = self.slots[buffers.root(layer.node.bottoms[0]).index]
                if not whole:
                    slot.data = src[0].reshaped(buffers.shape(value))
                    slot.data_part = buffers.part
                    continue
                if bottom.data is not None and bottom.data_part is None:
                    slot.data, slot.data_part = bottom.data.reshaped(slot.shape), None
                    continue
            buffers.new_top(value, whole)
        return [self.data(value) for value in layer.node.tops]

    def _leaves(self, value: Value, last: int) -> bool:
        """Whether a value is wanted beyond layer `last`, or by the user."""
        root = self.buffers.root(value)
        return (
            self.plan.last_reader[root.index] > last
            or self.buffers.is_kept(value)
            or root.index in self._held
        )

    def _drop_parts(self, first: int, last: int) -> None:
        """Let go of what belongs to one slice alone."""
        for index in range(first, last + 1):
            node = self.layers[index].node
            for value in [*node.bottoms, *node.tops]:
                slot = self.slots[value.index]
                root = self.buffers.root(value)
                if self.slots[root.index].data_part is not None:
                    self.buffers.drop_data(root)
                if slot.diff_part is not None:
                    slot.diff = slot.diff_part = None

    # -- backward --------------------------------------------------------------------------------

    def seed_losses(self) -> None:
        """Set the gradient of each loss top to its weight."""
        for node in self.graph.nodes:
            for value, weight in zip(node.tops, node.loss_weights):
                if weight:
                    if self.slots[value.index].diff is None:
                        self.buffers.new_diff(value, whole=True)
                    tensor = self.slots[value.index].diff
                    assert tensor is not None
                    tensor.numpy().fill(weight)

    def backward(self, start: int, end: int) -> list[tuple[int, float]]:
        """Run layers start..end (start >= end, inclusive) that have a backward pass.

        Returns (layer, milliseconds) of each.
        """
        times: list[tuple[int, float]] = []
        for first, last in reversed(backward_runs(self.layers, end, start)):
            parts = self.layers[last].parts
            for index in range(last, first - 1, -1):
                for hook in self.hooks.before_backward:
                    hook(index)
            took = self._backward_run(first, last, parts)
            times += [
                (index, took[index])
                for index in range(last, first - 1, -1)
                if self.layers[index].facts.runs_backward
            ]
            for index in range(last, first - 1, -1):
                for hook in self.hooks.after_backward:
                    hook(index)
        return times

    def _backward_run(self, first: int, last: int, parts: Sequence[BatchPart]) -> dict[int, float]:
        took = dict.fromkeys(range(first, last + 1), 0.0)
        layer = self.layers[first]
        if not parts and first == last and layer.facts.runs_backward:
            parts = self._input_parts(layer)
        turns: Sequence[BatchPart | None] = parts or [None]
        for part in turns:
            self.buffers.part = part
            try:
                for index in range(last, first - 1, -1):
                    layer = self.layers[index]
                    if not layer.facts.runs_backward:
                        continue
                    self.set_scope(layer.node.name)
                    with LayerErrors(layer.node):
                        took[index] += self._run_backward(layer, first)
                if part is not None:
                    self._drop_parts(first, last)
            finally:
                self.buffers.part = None
        return took

    def _input_parts(self, layer: RuntimeLayer) -> list[BatchPart]:
        """Slices in which a layer that keeps nothing itself has its large input restored; or none.

        Then the whole of it is never in memory beside the gradients.
        """
        node, facts = layer.node, layer.facts
        if not facts.traits.slices or self.plan.retains_all or len(node.bottoms) != 1:
            return []
        if facts.needs.bottoms[0].quality not in (Quality.BOUNDED, Quality.BOUNDED_SIGN):
            return []
        if facts.needs.tops[0].quality != Quality.NOTHING or layer.layer.gradient_terms() == 0:
            return []
        slot = self.slots[node.bottoms[0].index]
        size = 4 * slot.count
        batch, root = slot.shape[0], self.buffers.root(node.bottoms[0])
        if size <= _SLICE_BYTES or not self.kept.comes_in_parts(root, batch):
            return []
        samples = max(1, batch * _SLICE_BYTES // size)
        return parts_of(batch, samples)

    def _run_backward(self, layer: RuntimeLayer, first: int) -> float:
        """Run one layer's backward on what is being worked on; `first`: lowest layer of the run."""
        node, facts, buffers = layer.node, layer.facts, self.buffers
        index, part = node.index, buffers.part
        if part is None or part.is_first:
            if index in self._went_back and not self.plan.retains_all:
                raise Error("under compression backward can run once after each forward")
            self._went_back.add(index)
        src = self.kept.read(index, node.bottoms, facts.needs.bottoms)
        dst = self.kept.read(index, node.tops, facts.needs.tops)
        diff_dst = [self._top_diff(value) for value in node.tops]
        if self.bounds is not None and diff_dst and self.bounds.wants_gradient(index):
            terms = layer.layer.gradient_terms()
            shape = self.slots[node.tops[0].index].shape
            self.bounds.saw_gradient(index, diff_dst[0], terms, shape[0] if shape else 1)
        diff_src = self._bottom_diffs(layer, diff_dst, first)
        began = time.perf_counter()
        if facts.traits.alias and len(node.tops) == 1:
            _pass_on(diff_dst[0], diff_src[0])
        else:
            with LayerErrors(node, users_code=True):
                arguments = (src, dst, diff_dst, diff_src, layer.propagation)
                if part is None:
                    layer.layer.backward(*arguments)
                else:
                    cast(Layer, layer.layer).backward(
                        *arguments, part.core
                    )  # no other takes slices
        took = time.perf_counter() - began
        if self.debug:
            self.debug.backward(layer, diff_src)
        del src, dst, diff_dst, diff_src
        if not self.plan.retains_all:
            self._release_after_backward(layer)
        return took * 1e3

    def _top_diff(self, value: Value) -> Tensor:
        if self.slots[value.index].diff is None:  # no reader passed a gradient on
            self.buffers.zero_diff(value)
        slot = self.slots[value.index]
        assert slot.diff is not None
        return self.buffers.view(slot.diff, slot.diff_part, slot.shape)

    def _bottom_diffs(
        self, layer: RuntimeLayer, diff_dst: list[Tensor], first: int
    ) -> list[Tensor]:
        tensors = []
        buffers, node = self.buffers, layer.node
        view = layer.facts.traits.alias and len(node.tops) == 1
        in_place = self.plan.backward[node.index].in_place
        for position, value in enumerate(node.bottoms):
            slot = self.slots[value.index]
            if not layer.propagation.bottoms[position]:
                tensors.append(_NOTHING)
                continue
            whole = buffers.part is None or value.producer < first or buffers.is_kept(value)
            shared = (
                position == 0 and (view or in_place) and self._share_diff(value, node.tops, whole)
            )
            if not shared:
                buffers.new_diff(value, whole)
            assert slot.diff is not None
            tensors.append(buffers.view(slot.diff, slot.diff_part, slot.shape))
        return tensors

    def _share_diff(self, bottom: Value, tops: Sequence[Value], whole: bool) -> bool:
        """Let the gradient of `bottom` be that of the first top, where the two fit together."""
        slot, top = self.slots[bottom.index], self.slots[tops[0].index]
        assert top.diff is not None
        if count_of(slot.shape) != count_of(top.shape):
            return False
        if whole:
            if top.diff_part is not None:
                return False
            slot.diff, slot.diff_part = top.diff.reshaped(slot.shape), None
            return True
        view = self.buffers.view(top.diff, top.diff_part, top.shape)
        slot.diff, slot.diff_part = view.reshaped(self.buffers.shape(bottom)), self.buffers.part
        return True

    def _release_after_backward(self, layer: RuntimeLayer) -> None:
        part = self.buffers.part
        ends = part is None or part.is_last
        for value in layer.node.tops:
            slot = self.slots[value.index]
            if (ends or slot.diff_part is not None) and not self.buffers.is_kept(value):
                slot.diff = slot.diff_part = None
        step = self.plan.backward[layer.node.index]
        if ends:
            for index in step.drop:
                self.layers[index].layer.drop_saved()
        for root in step.release:
            slot = self.slots[root.index]
            if ends:
                slot.stored.clear()
            else:
                slot.stored[:] = [kept for kept in slot.stored if kept.part != part]
            if root.index not in self.plan.kept and (ends or slot.data_part is not None):
                self.buffers.drop_data(root)


def _pass_on(diff_dst: Tensor, diff_src: Tensor) -> None:
    """Give the bottom of a view the top's gradient, where they do not share it: one is a slice."""
    if diff_src.defined and not diff_src.shares_buffer(diff_dst):
        diff_src.copy_from(diff_dst.reshaped(diff_src.shape))
