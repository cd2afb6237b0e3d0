"""The memory plan: which values are kept for backward, in which form, and when buffers die.

Made once from the graph and from what each layer declares (needs and traits). It decides; net.py
carries it out; error_bound.py sets the bounds. It holds no buffers and does no arithmetic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from caffe._core.layers import BoundRule, Needs, Quality, Traits
from caffe._core.store import Form
from caffe.graph import Graph, Node, Value
from caffe.proto import caffe_pb2 as pb

Mode = pb.CompressionParameter

#: Bounded values with fewer values than this are kept raw: a stream's header would eat the gain.
SMALL_COUNT = 1024

_QUALITY_ORDER = {
    Quality.NOTHING: 0,
    Quality.SIGN: 1,
    Quality.BOUNDED: 2,
    Quality.BOUNDED_SIGN: 3,
    Quality.EXACT: 4,
}


def combine(first: Quality, second: Quality) -> Quality:
    """Return the weakest quality that serves two readers."""
    if {first, second} == {Quality.SIGN, Quality.BOUNDED}:
        return Quality.BOUNDED_SIGN
    return max(first, second, key=_QUALITY_ORDER.__getitem__)


@dataclass
class LayerFacts:
    """What the plan has to know of one layer."""

    needs: Needs  # of nothing at all where the layer has no backward pass
    traits: Traits
    runs_backward: bool
    compression: pb.CompressionParameter  # the solver's, with the layer's own fields over it


@dataclass
class BackwardReader:
    """One layer whose backward pass reads a value, and how well it must know it."""

    layer: int
    quality: Quality
    rule: BoundRule
    compression: pb.CompressionParameter


@dataclass
class SavedValue:
    """How one value lives between forward and backward."""

    value: Value
    quality: Quality
    form: Form
    readers: list[BackwardReader]

    @property
    def keep_sign(self) -> bool:
        """Whether the sign of every element must survive."""
        return self.quality in (Quality.SIGN, Quality.BOUNDED_SIGN)

    @property
    def dither(self) -> bool:
        """Whether it is stored with subtractive dither: a reader's layer asks for it."""
        return any(reader.compression.dither for reader in self.readers)


@dataclass
class ForwardStep:
    """What happens around one layer's forward pass. Lists hold root values."""

    in_place: bool = False  # top 0 is written over bottom 0
    save_before: list[Value] = field(default_factory=list)
    save_after: list[Value] = field(default_factory=list)
    release: list[Value] = field(default_factory=list)


@dataclass
class BackwardStep:
    """What happens around one layer's backward pass. Lists hold root values."""

    in_place: bool = False  # the gradient of bottom 0 is written over that of top 0
    release: list[Value] = field(default_factory=list)


@dataclass
class MemoryPlan:
    """The whole plan. `retains_all` is plain Caffe: every blob stays readable."""

    retains_all: bool
    roots: list[Value]  # by value index: the value whose buffer it shares (itself, mostly)
    kept: frozenset[int]  # root values (by index) that are never released
    saved: dict[int, SavedValue]  # by index of root value
    forward: list[ForwardStep]
    backward: list[BackwardStep]

    def digest(self) -> str:
        """Return a hash of what is kept how; a resumed run must have the same."""
        lines = [
            f"{saved.value.index} {saved.value.name} {saved.form.name} {saved.quality.name}"
            for _, saved in sorted(self.saved.items())
        ]
        text = "\n".join([f"retains_all={self.retains_all}", *lines])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_roots(graph: Graph, traits: Sequence[Traits]) -> list[Value]:
    """By value index: the value whose buffer it shares, through Split, Flatten and the like."""
    roots: list[Value] = []
    for value in graph.values:
        node = graph.nodes[value.producer]
        alias = traits[node.index].alias and node.bottoms
        roots.append(roots[node.bottoms[0].index] if alias else value)
    return roots


def make_plan(
    graph: Graph,
    facts: Sequence[LayerFacts],
    count: Callable[[Value], int],
    *,
    retains_all: bool,
    saves: bool,
    keep: Iterable[str] = (),
) -> MemoryPlan:
    """Plan the life of every value of `graph`.

    Args:
        graph: the net.
        facts: one for each layer.
        count: number of elements of a value.
        retains_all: mode NONE: nothing is released, nothing compressed.
        saves: whether a backward pass will follow; a test net saves nothing.
        keep: names of blobs that stay readable.
    """
    roots = find_roots(graph, [fact.traits for fact in facts])
    kept = _kept_roots(graph, roots, set(keep))
    saved = _saved_values(graph, facts, roots, kept, count, retains_all) if saves else {}
    plan = MemoryPlan(
        retains_all=retains_all,
        roots=roots,
        kept=kept,
        saved=saved,
        forward=[ForwardStep() for _ in graph.nodes],
        backward=[BackwardStep() for _ in graph.nodes],
    )
    last_reader = _last_readers(graph, roots)
    for node in graph.nodes:
        _plan_in_place(plan, node, facts[node.index], last_reader)
    if not retains_all:
        _plan_releases(plan, graph, last_reader)
    return plan


