"""How much memory a solver's net will take, before it trains, and the fastest way to take less.

The peak counts what memory.peak() counts: everything of the core but parameters, their gradients
and history, which come on top ("fixed"). `python/caffe/dry_run.py` does the counting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from caffe.dry_run import DryExecutor
from caffe.executor import Executor
from caffe.memory_plan import MemoryPlan


@dataclass
class ValueEstimate:
    """How one value is kept, and what it is expected to take, in bytes."""

    name: str  # of the blob
    producer: str  # the layer that writes it
    kept_as: str  # raw, lossless, bounded or sign; "worked out" from others; "not kept"
    raw: int
    stored: int


@dataclass
class MemoryEstimate:
    """What a training iteration is expected to take, in bytes."""

    plain_peak: int  # the same net in mode NONE: plain Caffe
    planned_peak: int
    stored: int  # between forward and backward
    peak_layer: str
    plain_layer: str
    fixed: int  # parameters, their gradients and history, which come on top of both peaks
    slice: int  # samples of a slice; 0: the whole batch
    values: list[ValueEstimate]

    def as_dict(self) -> dict[str, object]:
        """Return it as plain dictionaries and lists, for JSON."""
        return asdict(self)


def estimate(executor: Executor, plain: MemoryPlan, fixed: int) -> MemoryEstimate:
    """Estimate a training iteration under the executor's plan and slices, and under `plain`.

    Args:
        executor: of a net that is set up, whose buffers are not touched.
        plain: the plan of mode NONE.
        fixed: bytes of parameters, their gradients and history.
    """
    dry = DryExecutor(executor, executor.plan, executor.slice_size)
    dry.run()
    baseline = DryExecutor(executor, plain, 0)
    baseline.run()
    values = list(_values(executor, dry))
    return MemoryEstimate(
        plain_peak=baseline.meter.peak,
        planned_peak=dry.meter.peak,
        stored=dry.own_bytes + sum(value.stored for value in values),
        peak_layer=dry.meter.peak_layer,
        plain_layer=baseline.meter.peak_layer,
        fixed=fixed,
        slice=executor.slice_size,
        values=values,
    )


def _values(executor: Executor, dry: DryExecutor) -> Iterator[ValueEstimate]:
    plan, nodes = executor.plan, executor.graph.nodes
    for value in executor.graph.values:
        if plan.roots[value.index] is not value:
            continue
        report = dry.reports.get(value.index)
        kept = "worked out" if value.index in plan.recipes else "not kept"
        if plan.retains_all:
            kept = "raw"
        raw = 4 * executor.slots[value.index].count
        yield ValueEstimate(
            value.name,
            nodes[value.producer].name,
            report.saved.form.name.lower() if report else kept,
            raw,
            report.stored_bytes if report else raw if plan.retains_all else 0,
        )


def fit(executor: Executor, fixed: int, limit: int) -> int:
    """Return the largest slice (0: the whole batch) with which training stays below `limit`.

    The larger the slices, the faster: layers work best on many samples at a time.

    Args:
        executor: of a net that is set up.
        fixed: bytes of parameters, their gradients and history.
        limit: bytes for all, these included.

    Raises:
        ValueError: not even slices of one sample fit; says what the least is.
    """
    least = None
    for size in _slice_sizes(executor):
        dry = DryExecutor(executor, executor.plan, size)
        dry.run()
        total = fixed + dry.meter.peak
        if total <= limit:
            return size
        if least is None or total < least[0]:
            least = total, dry.meter.peak_layer
    assert least is not None
    raise ValueError(
        f"memory_limit: {limit / 2**20:.0f} MiB are not enough: the least is "
        f"{least[0] / 2**20:.0f} MiB, of which {fixed / 2**20:.0f} are parameters, their gradients "
        f"and history; the peak is at layer '{least[1]}' (a smaller batch_size would lower it)"
    )


def _slice_sizes(executor: Executor) -> Iterator[int]:
    """What may be asked of slices, fastest first: the size in force, then halves of the batch."""
    yield executor.slice_size
    batches = [
        executor.slots[layer.node.bottoms[0].index].shape[0]
        for layer in executor.layers
        if layer.facts.traits.slices and layer.node.bottoms
    ]
    size = max(batches, default=1)
    while size > 1:
        size = (size + 1) // 2
        if not 0 < executor.slice_size <= size:
            yield size
