"""Runs the layers of a net and carries out its memory plan: buffers, their forms and their lives.

Knows tensors, forms and steps. Names, prototxt and the pycaffe API are net.py's; bounds are
error_bound.py's; what is kept how is memory_plan.py's.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from caffe._core import Error, MemoryKind, Tensor, memory
from caffe._core.layers import ForwardContext, Inverse, Need, Propagation, Quality
from caffe._core.store import ActivationStore, Form, StoredActivation
from caffe.debug_info import DebugInfo
from caffe.graph import Graph, Node, Value
from caffe.layer_errors import LayerErrors
from caffe.layer_types.base import LayerLike
from caffe.layer_types.builtin import BuiltInRunner
from caffe.memory_plan import ForwardStep, LayerFacts, MemoryPlan, SavedValue
from caffe.recomputation import Recipe, Way

_NOTHING = Tensor()
_MOST_VALUES = 2**62

FactorOf = Callable[[tuple[int, Way]], float]  # of a step of a recipe: what multiplies an error


class BoundSource(Protocol):
    """Where the executor gets error bounds, and whom it tells what it saw."""

    def bound(self, saved: SavedValue, tensor: Tensor, factor_of: FactorOf) -> float:
        """Absolute error bound for this value, about to be compressed."""

    def saw_stored(self, saved: SavedValue, stored: StoredActivation) -> None:
        """The value was stored so."""

    def wants_gradient(self, layer: int) -> bool:
        """Whether saw_gradient() should be called in this backward pass."""

    def saw_gradient(self, layer: int, gradient: Tensor, terms: int) -> None:
        """The gradient of the layer's first top; `terms` as Layer.gradient_terms()."""


@dataclass
class Slot:
    """The buffers of one value, as they are right now."""

    shape: tuple[int, ...] = ()
    data: Tensor | None = None  # of root values only
    diff: Tensor | None = None
    stored: StoredActivation | None = None  # of root values only
    expected_bytes: int = 0  # compressed size the last time
    nonzero_share: float | None = None  # when it was last counted


@dataclass
class StoredReport:
    """What keeping one value cost in the last forward pass."""

    saved: SavedValue
    raw_bytes: int
    stored_bytes: int
    error_bound: float
    nonzero_share: float | None  # when it was last counted; None: never

    @property
    def ratio(self) -> float:
        """Raw over stored bytes."""
        return self.raw_bytes / max(self.stored_bytes, 1)


@dataclass
class RuntimeLayer:
    """A layer with what the net decided about it."""

    node: Node
    layer: LayerLike
    facts: LayerFacts
    propagation: Propagation
    random_key: int
    bottom_shapes: list[tuple[int, ...]] = field(default_factory=list)
    always_reshape: bool = False
    context: ForwardContext | None = None  # of the last forward pass


@dataclass
class Hooks:
    """What users want called around each layer, with the layer's index."""

    before_forward: list[Callable[[int], None]] = field(default_factory=list)
    after_forward: list[Callable[[int], None]] = field(default_factory=list)
    before_backward: list[Callable[[int], None]] = field(default_factory=list)
    after_backward: list[Callable[[int], None]] = field(default_factory=list)


