"""Runs the layers of a net and carries out its memory plan, the batch whole or slice by slice.

Runs of layers that take slices go through all of them for one slice after the other; what crosses
the ends of a run is whole. Names, prototxt and the pycaffe API are net.py's; bounds are
error_bound.py's; what is kept how is memory_plan.py's choice and kept_values.py's work.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from caffe._core import Error, Tensor, memory
from caffe._core.layers import BatchSlice, ForwardContext, Layer, Propagation
from caffe.batch_runs import SLICE_BYTES, BackwardRun, BackwardRuns, forward_run
from caffe.buffers import Buffers
from caffe.debug_info import DebugInfo
from caffe.gradients import Gradients
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
        self.gradients = Gradients(self.buffers)
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
        self.buffers.start_pass()
        self.reports.clear()
        self.gradients.clear()
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
        runs = BackwardRuns(self.layers, self.buffers, self.kept, self.gradients)
        last = start
        while last >= end:
            run = runs.enter(last, end)
            for index in run.layers:
                for hook in self.hooks.before_backward:
                    hook(index)
            took = self._backward_run(run)
            times += [
                (index, took[index])
                for index in run.layers
                if self.layers[index].facts.runs_backward
            ]
            for index in run.layers:
                for hook in self.hooks.after_backward:
                    hook(index)
            last = run.first - 1
        return times

    def _backward_run(self, run: BackwardRun) -> dict[int, float]:
        """Run the layers of a run for one slice after the other; milliseconds by layer."""
        took = dict.fromkeys(run.layers, 0.0)
        turns: Sequence[BatchPart | None] = run.parts or [None]
        first = self.layers[run.first]
        sums = bool(run.parts) and first.facts.traits.sums_first
        for part in turns:
            with self._working_on(part, run):
                for index in run.layers:
                    layer = self.layers[index]
                    if not layer.facts.runs_backward:
                        continue
                    self.set_scope(layer.node.name)
                    with LayerErrors(layer.node):
                        if sums and index == run.first:
                            took[index] += self._add_up(layer)
                        else:
                            lowest = run.first if run.slices_gradients else None
                            took[index] += self._run_backward(layer, lowest)
        for part in run.parts if sums else []:
            with self._working_on(part, run), LayerErrors(first.node):
                took[run.first] += self._run_backward(first, None)
        return took

    @contextlib.contextmanager
    def _working_on(self, part: BatchPart | None, run: BackwardRun) -> Iterator[None]:
        """Work on a slice of the batch; what is of it alone is let go of afterwards."""
        self.buffers.part = part
        try:
            yield
            if part is not None:
                self._drop_parts(run.first, run.last)
        finally:
            self.buffers.part = None

    def _add_up(self, layer: RuntimeLayer) -> float:
        """Let a layer that needs sums over the batch take note of a slice."""
        node, needs, part = layer.node, layer.facts.needs, self.buffers.part
        assert part is not None
        src = self.kept.read(node.index, node.bottoms, needs.bottoms)
        dst = self.kept.read(node.index, node.tops, needs.tops)
        diff_dst = self.gradients.of_tops(layer)
        began = time.perf_counter()
        core = cast(Layer, layer.layer)  # no other needs sums
        core.add_up(src, dst, diff_dst, layer.propagation, part.core)
        return (time.perf_counter() - began) * 1e3

    def _run_backward(self, layer: RuntimeLayer, lowest: int | None) -> float:
        """Run one layer's backward on what is being worked on; `lowest` as for Gradients."""
        node, facts, buffers = layer.node, layer.facts, self.buffers
        index, part = node.index, buffers.part
        if part is None or part.is_first:
            if index in self._went_back and not self.plan.retains_all:
                raise Error("under compression backward can run once after each forward")
            self._went_back.add(index)
        src = self.kept.read(index, node.bottoms, facts.needs.bottoms)
        dst = self.kept.read(index, node.tops, facts.needs.tops)
        diff_dst = self.gradients.of_tops(layer)
        if self.bounds is not None and diff_dst and self.bounds.wants_gradient(index):
            terms = layer.layer.gradient_terms()
            shape = self.slots[node.tops[0].index].shape
            self.bounds.saw_gradient(index, diff_dst[0], terms, shape[0] if shape else 1)
        began = time.perf_counter()
        propagation = layer.propagation
        if lowest is not None and self._lets_go_between(layer):
            weights = Propagation([False], propagation.parameters)
            self._call_backward(layer, src, dst, diff_dst, [Tensor()], weights)
            buffers.drop_data(buffers.root(node.bottoms[0]))
            src = [Tensor()]
            propagation = Propagation([True], [False] * len(propagation.parameters))
        diff_src = self.gradients.for_bottoms(layer, lowest)
        if facts.traits.alias and len(diff_dst) == 1:
            _pass_on(diff_dst[0], diff_src[0])
        else:
            self._call_backward(layer, src, dst, diff_dst, diff_src, propagation)
        self.gradients.settle()
        took = time.perf_counter() - began
        if self.debug:
            self.debug.backward(layer, diff_src)
        del src, dst, diff_dst, diff_src
        if not self.plan.retains_all:
            self._release_after_backward(layer)
        return took * 1e3

    def _lets_go_between(self, layer: RuntimeLayer) -> bool:
        """Whether a slice of a layer's large input goes once the weights have their gradient.

        Then the bottom's gradient takes its place. Who wants the slice after that has it restored
        again.
        """
        node, part = layer.node, self.buffers.part
        if part is None or len(node.bottoms) != 1 or layer.layer.gradient_terms() == 0:
            return False
        held = self.slots[self.buffers.root(node.bottoms[0]).index].data_part
        large = 4 * count_of(self.buffers.shape(node.bottoms[0])) > SLICE_BYTES
        both = layer.propagation.bottoms[0] and any(layer.propagation.parameters)
        return large and both and held == part

    def _call_backward(
        self,
        layer: RuntimeLayer,
        src: list[Tensor],
        dst: list[Tensor],
        diff_dst: list[Tensor],
        diff_src: list[Tensor],
        propagation: Propagation,
    ) -> None:
        part = self.buffers.part
        with LayerErrors(layer.node, users_code=True):
            if part is None:
                layer.layer.backward(src, dst, diff_dst, diff_src, propagation)
            else:  # no other takes slices
                core = cast(Layer, layer.layer)
                core.backward(src, dst, diff_dst, diff_src, propagation, part.core)

    def _release_after_backward(self, layer: RuntimeLayer) -> None:
        part = self.buffers.part
        ends = part is None or part.is_last
        self.gradients.release(layer, ends)
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
