"""Values between forward and backward: kept in the plan's form, restored, or worked out again.

Knows forms, recipes and slices of the batch. What is kept how is memory_plan.py's choice, the bound
error_bound.py's.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import cast

from caffe._core import MemoryKind, Tensor
from caffe._core.layers import BatchSlice, ForwardContext, Inverse, Layer, Need, Quality
from caffe._core.store import ActivationStore, Form, StoredActivation
from caffe.buffers import Buffers
from caffe.graph import Value
from caffe.layer_errors import LayerErrors
from caffe.memory_plan import SavedValue
from caffe.recomputation import Recipe, Way
from caffe.runtime import (
    BatchPart,
    BoundSource,
    RuntimeLayer,
    Slot,
    StoredPart,
    StoredReport,
    count_of,
)

_NOTHING = Tensor()
#: What is restored for a recipe stays until it is released, rather than to be restored twice, if it
#: is not larger, or takes not more than this share of the memory that the pass needed before.
_SMALL_BYTES = 4 * 2**20
_SHARE_OF_ROOM = 0.25
_AS_KEPT = frozenset({Form.RAW, Form.SIGN})  # in memory as they are kept: nothing is gained
_RANDOM_ACCESS = frozenset({Form.BOUNDED, Form.LOSSLESS})


class KeptValues:
    """Saves values in forward and gives them to backward."""

    def __init__(
        self,
        buffers: Buffers,
        layers: Sequence[RuntimeLayer],
        bounds: BoundSource | None,
        seed: int,
    ) -> None:
        """Keep nothing yet."""
        self._buffers = buffers
        self._layers = layers
        self._bounds = bounds
        self.seed = seed
        self.store = ActivationStore()
        self.counts_values = True  # whether compressing takes statistics, which costs time
        self.reports: dict[int, StoredReport] = {}  # by root index, of the last forward pass
        self._brought: Value | None = None  # what is being brought into memory as a whole

    # -- forward ---------------------------------------------------------------------------------

    def save(self, root: Value, pass_number: int) -> None:
        """Keep what is being worked on of a value that is in memory."""
        buffers = self._buffers
        slot = buffers.slots[root.index]
        saved = buffers.plan.saved[root.index]
        part = buffers.part
        if part is None or part.is_first:
            slot.stored.clear()
        tensor = buffers.data(root)
        stored, bound = self._store(saved, slot, tensor, pass_number)
        slot.stored.append(StoredPart(part, stored))
        report = self.reports.setdefault(
            root.index, StoredReport(saved, 0, 0, bound, slot.nonzero_share)
        )
        report.raw_bytes += stored.raw_bytes
        report.stored_bytes += stored.stored_bytes
        report.error_bound = bound
        report.nonzero_share = slot.nonzero_share

    def _store(
        self, saved: SavedValue, slot: Slot, tensor: Tensor, pass_number: int
    ) -> tuple[StoredActivation, float]:
        """Return a tensor in the form in which it is kept, and its error bound."""
        bound = 0.0
        if saved.form == Form.BOUNDED:
            assert self._bounds is not None
            bound = self._bounds.bound(saved, tensor, self.error_factor)
        stored = self.store.save(
            tensor,
            saved.form,
            bound,
            saved.keep_sign,
            self._dither_seed(saved.value, pass_number) if saved.dither else None,
            slot.expected_bytes,
            self.counts_values,
            saved.negative_factor,
        )
        slot.expected_bytes = stored.stored_bytes
        if saved.form == Form.BOUNDED and self._bounds is not None and self.counts_values:
            self._bounds.saw_stored(saved, stored)
        statistics = stored.statistics
        if statistics.count:
            slot.nonzero_share = statistics.nonzeros / statistics.count
        return stored, bound

    def _dither_seed(self, root: Value, pass_number: int) -> int:
        """Return another seed for every value, slice and pass, the same in a run repeated."""
        part = self._buffers.part
        key = f"{self.seed} {root.index} {pass_number}" + (f" {part.index}" if part else "")
        return zlib.crc32(key.encode())

    def error_factor(self, step: tuple[int, Way]) -> float:
        """Return what multiplies an error on its way through a step of a recipe, as of now."""
        layer, way = step
        traits = self._layers[layer].layer.traits()
        return traits.inverse_error_factor if way == Way.INVERT else traits.error_factor

    # -- backward --------------------------------------------------------------------------------

    def read(self, layer: int, values: Sequence[Value], needs: Sequence[Need]) -> list[Tensor]:
        """Return the tensors that backward of layer `layer` needs; the rest undefined."""
        return [
            _NOTHING if need.quality == Quality.NOTHING else self._read(layer, value, need.quality)
            for value, need in zip(values, needs)
        ]

    def _read(self, layer: int, value: Value, quality: Quality) -> Tensor:
        buffers = self._buffers
        root = buffers.root(value)
        if quality == Quality.SIGN:
            root = self._same_signs(root, layer)
        slot = buffers.slots[root.index]
        known = slot.stored or root.index in buffers.plan.recipes
        if known and not self._at_hand(root):
            self._bring(root, layer)
        if slot.data is None:
            return buffers.data(value)  # which says that it is not there
        return buffers.view(slot.data, slot.data_part, buffers.slots[value.index].shape)

    def read_roots(self, layer: RuntimeLayer) -> list[Value]:
        """Return the root values that a layer's backward is about to read."""
        node, needs = layer.node, layer.facts.needs
        wanted = [*zip(node.bottoms, needs.bottoms), *zip(node.tops, needs.tops)]
        roots = []
        for value, need in wanted:
            root = self._buffers.root(value)
            if need.quality == Quality.SIGN:
                root = self._same_signs(root, node.index)
            if need.quality != Quality.NOTHING:
                roots.append(root)
        return roots

    def _at_hand(self, root: Value) -> bool:
        """Whether what is being worked on of `root` is in memory."""
        slot = self._buffers.slots[root.index]
        if slot.data is None or slot.data_part == self._buffers.part:
            return slot.data is not None
        return slot.data_part is None and not slot.data.is_mask  # masks have no slices

    def _bring(self, root: Value, layer: int) -> None:
        """Have what is being worked on of `root` in memory until it is released, or all of it."""
        buffers = self._buffers
        slot, part = buffers.slots[root.index], buffers.part
        if part is not None and not self._has_part(root, part):
            buffers.part = None
        outer, self._brought = self._brought, root if buffers.part is None else None
        try:
            slot.data, slot.data_part = self._known_again(root, layer), buffers.part
            self._forget_kept(root)
        finally:
            buffers.part, self._brought = part, outer

    def _same_signs(self, root: Value, layer: int) -> Value:
        """Return a value of the same signs that is at hand: the bottom of a ReLU for its top."""
        buffers = self._buffers
        recipe = buffers.plan.recipes.get(root.index)
        if recipe is None or recipe.way != Way.RERUN or self._at_hand(root):
            return root
        source, runtime = recipe.inputs[0], self._layers[recipe.layer]
        lives = buffers.plan.release_at.get(source.index, layer + 1) <= layer
        return source if runtime.facts.traits.rectifies and lives else root

    def _forget_kept(self, root: Value) -> None:
        """Let go of the kept form of what is in memory again as a whole, until it is released."""
        stored = self._buffers.slots[root.index].stored
        kept_so = any(kept.activation.form in _AS_KEPT for kept in stored)
        if self._buffers.part is None and not kept_so:
            stored.clear()

    def _known_again(self, value: Value, layer: int) -> Tensor:
        """Return what is being worked on of `value`, restored or worked out again."""
        buffers = self._buffers
        root = buffers.root(value)
        slot, part = buffers.slots[root.index], buffers.part
        if not self._at_hand(root) and part is not None and not self._has_part(root, part):
            self._bring(root, layer)
        if slot.data is not None and self._at_hand(root):
            return buffers.view(slot.data, slot.data_part, buffers.slots[value.index].shape)
        tensor = self._restored(root) if slot.stored else self._worked_out(root, layer)
        return tensor.reshaped(buffers.shape(value))

    def _worked_out(self, root: Value, layer: int) -> Tensor:
        buffers = self._buffers
        recipe = buffers.plan.recipes.get(root.index)
        if recipe is None:
            return buffers.data(root)  # which says that it is not there
        parts = self._layers[recipe.layer].parts
        if buffers.part is None and parts:
            return self._joined(root, parts, layer)
        return self._follow(recipe, root, layer)

    def comes_in_parts(self, root: Value, batch: int) -> bool:
        """Whether slices of a batch of `root` can be had without making the whole first."""
        slot = self._buffers.slots[root.index]
        if slot.shape[:1] != (batch,):
            return False
        if slot.data is not None:
            return slot.data_part is None and not slot.data.is_mask
        if slot.stored:
            return all(kept.activation.form in _RANDOM_ACCESS for kept in slot.stored)
        recipe = self._buffers.plan.recipes.get(root.index)
        if recipe is None or not self._runs_on(recipe.layer, BatchPart(-1, 0, batch, batch)):
            return False
        return all(self.comes_in_parts(value, batch) for value in recipe.inputs)

    def on_the_way(self, root: Value) -> list[Value]:
        """Return the root values that come into memory while `root` is restored, in order."""
        slot = self._buffers.slots[root.index]
        recipe = self._buffers.plan.recipes.get(root.index)
        inputs = recipe.inputs if recipe and not slot.stored else ()
        before = [other for value in inputs for other in self.on_the_way(value)]
        return before if slot.data is not None else [*before, root]

    def _has_part(self, root: Value, part: BatchPart) -> bool:
        """Whether `part` of a value that is not in memory can be had without the whole."""
        slot = self._buffers.slots[root.index]
        if slot.shape[:1] != (part.batch,):
            return False
        recipe = self._buffers.plan.recipes.get(root.index)
        return bool(slot.stored) or recipe is None or self._runs_on(recipe.layer, part)

    def _runs_on(self, layer: int, part: BatchPart) -> bool:
        """Whether a layer of a recipe runs on that part of its batch alone."""
        runtime = self._layers[layer]
        node, slots = runtime.node, self._buffers.slots
        if not runtime.facts.traits.slices or any(
            slots[value.index].shape[:1] != (part.batch,) for value in [*node.bottoms, *node.tops]
        ):
            return False
        any_slices = runtime.facts.traits.any_slices or runtime.layer.saved_bytes() == 0
        return any_slices or part in runtime.parts

    def _joined(self, root: Value, parts: Sequence[BatchPart], layer: int) -> Tensor:
        """Work out a whole value slice by slice, as its layer ran in forward."""
        buffers = self._buffers
        whole = buffers.allocate(buffers.slots[root.index].shape, MemoryKind.RAW_ACTIVATIONS)
        for part in parts:
            buffers.part = part
            whole.slice(part.begin, part.end).copy_from(self._known_again(root, layer))
        buffers.part = None
        return whole

    def _restored(self, root: Value) -> Tensor:
        buffers = self._buffers
        slot, part = buffers.slots[root.index], buffers.part
        for stored in slot.stored:
            if stored.part == part:
                return self.store.restore(stored.activation)
        shape = buffers.shape(root)
        tensor = buffers.allocate(shape, MemoryKind.RAW_ACTIVATIONS)
        begin, end = (part.begin, part.end) if part else (0, shape[0])
        sample = count_of(shape[1:])
        for stored in slot.stored:
            first = stored.part.begin if stored.part else 0
            last = stored.part.end if stored.part else slot.shape[0]
            low, high = max(begin, first), min(end, last)
            if low < high:
                target = tensor.slice(low - begin, high - begin)
                self.store.restore_into(stored.activation, (low - first) * sample, target)
        return tensor

    def _follow(self, recipe: Recipe, root: Value, layer: int) -> Tensor:
        buffers = self._buffers
        runtime = self._layers[recipe.layer]
        # Under the shapes that the layer knows: a Reshape may be between it and a buffer.
        bottoms, tops = runtime.node.bottoms, runtime.node.tops[:1]
        inverts = recipe.way == Way.INVERT
        inputs, (output, *_) = (tops, bottoms) if inverts else (bottoms, tops)
        src = [self._input(value, layer) for value in inputs]
        shape = buffers.shape(output)
        if self._may_overwrite(recipe, root, src[0], shape, layer):
            dst = src[0].reshaped(shape)
        else:
            dst = buffers.allocate(shape, MemoryKind.RAW_ACTIVATIONS)
        part = buffers.part.core if buffers.part else BatchSlice()
        core = cast(Layer, runtime.layer)  # no other says that it is cheap or has an inverse
        with LayerErrors(runtime.node):
            if inverts:
                core.invert(src[0], dst, part)
            else:
                core.rerun(src, [dst], with_slice(runtime.context, part))
        return dst.reshaped(buffers.shape(root))

    def _input(self, value: Value, layer: int) -> Tensor:
        """Return an input of a recipe; a small one stays in memory for those that read it next."""
        root = self._buffers.root(value)
        slot = self._buffers.slots[root.index]
        most = max(_SMALL_BYTES, _SHARE_OF_ROOM * self._buffers.room())
        small = 4 * slot.count <= most and self._buffers.part is None
        if slot.stored and small and not self._at_hand(root):
            self._bring(root, layer)
        return self._known_again(value, layer)

    def _may_overwrite(
        self, recipe: Recipe, root: Value, src: Tensor, shape: Sequence[int], layer: int
    ) -> bool:
        """Whether a recipe may write its output over its first input, which nobody reads again."""
        traits = self._layers[recipe.layer].facts.traits
        able = traits.inverse == Inverse.VALUE if recipe.way == Way.INVERT else False
        if not (able or (recipe.way == Way.RERUN and traits.forward_in_place)):
            return False
        source = recipe.inputs[0]
        slot = self._buffers.slots[source.index]
        if src.count != count_of(shape) or any(
            stored.activation.form == Form.RAW for stored in slot.stored
        ):
            return False
        if not self._at_hand(source):
            return True
        if slot.data_part != self._buffers.part:
            return False  # other slices are wanted yet
        # In memory: it may go if this is the last that anybody wants of it.
        plan = self._buffers.plan
        last = source in plan.backward[layer].release and plan.wanted_once(source, layer)
        # What is brought whole stays until it is released: its source is not asked for it again.
        stays = self._brought is root and plan.wanted_only_for(source, root, layer)
        if not (last or stays) or self._buffers.is_kept(source):
            return False
        self._buffers.drop_data(source)
        return True


def with_slice(context: ForwardContext, part: BatchSlice) -> ForwardContext:
    """Return the context of another slice of the same pass."""
    return ForwardContext(
        context.train,
        context.save_for_backward,
        context.random_key,
        context.forward_count,
        context.inverts,
        part,
    )