class Executor:
    """Forward and backward over a graph, one layer at a time."""

    def __init__(
        self,
        graph: Graph,
        layers: list[RuntimeLayer],
        *,
        train: bool,
        saves: bool,
        seed: int = 0,
        bounds: BoundSource | None = None,
    ) -> None:
        """Start without buffers and without a plan; set `plan` before running."""
        self.graph = graph
        self.layers = layers
        self.train = train
        self.saves = saves
        self.seed = seed
        self.bounds = bounds
        self.plan: MemoryPlan
        self.slots = [Slot() for _ in graph.values]
        self.counts_values = True  # whether compressing takes statistics, which costs time
        self.forward_count = 0  # training passes, which number the random draws
        self.hooks = Hooks()
        self.debug: DebugInfo | None = None  # told what each layer writes
        self.reports: dict[int, StoredReport] = {}  # by root index, of the last forward pass
        self.own_bytes = 0  # what layers themselves kept in the last forward pass
        self._went_back: set[int] = set()  # layers whose backward pass followed the last forward
        self._held: set[int] = set()  # root values that the pass under way does not release
        self._store = ActivationStore()

    def error_factor(self, step: tuple[int, Way]) -> float:
        """Return what multiplies an error on its way through a step of a recipe, as of now."""
        layer, way = step
        traits = self.layers[layer].layer.traits()
        return traits.inverse_error_factor if way == Way.INVERT else traits.error_factor

    # -- buffers ---------------------------------------------------------------------------------

    def data(self, value: Value) -> Tensor:
        """Return the values of `value`, under its own shape; caffe.Error once they are released."""
        root = self.slots[self.plan.roots[value.index].index]
        if root.data is None:
            if not (self.plan.retains_all or self._is_kept(value)):
                raise Error(
                    f"blob '{value.name}' is not in memory any more: under compression a blob is "
                    f"released after its last use; to keep it readable, add "
                    f'compression_param {{ keep: "{value.name}" }} to the solver'
                )
            root.data = self._first_buffer(self.plan.roots[value.index])
        return root.data.reshaped(self.slots[value.index].shape)

    def _first_buffer(self, root: Value) -> Tensor:
        """Zeros for a value that no pass has written yet, where forward will write it."""
        node = self.graph.nodes[root.producer]
        shape = self.slots[root.index].shape
        if self.plan.retains_all and root.top == 0 and self.plan.forward[node.index].in_place:
            return self.data(node.bottoms[0]).reshaped(list(shape))
        tensor = Tensor(list(shape), self._data_kind(root))
        tensor.zero()
        return tensor

    def diff(self, value: Value) -> Tensor:
        """Return the gradient of `value`, zeros where none was computed yet."""
        slot = self.slots[value.index]
        if slot.diff is None:
            if not self.plan.retains_all and not self._is_kept(value):
                raise Error(
                    f"the gradient of blob '{value.name}' is not in memory: under compression "
                    f"gradients of blobs are released once used; to keep it readable, add "
                    f'compression_param {{ keep: "{value.name}" }} to the solver'
                )
            slot.diff = self._new_diff(value)
            slot.diff.zero()
        return slot.diff

    def release_all(self) -> None:
        """Let go of every buffer that is not the user's to fill."""
        for slot, value in zip(self.slots, self.graph.values):
            if self.graph.nodes[value.producer].type != "Input":
                _drop(slot.data)
                slot.data = None
            slot.diff = slot.stored = None
        for layer in self.layers:
            layer.layer.drop_saved()

    def set_shape(self, value: Value, shape: Sequence[int]) -> None:
        """Give a value a shape; buffers of another size are let go."""
        slot = self.slots[value.index]
        new_shape = tuple(int(size) for size in shape)
        if new_shape == slot.shape:
            return
        slot.shape = new_shape
        slot.data = slot.diff = None
        slot.expected_bytes = 0

    def _is_kept(self, value: Value) -> bool:
        return self.plan.roots[value.index].index in self.plan.kept

    def _data_kind(self, value: Value) -> MemoryKind:
        source = not self.graph.nodes[value.producer].bottoms
        return MemoryKind.DATA if source else MemoryKind.RAW_ACTIVATIONS

    def _new_diff(self, value: Value) -> Tensor:
        return Tensor(self.slots[value.index].shape, MemoryKind.GRADIENTS)

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
        self._held = {self.plan.roots[value.index].index for value in hold}
        if self.train and self.saves:
            self.forward_count += 1
        self.reports.clear()
        self._went_back.clear()
        self.own_bytes = 0
        return [self._forward_layer(index) for index in range(start, end + 1)]

    def _forward_layer(self, index: int) -> float:
        layer = self.layers[index]
        for hook in self.hooks.before_forward:
            hook(index)
        memory.set_scope(layer.node.name)
        self.reshape(index)
        with LayerErrors(layer.node):
            self._reshape_to_data(layer)
            took = self._run_forward(layer, self.plan.forward[index])
        for hook in self.hooks.after_forward:
            hook(index)
        return took

    def _reshape_to_data(self, layer: RuntimeLayer) -> None:
        """Give the tops the shapes that follow from the bottoms' values, if the layer says so."""
        runner = layer.layer
        if not (isinstance(runner, BuiltInRunner) and runner.layer.shaped_by_data):
            return
        shapes = runner.shapes_by_data([self.data(value) for value in layer.node.bottoms])
        for value, shape in zip(layer.node.tops, shapes):
            self.set_shape(value, shape)

    def _run_forward(self, layer: RuntimeLayer, step: ForwardStep) -> float:
        node = layer.node
        src = [self.data(value) for value in node.bottoms]
        for root in step.save_before:
            self._save(root)
        dst = self._tops(layer, src, step.in_place)
        context = ForwardContext(
            train=self.train,
            save_for_backward=self.saves and layer.facts.runs_backward,
            random_key=layer.random_key,
            forward_count=max(self.forward_count - 1, 0),
            inverts=step.inverts,
        )
        layer.context = context
        began = time.perf_counter()
        if not layer.facts.traits.alias:
            with LayerErrors(node, users_code=True):
                layer.layer.forward(src, dst, context)
        took = time.perf_counter() - began
        self.own_bytes += layer.layer.saved_bytes()
        if self.debug:
            self.debug.forward(layer, [self.data(value) for value in node.tops])
        del src, dst
        for root in step.save_after:
            self._save(root)
        for root in step.release:
            if root.index not in self._held:
                _drop(self.slots[root.index].data)
                self.slots[root.index].data = None
        return took * 1e3

    def _tops(self, layer: RuntimeLayer, src: list[Tensor], in_place: bool) -> list[Tensor]:
        if layer.facts.traits.alias:
            return []
        for position, value in enumerate(layer.node.tops):
            slot = self.slots[value.index]
            if position == 0 and in_place:
                slot.data = src[0].reshaped(slot.shape)
            elif slot.data is None or not (self.plan.retains_all or self._is_kept(value)):
                slot.data = Tensor(slot.shape, self._data_kind(value))
                if layer.node.type == "Input":  # nobody writes it until the user does
                    slot.data.zero()
        return [self.data(value) for value in layer.node.tops]

    def _save(self, root: Value) -> None:
        slot = self.slots[root.index]
        saved = self.plan.saved[root.index]
        assert slot.data is not None
        bound = 0.0
        if saved.form == Form.BOUNDED:
            assert self.bounds is not None
            bound = self.bounds.bound(saved, slot.data, self.error_factor)
        stored = self._store.save(
            slot.data,
            saved.form,
            bound,
            saved.keep_sign,
            self._dither_seed(root) if saved.dither else None,
            slot.expected_bytes,
            self.counts_values,
        )
        slot.stored = stored
        slot.expected_bytes = stored.stored_bytes
        if saved.form == Form.BOUNDED and self.bounds is not None and self.counts_values:
            self.bounds.saw_stored(saved, stored)
        statistics = stored.statistics
        if statistics.count:
            slot.nonzero_share = statistics.nonzeros / statistics.count
        self.reports[root.index] = StoredReport(
            saved,
            stored.raw_bytes,
            stored.stored_bytes,
            bound,
            slot.nonzero_share,
        )

    def _dither_seed(self, root: Value) -> int:
        """Return another seed for every value and pass, the same in a run that is repeated."""
        key = f"{self.seed} {root.index} {self.forward_count}"
        return zlib.crc32(key.encode())

    # -- backward --------------------------------------------------------------------------------

    def seed_losses(self) -> None:
        """Set the gradient of each loss top to its weight."""
        for node in self.graph.nodes:
            for value, weight in zip(node.tops, node.loss_weights):
                if weight:
                    slot = self.slots[value.index]
                    if slot.diff is None:
                        slot.diff = self._new_diff(value)
                    slot.diff.numpy().fill(weight)

    def backward(self, start: int, end: int) -> list[tuple[int, float]]:
        """Run layers start..end (start >= end, inclusive) that have a backward pass.

        Returns (layer, milliseconds) of each.
        """
        times = []
        for index in range(start, end - 1, -1):
            for hook in self.hooks.before_backward:
                hook(index)
            if self.layers[index].facts.runs_backward:
                times.append((index, self._backward_layer(index)))
            for hook in self.hooks.after_backward:
                hook(index)
        return times

    def _backward_layer(self, index: int) -> float:
        layer = self.layers[index]
        memory.set_scope(layer.node.name)
        with LayerErrors(layer.node):
            return self._run_backward(layer)

    def _run_backward(self, layer: RuntimeLayer) -> float:
        node, facts = layer.node, layer.facts
        index = node.index
        if index in self._went_back and not self.plan.retains_all:
            raise Error("under compression backward can run once after each forward")
        self._went_back.add(index)
        src = self._read(index, node.bottoms, facts.needs.bottoms)
        dst = self._read(index, node.tops, facts.needs.tops)
        diff_dst = [self._top_diff(value) for value in node.tops]
        if self.bounds is not None and diff_dst and self.bounds.wants_gradient(index):
            self.bounds.saw_gradient(index, diff_dst[0], layer.layer.gradient_terms())
        diff_src = self._bottom_diffs(layer, diff_dst)
        began = time.perf_counter()
        if not (facts.traits.alias and len(node.tops) == 1):
            with LayerErrors(node, users_code=True):
                layer.layer.backward(src, dst, diff_dst, diff_src, layer.propagation)
        took = time.perf_counter() - began
        if self.debug:
            self.debug.backward(layer, diff_src)
        del src, dst, diff_dst, diff_src
        if not self.plan.retains_all:
            self._release_after_backward(layer)
        return took * 1e3

    def _read(self, index: int, values: list[Value], needs: Sequence[Need]) -> list[Tensor]:
        """Return the tensors that backward of layer `index` needs, restored or worked out."""
        tensors = []
        for value, need in zip(values, needs):
            if need.quality == Quality.NOTHING:
                tensors.append(_NOTHING)
                continue
            root = self.plan.roots[value.index]
            slot = self.slots[root.index]
            if slot.data is None and (slot.stored is not None or root.index in self.plan.recipes):
                slot.data = self._known_again(root)
                stored = slot.stored
                used_up = index <= self.plan.last_use.get(root.index, index)
                if stored is not None and stored.form != Form.RAW and used_up:
                    slot.stored = None
            tensors.append(self.data(value))
        return tensors

    def _known_again(self, root: Value) -> Tensor:
        """Return the values of `root` for backward, restored or worked out again."""
        slot = self.slots[root.index]
        if slot.data is not None:
            return slot.data
        if slot.stored is not None:
            return self._store.restore(slot.stored)
        recipe = self.plan.recipes.get(root.index)
        if recipe is None:
            return self.data(root)  # which says that it is not there
        src = [self._known_again(value) for value in recipe.inputs]
        runtime = self.layers[recipe.layer]
        inverts = recipe.way == Way.INVERT
        if self._may_overwrite(recipe, src[0], slot.shape):
            dst = src[0].reshaped(slot.shape)
        else:
            dst = Tensor(slot.shape, MemoryKind.RAW_ACTIVATIONS)
        with LayerErrors(runtime.node):
            if inverts:
                runtime.layer.invert(src[0], dst)
            else:
                assert runtime.context is not None
                runtime.layer.rerun(src, [dst], runtime.context)
        return dst

    def _may_overwrite(self, recipe: Recipe, src: Tensor, shape: Sequence[int]) -> bool:
        """Whether a recipe may write its output over its first input: a copy of nobody's."""
        slot = self.slots[recipe.inputs[0].index]
        if slot.data is not None or (slot.stored is not None and slot.stored.form == Form.RAW):
            return False
        if src.count != _count(shape):
            return False
        traits = self.layers[recipe.layer].facts.traits
        if recipe.way == Way.INVERT:
            return traits.inverse == Inverse.VALUE
        return traits.forward_in_place

    def _top_diff(self, value: Value) -> Tensor:
        slot = self.slots[value.index]
        if slot.diff is None:  # no reader passed a gradient on
            slot.diff = self._new_diff(value)
            slot.diff.zero()
        return slot.diff

    def _bottom_diffs(self, layer: RuntimeLayer, diff_dst: list[Tensor]) -> list[Tensor]:
        tensors = []
        view = layer.facts.traits.alias and len(layer.node.tops) == 1
        in_place = self.plan.backward[layer.node.index].in_place
        for position, value in enumerate(layer.node.bottoms):
            slot = self.slots[value.index]
            if not layer.propagation.bottoms[position]:
                tensors.append(_NOTHING)
                continue
            if position == 0 and (view or in_place) and diff_dst[0].count == _count(slot.shape):
                slot.diff = diff_dst[0].reshaped(slot.shape)
            elif slot.diff is None or not self.plan.retains_all:
                slot.diff = self._new_diff(value)
            tensors.append(slot.diff)
        return tensors

    def _release_after_backward(self, layer: RuntimeLayer) -> None:
        for value in layer.node.tops:
            if not self._is_kept(value):
                self.slots[value.index].diff = None
        step = self.plan.backward[layer.node.index]
        for index in step.drop:
            self.layers[index].layer.drop_saved()
        for root in step.release:
            slot = self.slots[root.index]
            slot.stored = None
            if root.index not in self.plan.kept:
                _drop(slot.data)
                slot.data = None


def check_shape(blob: str, shape: Sequence[int]) -> None:
    """Raise ValueError for a shape that no tensor can have."""
    if min(shape, default=0) < 0:
        raise ValueError(f"blob '{blob}' cannot have shape {_times(shape)}: a size is negative")
    if _count(shape) > _MOST_VALUES:
        raise ValueError(f"blob '{blob}' cannot have shape {_times(shape)}: more than 2^62 values")


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "()"


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _drop(tensor: Tensor | None) -> None:
    """A buffer that Python still looks at stays alive: from here on it counts as Python's."""
    if tensor is not None and tensor.pinned:
        tensor.set_kind(MemoryKind.HELD_BY_PYTHON)
