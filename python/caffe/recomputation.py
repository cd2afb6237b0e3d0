"""What is kept for backward and what is worked out again from it: a minimum cut.

Nodes of the cut are (value, level), a level being how well backward knows the value. A node is
either saved, which costs its expected bits, or follows from other nodes: from a higher level of the
same value, or by a recipe that runs a cheap layer again (RERUN) or backwards (INVERT). Every node
has one way to follow, so the cheapest set that meets all needs is the minimum cut between what
forward knew and what backward reads.

A recipe's inputs have to be at a level that gives its output's: exact from exact, signs from values
whose signs were kept, values within a bound from values within a bound where the layer's error
factor is finite. Bounds are error_bound.py's affair; this decides before any is known.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from caffe._core.layers import Inverse, Traits
from caffe.graph import Graph, Value

#: Values of fewer elements are kept raw: a stream's header would eat the gain.
SMALL_COUNT = 1024


#: A value that is smaller by this factor than what it follows from is kept itself, not worked out
#: from values within a bound: restoring those would take longer.
_MUCH_SMALLER = 4


class Level(enum.IntEnum):
    """How well a value is known in backward. Each gives those below, but BOUNDED has no signs."""

    SIGN = 0
    BOUNDED = 1
    BOUNDED_SIGN = 2
    LOSSLESS = 3
    RAW = 4


#: Expected bits a value of dense values and of those that are mostly zeros. Measured on trained
#: nets at the default bounds (benchmarks/memory.py), rounded: only their order matters much.
_BITS = {
    Level.SIGN: (1.0, 1.0),
    Level.BOUNDED: (2.0, 1.5),
    Level.BOUNDED_SIGN: (2.0, 1.6),
    Level.LOSSLESS: (28.0, 15.0),
    Level.RAW: (32.0, 32.0),
}

_MAKES_ZEROS = frozenset({"ReLU", "Threshold"})
_KEEPS_ZEROS = frozenset({"Concat", "Dropout", "Eltwise", "Flatten", "LRN", "Pooling", "Slice"})


def expected_bytes(level: Level, count: int, sparse: bool) -> int:
    """Return what a value of `count` elements is expected to take, in bytes."""
    if count < SMALL_COUNT and level != Level.SIGN:
        return 4 * count
    return math.ceil(_BITS[level][sparse] * count / 8)


def sparse_roots(graph: Graph, roots: Sequence[Value]) -> set[int]:
    """Return the root values that are mostly zeros, by index: what comes of a ReLU."""
    sparse: set[int] = set()
    for value in graph.values:
        if roots[value.index] is not value:
            continue
        node = graph.nodes[value.producer]
        kept = node.type in _KEEPS_ZEROS and all(
            roots[bottom.index].index in sparse for bottom in node.bottoms
        )
        if node.type in _MAKES_ZEROS or (kept and node.bottoms):
            sparse.add(value.index)
    return sparse


class Way(enum.Enum):
    """In which direction a recipe runs its layer."""

    RERUN = "rerun"
    INVERT = "invert"


@dataclass(frozen=True)
class Recipe:
    """How a value is worked out in backward: by layer `layer`, from these root values."""

    way: Way
    layer: int
    inputs: tuple[Value, ...]
    level: Level  # of the inputs

    @property
    def step(self) -> tuple[int, Way]:
        """What an error in the inputs goes through."""
        return self.layer, self.way


@dataclass
class LayerCosts:
    """What the cut has to know of one layer."""

    traits: Traits
    runs_backward: bool  # so that it keeps what a recipe reads
    recompute: bool  # whether recipes may use it


@dataclass
class Decision:
    """Root values by index: at which level they are saved, or by which recipe they come."""

    saved: dict[int, Level]
    recipes: dict[int, Recipe]


class Recomputation:
    """Finds the cheapest set of values to keep."""

    def __init__(
        self,
        graph: Graph,
        roots: Sequence[Value],
        layers: Sequence[LayerCosts],
        demands: Mapping[int, set[Level]],
        free: frozenset[int],
        count: Callable[[Value], int],
    ) -> None:
        """Take note of what is wanted.

        Args:
            graph: the net.
            roots: by value index, the value whose buffer it shares.
            layers: one for each layer.
            demands: root index -> the levels at which backward reads it.
            free: root values that stay in memory anyway.
            count: number of elements of a value.
        """
        self._graph = graph
        self._roots = roots
        self._layers = layers
        self._direct = demands
        self._free = free
        self._count = count
        self._sparse = sparse_roots(graph, roots)
        self._readers = self._forward_readers()
        self._levels = {root: _with_union(levels) for root, levels in demands.items()}
        self._add_indirect_demands()

    def solve(self) -> Decision:
        """Return the cheapest way to meet all demands."""
        saved_nodes = self._cut()
        decision = Decision({}, {})
        for root, levels in self._direct.items():
            for level in levels:
                self._resolve(root, level, saved_nodes, decision)
        return decision

    # -- ways to follow ------------------------------------------------------------------------

    def _forward_readers(self) -> dict[int, set[int]]:
        """Root index -> layers that read it in forward, but for those that only pass it on."""
        readers: dict[int, set[int]] = {}
        for value in self._graph.values:
            root = self._roots[value.index].index
            for layer, _ in value.readers:
                if not self._layers[layer].traits.alias:
                    readers.setdefault(root, set()).add(layer)
        return readers

    def _add_indirect_demands(self) -> None:
        pending = list(self._levels)
        while pending:
            root = pending.pop()
            recipe = self._recipe(root, max(self._levels[root]))
            if recipe is None:
                continue
            for value in recipe.inputs:
                levels = self._levels.setdefault(value.index, set())
                more = _with_union({*levels, recipe.level})
                if more != levels:
                    self._levels[value.index] = more
                    pending.append(value.index)

    def _higher(self, root: int, level: Level) -> Level | None:
        """Return the next level of the same value that gives this one."""
        above = [other for other in self._levels[root] if other > level]
        if level == Level.SIGN:
            above = [other for other in above if other != Level.BOUNDED]
        return min(above, default=None)

    def _recipe(self, root: int, level: Level) -> Recipe | None:
        if root in self._free or level == Level.RAW:
            return None
        inverse = self._inverting_layer(root)
        if inverse is not None and level <= Level.BOUNDED:
            top = self._roots[self._graph.nodes[inverse].tops[0].index]
            selected = self._layers[inverse].traits.inverse == Inverse.SELECTED
            wanted = Level.BOUNDED_SIGN if selected else Level.BOUNDED
            return Recipe(Way.INVERT, inverse, (top,), wanted)
        return self._rerun(root, level)

    def _inverting_layer(self, root: int) -> int | None:
        """Return the layer that gives this value back from its top, if that is all that is needed.

        Then the top is never worked out from this value: they would wait for each other.
        """
        readers = self._readers.get(root, set())
        for layer in readers:
            if not self._usable(layer) or self._layers[layer].traits.alias:
                continue
            node = self._graph.nodes[layer]
            if self._roots[node.bottoms[0].index].index != root:
                continue
            inverse = self._layers[layer].traits.inverse
            wanted = self._direct.get(root, set())
            if inverse == Inverse.VALUE and wanted == {Level.BOUNDED}:
                return layer
            alone = len(readers) == 1 and not self._follows_normalisation(root)
            if inverse == Inverse.SELECTED and wanted == {Level.SIGN} and alone:
                return layer
        return None

    def _follows_normalisation(self, root: int) -> bool:
        """Whether the value follows from one that a normalisation needs anyway."""
        bottoms = self._graph.nodes[self._graph.values[root].producer].bottoms
        if not bottoms:
            return False
        before = self._roots[bottoms[0].index]
        node = self._graph.nodes[before.producer]
        inverse = self._layers[node.index].traits.inverse
        return (
            inverse == Inverse.VALUE
            and self._inverting_layer(self._roots[node.bottoms[0].index].index) == node.index
        )

    def _rerun(self, root: int, level: Level) -> Recipe | None:
        node = self._graph.nodes[self._graph.values[root].producer]
        traits = self._layers[node.index].traits
        inputs = tuple(self._roots[value.index] for value in node.bottoms)
        if not (traits.cheap and self._usable(node.index) and inputs and len(node.tops) == 1):
            return None
        if self._inverting_layer(inputs[0].index) == node.index:
            return None
        if level == Level.LOSSLESS:
            return Recipe(Way.RERUN, node.index, inputs, level)
        signs = level in (Level.SIGN, Level.BOUNDED_SIGN)
        if not math.isfinite(traits.error_factor):
            return None
        if signs and not traits.keeps_sign:
            return None
        sizes = [self._count(value) for value in inputs]
        if _MUCH_SMALLER * self._count(self._graph.values[root]) <= sum(sizes):
            return None  # its needs would bind the bound of all that it follows from
        wanted = Level.BOUNDED_SIGN if signs else level
        return Recipe(Way.RERUN, node.index, inputs, wanted)

    def _usable(self, layer: int) -> bool:
        return self._layers[layer].runs_backward and self._layers[layer].recompute

    # -- the cut -------------------------------------------------------------------------------

    def _nodes(self) -> Iterator[tuple[int, Level]]:
        for root, levels in sorted(self._levels.items()):
            for level in sorted(levels):
                yield root, level

    def _cut(self) -> set[tuple[int, Level]]:
        """Return the nodes that are saved."""
        network = nx.DiGraph()
        network.add_nodes_from(["known", "read"])
        for root, level in self._nodes():
            network.add_edge(
                ("in", root, level), ("out", root, level), capacity=self._cost(root, level)
            )
            higher = self._higher(root, level)
            recipe = self._recipe(root, level) if higher is None else None
            if higher is not None:
                network.add_edge(("out", root, higher), ("in", root, level))
            elif recipe is not None:
                for value in recipe.inputs:
                    network.add_edge(("out", value.index, recipe.level), ("in", root, level))
            else:
                network.add_edge("known", ("in", root, level))
            if level in self._direct.get(root, set()):
                network.add_edge(("out", root, level), "read")
        _, (known, _) = nx.minimum_cut(network, "known", "read")
        return {
            node for node in self._nodes() if ("in", *node) in known and ("out", *node) not in known
        }

    def _cost(self, root: int, level: Level) -> int:
        if root in self._free:
            return 0
        return expected_bytes(level, self._count(self._graph.values[root]), root in self._sparse)

    def _resolve(
        self, root: int, level: Level, saved: set[tuple[int, Level]], decision: Decision
    ) -> None:
        if (root, level) in saved or root in self._free:
            levels = {level, decision.saved.get(root, level)}
            decision.saved[root] = max(_with_union(levels))
            return
        higher = self._higher(root, level)
        if higher is not None:
            self._resolve(root, higher, saved, decision)
            return
        recipe = self._recipe(root, level)
        assert recipe is not None
        decision.recipes[root] = recipe
        for value in recipe.inputs:
            self._resolve(value.index, recipe.level, saved, decision)


def _with_union(levels: set[Level]) -> set[Level]:
    """Signs and values within a bound, both wanted, are kept together."""
    if {Level.SIGN, Level.BOUNDED} <= levels:
        return levels | {Level.BOUNDED_SIGN}
    return set(levels)