def _kept_roots(graph: Graph, roots: list[Value], names: set[str]) -> frozenset[int]:
    """Inputs that the user writes, outputs, and what the user names, stay."""
    kept = {roots[value.index].index for value in graph.outputs()}
    last = graph.last_values()
    kept.update(roots[last[name].index].index for name in names if name in last)
    for node in graph.nodes:
        if node.type == "Input":
            kept.update(roots[top.index].index for top in node.tops)
    return frozenset(kept)


def _saved_values(
    graph: Graph,
    facts: Sequence[LayerFacts],
    roots: list[Value],
    kept: frozenset[int],
    count: Callable[[Value], int],
    retains_all: bool,
) -> dict[int, SavedValue]:
    readers: dict[int, list[BackwardReader]] = {}
    for node, fact in zip(graph.nodes, facts):
        if not fact.runs_backward:
            continue
        wanted = list(zip(node.bottoms, fact.needs.bottoms)) + list(zip(node.tops, fact.needs.tops))
        for value, need in wanted:
            if need.quality != Quality.NOTHING:
                readers.setdefault(roots[value.index].index, []).append(
                    BackwardReader(node.index, need.quality, need.rule, fact.compression)
                )
    saved = {}
    for index, value_readers in readers.items():
        root = graph.values[index]
        quality = Quality.NOTHING
        for reader in value_readers:
            quality = combine(quality, reader.quality)
        if retains_all or index in kept:
            form = Form.RAW
        else:
            form = _form(quality, value_readers, count(root))
        saved[index] = SavedValue(root, quality, form, value_readers)
    return saved


def _form(quality: Quality, readers: list[BackwardReader], count: int) -> Form:
    """Return the cheapest form that serves every reader."""
    if quality == Quality.EXACT:
        return Form.RAW
    modes = {reader.compression.mode for reader in readers}
    if Mode.NONE in modes:
        return Form.RAW
    if quality == Quality.SIGN:
        return Form.SIGN
    if count < SMALL_COUNT:
        return Form.RAW
    return Form.LOSSLESS if Mode.LOSSLESS in modes else Form.BOUNDED


def _last_readers(graph: Graph, roots: list[Value]) -> dict[int, int]:
    """Root index -> last layer that reads it in forward (its writer where nothing does)."""
    last = {value.index: value.producer for value in graph.values if roots[value.index] is value}
    for value in graph.values:
        root = roots[value.index].index
        last[root] = max(last[root], value.producer, *(layer for layer, _ in value.readers), -1)
    return last


def _plan_in_place(
    plan: MemoryPlan, node: Node, facts: LayerFacts, last_reader: dict[int, int]
) -> None:
    """Let the layer write over its bottom where nobody misses the bottom."""
    if facts.traits.alias or not node.bottoms or not node.tops:
        return
    bottom, top = node.bottoms[0], node.tops[0]
    same_name = bottom.name == top.name
    stays = plan.retains_all or plan.roots[top.index].index in plan.kept  # the top's gradient
    plan.backward[node.index].in_place = facts.traits.backward_in_place and (same_name or not stays)
    root = plan.roots[bottom.index]
    others = {plan.roots[value.index].index for value in node.bottoms[1:]}
    free = (
        facts.traits.forward_in_place
        and last_reader[root.index] == node.index
        and root.index not in plan.kept
        and root.index not in others
    )
    saved = plan.saved.get(root.index)
    if plan.retains_all:
        free = free and same_name and saved is None
    elif saved is not None and saved.form == Form.RAW:
        free = False
    plan.forward[node.index].in_place = free


def _plan_releases(plan: MemoryPlan, graph: Graph, last_reader: dict[int, int]) -> None:
    for value in graph.values:
        if plan.roots[value.index] is not value:
            continue
        step = plan.forward[last_reader[value.index]]
        saved = plan.saved.get(value.index)
        if saved is not None:
            overwritten = (
                step.in_place
                and plan.roots[graph.nodes[last_reader[value.index]].bottoms[0].index] is value
            )
            (step.save_before if overwritten else step.save_after).append(value)
            lowest = min(reader.layer for reader in saved.readers)
            plan.backward[lowest].release.append(value)
        if value.index not in plan.kept:
            step.release.append(value)
