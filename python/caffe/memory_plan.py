"""The memory plan: which values are kept for backward, in which form, and when buffers die.

Made once from the graph and from what each layer declares (needs and traits). It decides; the
executor carries it out; error_bound.py sets the bounds. It holds no buffers and does no arithmetic.
Which values are kept and which are worked out again is recomputation.py's choice.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from caffe._core.layers import BoundRule, Inverse, Needs, Quality, Traits
from caffe._core.store import Form
from caffe.graph import Graph, Node, Value
from caffe.proto import caffe_pb2 as pb
from caffe.recomputation import (
    SMALL_COUNT,
    LayerCosts,
    Level,
    Recipe,
    Recomputation,
    Way,
    expected_bytes,
    sparse_roots,
)

Mode = pb.CompressionParameter

_LEVELS = {
    Quality.SIGN: Level.SIGN,
    Quality.BOUNDED: Level.BOUNDED,
    Quality.BOUNDED_SIGN: Level.BOUNDED_SIGN,
    Quality.EXACT: Level.RAW,
}
_FORMS = {
    Level.SIGN: Form.SIGN,
    Level.BOUNDED: Form.BOUNDED,
    Level.BOUNDED_SIGN: Form.BOUNDED,
    Level.LOSSLESS: Form.LOSSLESS,
    Level.RAW: Form.RAW,
}


class Zeros(enum.Enum):
    """What is 0 of the value that a reader sees, told by the saved one that it comes from."""

    SAME = 0  # what is 0 there
    NEGATIVE = 1  # what is 0 or negative there
    UNKNOWN = 2


#: Types whose output is 0 where their input is, as far as error bounds are concerned.
_KEEP_ZEROS = frozenset({"Concat", "Dropout", "LRN", "Slice"})


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
    path: tuple[tuple[int, Way], ...] = ()  # the recipes between the saved value and the one read
    zeros: Zeros = Zeros.SAME
    # Of the saved value. Not where a ReLU is in between, nor in front of one for BatchNorm and
    # Scale, to which no gradient comes back there.
    negatives_matter: bool = True

    @property
    def level(self) -> Level:
        """How well the value has to be known, in this reader's mode."""
        if self.compression.mode == Mode.NONE:
            return Level.RAW
        fixed_at_0 = self.compression.mode == Mode.FIXED and self.compression.error_bound == 0
        exact = self.compression.mode == Mode.LOSSLESS or fixed_at_0
        if exact and self.quality != Quality.SIGN:
            return max(_LEVELS[self.quality], Level.LOSSLESS)
        return _LEVELS[self.quality]


Readers = dict[int, list[BackwardReader]]  # by index of root value


@dataclass
class SavedValue:
    """How one value lives between forward and backward."""

    value: Value
    level: Level
    form: Form
    readers: list[BackwardReader]  # of it, and of what is worked out from it
    expected_bytes: int = 0  # what it is expected to take, before any is known

    @property
    def keep_sign(self) -> bool:
        """Whether the sign of every element must survive."""
        return self.level in (Level.SIGN, Level.BOUNDED_SIGN)

    @property
    def dither(self) -> bool:
        """Whether it is stored with subtractive dither: a reader's layer asks for it."""
        return any(reader.compression.dither for reader in self.readers)

    @property
    def negative_factor(self) -> float:
        """What the bound of negative values is multiplied by."""
        matter = any(
            reader.negatives_matter or reader.compression.mode != Mode.ADAPTIVE
            for reader in self.readers
        )
        if matter or self.level != Level.BOUNDED_SIGN:
            return 1.0
        return min(reader.compression.negative_factor for reader in self.readers)


@dataclass
class ForwardStep:
    """What happens around one layer's forward pass. Lists hold root values."""

    in_place: bool = False  # top 0 is written over bottom 0
    inverts: bool = False  # backward will work out bottom 0 from top 0
    save_before: list[Value] = field(default_factory=list)
    save_after: list[Value] = field(default_factory=list)
    release: list[Value] = field(default_factory=list)


@dataclass
class BackwardStep:
    """What happens around one layer's backward pass. Lists hold root values."""

    in_place: bool = False  # the gradient of bottom 0 is written over that of top 0
    release: list[Value] = field(default_factory=list)
    drop: list[int] = field(default_factory=list)  # layers that then let go of what they kept


