"""What a running net is made of: its layers with what was decided about them, its values' buffers.

Plain data, which net.py makes, buffers.py and kept_values.py fill and executor.py runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from caffe._core import Tensor
from caffe._core.layers import BatchSlice, ForwardContext, Propagation
from caffe._core.store import StoredActivation
from caffe.graph import Node
from caffe.layer_types.base import LayerLike
from caffe.memory_plan import LayerFacts, SavedValue
from caffe.recomputation import Way

MOST_VALUES = 2**62

FactorOf = Callable[[tuple[int, Way]], float]  # of a step of a recipe: what multiplies an error


class BoundSource(Protocol):
    """Where the executor gets error bounds, and whom it tells what it saw."""

    def bound(self, saved: SavedValue, tensor: Tensor, factor_of: FactorOf) -> float:
        """Absolute error bound for this value, about to be compressed."""

    def saw_stored(self, saved: SavedValue, stored: StoredActivation) -> None:
        """The value was stored so."""

    def wants_gradient(self, layer: int) -> bool:
        """Whether saw_gradient() should be called in this backward pass."""

    def saw_gradient(self, layer: int, gradient: Tensor, terms: int, batch: int) -> None:
        """The gradient of the layer's first top; `terms` as Layer.gradient_terms()."""


@dataclass(frozen=True)
class BatchPart:
    """Samples [begin, end) of a batch that goes slice by slice."""

    index: int
    begin: int
    end: int
    batch: int

    @property
    def is_first(self) -> bool:
        """Whether it is the first slice of its batch."""
        return self.begin == 0

    @property
    def is_last(self) -> bool:
        """Whether it is the last slice of its batch."""
        return self.end == self.batch

    @property
    def core(self) -> BatchSlice:
        """The same, for the layers of the core."""
        return BatchSlice(self.index, self.begin, self.is_last)

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of this part of a value of that shape."""
        return (self.end - self.begin, *shape[1:])


def parts_of(batch: int, size: int) -> list[BatchPart]:
    """Slices of `size` samples, the last one smaller where they do not come out even."""
    return [
        BatchPart(index, begin, min(begin + size, batch), batch)
        for index, begin in enumerate(range(0, batch, size))
    ]


@dataclass
class StoredPart:
    """One slice of a value, as it is kept; `part` is None for the whole value."""

    part: BatchPart | None
    activation: StoredActivation


@dataclass
class Slot:
    """The buffers of one value, as they are right now."""

    shape: tuple[int, ...] = ()  # of the whole batch
    data: Tensor | None = None  # of root values only
    diff: Tensor | None = None
    data_part: BatchPart | None = None  # what part of the value `data` is; None: all of it
    diff_part: BatchPart | None = None
    stored: list[StoredPart] = field(default_factory=list)  # of root values only
    expected_bytes: int = 0  # compressed size the last time, of a slice where there are slices
    nonzero_share: float | None = None  # when it was last counted

    @property
    def count(self) -> int:
        """Number of elements."""
        return count_of(self.shape)


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
    context: ForwardContext = field(default_factory=lambda: ForwardContext(False))  # of the last
    # forward pass
    parts: list[BatchPart] = field(default_factory=list)  # of the last forward pass; none: whole


@dataclass
class Hooks:
    """What users want called around each layer, with the layer's index."""

    before_forward: list[Callable[[int], None]] = field(default_factory=list)
    after_forward: list[Callable[[int], None]] = field(default_factory=list)
    before_backward: list[Callable[[int], None]] = field(default_factory=list)
    after_backward: list[Callable[[int], None]] = field(default_factory=list)


def check_shape(blob: str, shape: Sequence[int]) -> None:
    """Raise ValueError for a shape that no tensor can have."""
    if min(shape, default=0) < 0:
        raise ValueError(f"blob '{blob}' cannot have shape {_times(shape)}: a size is negative")
    if count_of(shape) > MOST_VALUES:
        raise ValueError(f"blob '{blob}' cannot have shape {_times(shape)}: more than 2^62 values")


def count_of(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "()"