@dataclass
class MemoryPlan:
    """The whole plan. `retains_all` is plain Caffe: every blob stays readable."""

    retains_all: bool
    roots: list[Value]  # by value index: the value whose buffer it shares (itself, mostly)
    kept: frozenset[int]  # root values (by index) that are never released
    saved: dict[int, SavedValue]  # by index of root value
    recipes: dict[int, Recipe]  # by index of root value: what is worked out again in backward
    direct_readers: Readers  # by index of root value: the layers whose backward reads it
    release_at: dict[int, int]  # by index of root value: the layer after whose backward nobody
    # wants the value any more
    last_reader: dict[int, int]  # by index of root value: in forward; its writer if nobody reads it
    forward: list[ForwardStep]
    backward: list[BackwardStep]

    def wanted_only_for(self, source: Value, root: Value, layer: int) -> bool:
        """Whether from layer `layer` down a value serves nothing but working out `root`."""
        if any(reader.layer <= layer for reader in self.direct_readers.get(source.index, ())):
            return False
        return all(
            index == root.index or source not in recipe.inputs
            for index, recipe in self.recipes.items()
            if self.release_at.get(index, -1) <= layer
        )

    def wanted_once(self, root: Value, layer: int) -> bool:
        """Whether backward from `layer` down asks just once for a value or what follows from it.

        One recipe uses it, or one layer reads it, and the same is true of what the recipe gives.
        """
        readers = self.direct_readers.get(root.index, ())
        reads = any(reader.layer <= layer for reader in readers)
        users = [
            self.roots[index]
            for index, recipe in self.recipes.items()
            for value in recipe.inputs
            if value is root
        ]
        return reads + len(users) <= 1 and all(self.wanted_once(user, layer) for user in users)

    def digest(self, slice_size: int = 0) -> str:
        """Return a hash of what is kept how; a resumed run must have the same."""
        lines = [
            f"{saved.value.index} {saved.value.name} {saved.form.name} {saved.level.name}"
            for _, saved in sorted(self.saved.items())
        ]
        lines += [
            f"{root} {recipe.way.value} {recipe.layer}"
            for root, recipe in sorted(self.recipes.items())
        ]
        lines += [f"slice {slice_size}"] if slice_size else []
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
    readers = _backward_readers(graph, facts, roots) if saves else {}
    if retains_all:
        saved = {
            index: SavedValue(graph.values[index], Level.RAW, Form.RAW, value_readers)
            for index, value_readers in readers.items()
        }
        recipes: dict[int, Recipe] = {}
    else:
        saved, recipes = _choose(graph, facts, roots, kept, count, readers)
    plan = MemoryPlan(
        retains_all=retains_all,
        roots=roots,
        kept=kept,
        saved=saved,
        recipes=recipes,
        direct_readers=readers,
        release_at={},
        last_reader=_last_readers(graph, roots),
        forward=[ForwardStep() for _ in graph.nodes],
        backward=[BackwardStep() for _ in graph.nodes],
    )
    for node in graph.nodes:
        _plan_in_place(plan, node, facts[node.index])
    for recipe in recipes.values():
        if recipe.way == Way.INVERT and facts[recipe.layer].traits.inverse == Inverse.VALUE:
            plan.forward[recipe.layer].inverts = True
    if not retains_all:
        _plan_recipes(plan)
        _plan_releases(plan, graph)
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


def _backward_readers(graph: Graph, facts: Sequence[LayerFacts], roots: list[Value]) -> Readers:
    readers: Readers = {}
    for node, fact in zip(graph.nodes, facts):
        if not fact.runs_backward:
            continue
        wanted = list(zip(node.bottoms, fact.needs.bottoms)) + list(zip(node.tops, fact.needs.tops))
        for value, need in wanted:
            if need.quality != Quality.NOTHING:
                readers.setdefault(roots[value.index].index, []).append(
                    BackwardReader(node.index, need.quality, need.rule, fact.compression)
                )
    return readers


def _choose(
    graph: Graph,
    facts: Sequence[LayerFacts],
    roots: list[Value],
    kept: frozenset[int],
    count: Callable[[Value], int],
    readers: Readers,
) -> tuple[dict[int, SavedValue], dict[int, Recipe]]:
    """Decide what is saved, in which form and for whom, and what is worked out again."""
    demands = {
        index: {reader.level for reader in value_readers}
        for index, value_readers in readers.items()
    }
    costs = [
        LayerCosts(fact.traits, fact.runs_backward, fact.compression.recompute) for fact in facts
    ]
    decision = Recomputation(graph, roots, costs, demands, kept, count).solve()
    saved = {}
    sparse = sparse_roots(graph, roots)
    for index, level in sorted(decision.saved.items()):
        root = graph.values[index]
        raw = index in kept or (level != Level.SIGN and count(root) < SMALL_COUNT)
        size = count(root)
        expected = 4 * size if raw else expected_bytes(level, size, index in sparse)
        saved[index] = SavedValue(root, level, Form.RAW if raw else _FORMS[level], [], expected)
    telling = _Telling(graph, facts, roots, decision.recipes, saved)
    for index, value_readers in readers.items():
        for reader in value_readers:
            exact_signs = replace(reader, negatives_matter=reader.quality != Quality.SIGN)
            telling.tell(index, exact_signs)
    return saved, decision.recipes


class _Telling:
    """Enters readers at the saved values that what they read is worked out from."""

    def __init__(
        self,
        graph: Graph,
        facts: Sequence[LayerFacts],
        roots: list[Value],
        recipes: dict[int, Recipe],
        saved: dict[int, SavedValue],
    ) -> None:
        self._facts = facts
        self._graph = graph
        self._recipes = recipes
        self._saved = saved
        self._rectified = _rectified_roots(graph, facts, roots)

    def tell(self, index: int, reader: BackwardReader) -> None:
        """Enter a reader of this root value."""
        if index in self._saved:
            self._saved[index].readers.append(reader)
            return
        recipe = self._recipes[index]
        for value in recipe.inputs:
            further = replace(
                reader,
                path=(*reader.path, recipe.step),
                zeros=self._zeros_before(recipe.layer, reader.zeros),
                negatives_matter=self._negatives_matter(recipe, value, reader),
            )
            self.tell(value.index, further)

    def _negatives_matter(self, recipe: Recipe, source: Value, reader: BackwardReader) -> bool:
        traits = self._facts[recipe.layer].traits
        if reader.quality == Quality.SIGN or (recipe.way == Way.RERUN and traits.rectifies):
            return False
        if recipe.way == Way.INVERT:
            return reader.rule != BoundRule.NORMALISED or source.index not in self._rectified
        return reader.negatives_matter or not traits.keeps_sign

    def _zeros_before(self, layer: int, behind: Zeros) -> Zeros:
        if behind != Zeros.UNKNOWN and self._facts[layer].traits.rectifies:
            return Zeros.NEGATIVE
        kept = self._graph.nodes[layer].type in _KEEP_ZEROS
        return behind if kept else Zeros.UNKNOWN


def _rectified_roots(graph: Graph, facts: Sequence[LayerFacts], roots: list[Value]) -> set[int]:
    """Root values that nobody reads in forward but a ReLU: no gradient comes where it is 0."""
    others: set[int] = set()
    rectified: set[int] = set()
    for value in graph.values:
        for layer, _ in value.readers:
            traits = facts[layer].traits
            if not traits.alias:
                found = rectified if traits.rectifies else others
                found.add(roots[value.index].index)
    return rectified - others


def _plan_recipes(plan: MemoryPlan) -> None:
    """Find how long values are wanted, and how long what layers keep of their own."""
    readers = plan.direct_readers
    for index, value_readers in readers.items():
        plan.release_at[index] = min(reader.layer for reader in value_readers)
    own = {index: index for index in range(len(plan.backward))}  # layer -> when it lets go

    def note(index: int, layer: int) -> None:
        recipe = plan.recipes[index]
        own[recipe.layer] = min(own[recipe.layer], layer)
        for value in recipe.inputs:
            until = plan.release_at.get(value.index, layer)
            plan.release_at[value.index] = min(until, layer)
            if value.index in plan.recipes:
                note(value.index, layer)

    for index in plan.recipes:
        if index in readers:
            note(index, min(reader.layer for reader in readers[index]))
    for layer, step in own.items():
        plan.backward[step].drop.append(layer)


def _last_readers(graph: Graph, roots: list[Value]) -> dict[int, int]:
    """Root index -> last layer that reads it in forward (its writer where nothing does)."""
    last = {value.index: value.producer for value in graph.values if roots[value.index] is value}
    for value in graph.values:
        root = roots[value.index].index
        last[root] = max(last[root], value.producer, *(layer for layer, _ in value.readers), -1)
    return last


def _plan_in_place(plan: MemoryPlan, node: Node, facts: LayerFacts) -> None:
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
        and plan.last_reader[root.index] == node.index
        and root.index not in plan.kept
        and root.index not in others
    )
    saved = plan.saved.get(root.index)
    if plan.retains_all:
        free = free and same_name and saved is None
    elif saved is not None and saved.form == Form.RAW:
        free = False
    plan.forward[node.index].in_place = free


def _plan_releases(plan: MemoryPlan, graph: Graph) -> None:
    for value in graph.values:
        if plan.roots[value.index] is not value:
            continue
        last = plan.last_reader[value.index]
        step = plan.forward[last]
        if value.index in plan.saved:
            overwritten = step.in_place and plan.roots[graph.nodes[last].bottoms[0].index] is value
            (step.save_before if overwritten else step.save_after).append(value)
        if value.index in plan.release_at:
            plan.backward[plan.release_at[value.index]].release.append(value)
        if value.index not in plan.kept:
            step.release.append(value)
