"""Measures what error bounds do to gradients, against what the model of error_bound.py predicts.

Two nets with a solver's weights run the same batch: one keeps what backward reads bit for bit, the
other within the bounds in force. They go backward side by side, and each layer of the second gets
the first's exact gradient of its output: what differs is then that layer's own doing. A second pass
without that shows what of it arrives at the bottom of the net. The solver is left as it was.

    for row in caffe.check_bounds(solver):
        print(row.layer, row.predicted, row.measured, row.measured / row.predicted)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from caffe import log
from caffe._core import Tensor, memory
from caffe._core.layers import BoundRule
from caffe._core.store import Form, Statistics, StoredActivation
from caffe.error_bound import ErrorBounds, FactorOf, gradient_error, nonzero_std, read_share
from caffe.graph import Node
from caffe.layer_types.base import Layer, PythonLayer
from caffe.memory_plan import SavedValue
from caffe.net import Net, Settings
from caffe.proto import caffe_pb2 as pb

if TYPE_CHECKING:
    from caffe.solver import Solver

FloatArray = npt.NDArray[np.float32]


@dataclass
class BoundRow:
    """What the bounds did to the gradients of one layer, in one pass over one batch.

    Errors of dW are of its first blob, and root mean squares: a bias counts too. nan: the layer has
    no such gradient, or no formula.
    """

    layer: str
    type: str
    bound_share: float  # of the value it reads: bound over standard deviation of the non-zeros
    predicted: float = math.nan  # error of dW by the formula, in units of the gradient
    measured: float = math.nan  # error of dW that the layer itself makes
    carried: float = math.nan  # error of dW with what reaches the layer from above
    weight_gradient: float = math.nan  # rms of the exact dW
    data_error: float = math.nan  # relative error of dx that the layer makes: rms over rms
    data_carried: float = math.nan  # the same with what reaches the layer from above

    @property
    def ratio(self) -> float:
        """Measured over predicted error of dW; nan without a prediction."""
        return self.measured / self.predicted if self.predicted > 0 else math.nan


def check_bounds(
    solver: Solver, batch: Mapping[str, npt.ArrayLike] | None = None
) -> list[BoundRow]:
    """Measure the errors that the bounds in force cause in the gradients of one batch.

    Takes four passes forward and backward, and the memory of two more nets with their weights,
    compressed; call it between steps.

    Args:
        solver: one whose net is compressed; bounds are those of its next iteration.
        batch: blob name -> array for every top of the net's data layers, in their shapes. By
            default the batch that the next iteration will train on, which it still gets; data
            layers in Python without a `position` skip it.

    Returns:
        A row for each layer that reads a value kept within a bound, in the order of the net.

    Raises:
        ValueError: mode NONE or LOSSLESS, which have no bounds; a batch that does not fit.
    """
    _require_bounds(solver)
    arrays = next_batch(solver.net) if batch is None else _fitting(solver.net, batch)
    observer = _Observer(solver.bounds)
    lossless = pb.CompressionParameter(mode=pb.CompressionParameter.LOSSLESS)
    exact = _probe(solver, arrays, Settings(lossless, solver.seed, bounds=ErrorBounds()), False)
    settings = Settings(solver.param.compression_param, solver.seed, bounds=observer)
    bounded = _probe(solver, arrays, settings, True)
    for net in (exact, bounded):
        _copy_state(solver.net, net)
    try:
        rows = _rows(bounded)
        for row, difference in zip(rows.values(), _compare(exact, bounded, rows, own=True)):
            row.measured, row.data_error = difference.weights, difference.data
            row.weight_gradient = difference.weight_gradient
        _predict(bounded, observer, rows)
        for row, difference in zip(rows.values(), _compare(exact, bounded, rows, own=False)):
            row.carried, row.data_carried = difference.weights, difference.data
    finally:
        for net in (exact, bounded):
            net.executor.release_all()
        del exact, bounded
        memory.trim()  # what it took does not stay with the process
    return list(rows.values())


def check_regularly(solver: Solver, interval: int) -> None:
    """Log the table of check_bounds() before iterations `interval`, 2 * `interval` and so on.

    Raises ValueError where nothing is kept within a bound.
    """
    _require_bounds(solver)

    def check() -> None:
        if solver.iter > 0 and solver.iter % interval == 0:
            log.info(f"Iteration {solver.iter}, errors of gradients")
            for line in table(check_bounds(solver)):
                log.info(f"    {line}")

    solver.add_callback(check, None)


def _require_bounds(solver: Solver) -> None:
    if not any(saved.form == Form.BOUNDED for saved in solver.net.executor.plan.saved.values()):
        raise ValueError(
            "nothing is kept within a bound, so there is none to check: the solver's "
            "compression_param needs mode FIXED or ADAPTIVE"
        )


def table(rows: Sequence[BoundRow]) -> list[str]:
    """Lines of a table: bound, error of dW predicted, measured and with the rest, that of dx."""
    width = max([len("layer"), *(len(row.layer) for row in rows)])
    lines = [
        f"{'layer':<{width}}  {'bound/std':>9}  {'dW error by formula':>19}  {'measured':>9}  "
        f"{'ratio':>5}  {'carried':>9}  {'rms of dW':>9}  {'dx error':>8}  {'carried':>8}"
    ]
    for row in rows:
        ratio = "" if math.isnan(row.ratio) else f"{row.ratio:.2f}"
        lines.append(
            f"{row.layer:<{width}}  {row.bound_share:>9.3f}  {_number(row.predicted):>19}  "
            f"{_number(row.measured):>9}  {ratio:>5}  {_number(row.carried):>9}  "
            f"{_number(row.weight_gradient):>9}  {_percent(row.data_error):>8}  "
            f"{_percent(row.data_carried):>8}"
        )
    return lines


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2e}"


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.3f}%"


# -- the batch -------------------------------------------------------------------------------------


def next_batch(net: Net) -> dict[str, FloatArray]:
    """Return copies of what the net's data layers give next, and put them back to where they were.

    A data layer in Python without a `position`, as those of users, cannot go back.
    """
    arrays: dict[str, FloatArray] = {}
    executor = net.executor
    for node in _sources(net):
        runner = executor.layers[node.index].layer
        source = runner.layer if isinstance(runner, PythonLayer) else None
        position = getattr(source, "position", None)
        if node.type != "Input":
            count = executor.forward_count
            executor.forward(node.index, node.index, hold=node.tops)
            executor.forward_count = count
        for top in node.tops:
            arrays[top.name] = executor.data(top).numpy().copy()
        if position is not None:
            source.position = position  # type: ignore[union-attr]
    return arrays


def _fitting(net: Net, batch: Mapping[str, npt.ArrayLike]) -> dict[str, FloatArray]:
    arrays = {name: np.asarray(values, dtype=np.float32) for name, values in batch.items()}
    names = [top.name for node in _sources(net) for top in node.tops]
    if set(arrays) != set(names):
        raise ValueError(f"the batch has arrays for {sorted(arrays)}, needs {sorted(names)}")
    for node in _sources(net):
        for top in node.tops:
            shape = net.executor.slots[top.index].shape
            if arrays[top.name].shape != shape:
                raise ValueError(
                    f"the batch's '{top.name}' has shape {arrays[top.name].shape}, needs {shape}"
                )
    return arrays


def _sources(net: Net) -> list[Node]:
    """Return the layers that give data: neither bottoms nor weights."""
    return [n for n in net.graph.nodes if not n.bottoms and n.name not in net.params]


class _Batch(Layer):
    """Gives the arrays that it was given; stands where a net has a layer of data.

    param_str: JSON list of the tops' shapes.
    """

    differentiable_bottoms = 0
    backward_reads_data = False

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the shapes."""
        self.shapes = json.loads(self.param_str)
        self.arrays: list[FloatArray] = []

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set them."""
        for blob, shape in zip(top, self.shapes):
            blob.reshape(*shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Copy the arrays."""
        for blob, array in zip(top, self.arrays):
            blob.data[...] = array

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing."""


# -- the two nets ----------------------------------------------------------------------------------


def _probe(
    solver: Solver, arrays: Mapping[str, FloatArray], settings: Settings, overrides: bool
) -> Net:
    """Return a net as the solver's, fed with `arrays`; `overrides`: layers' own compression too."""
    param = pb.NetParameter(name=solver.net.name)
    sources = {node.index for node in _sources(solver.net) if node.type != "Input"}
    for node in solver.net.graph.nodes:
        layer = param.layer.add()
        if node.index in sources:
            layer.name, layer.type = node.name, "Python"
            layer.top.extend(top.name for top in node.tops)
            layer.python_param.module, layer.python_param.layer = __name__, _Batch.__name__
            shapes = [arrays[top.name].shape for top in node.tops]
            layer.python_param.param_str = json.dumps(shapes)
            continue
        layer.CopyFrom(node.param)
        del layer.blobs[:]
        if not overrides:
            layer.ClearField("compression_param")
    net = Net.from_param(param, pb.NetState(phase=pb.TRAIN), settings)
    for node in _sources(net):
        if node.index in sources:
            source = net.layers[node.index]
            assert isinstance(source, _Batch)
            source.arrays = [arrays[top.name] for top in node.tops]
            continue
        for top in node.tops:
            net.blobs[top.name].reshape(*arrays[top.name].shape)
            net.blobs[top.name].data[...] = arrays[top.name]
    return net


def _copy_state(source: Net, net: Net) -> None:
    """Copy weights, and the count that random numbers follow; gradients stay each net's own."""
    for name, blobs in source.params.items():
        for theirs, ours in zip(blobs, net.params[name]):
            ours.data[...] = theirs.data
    net.executor.forward_count = source.executor.forward_count


class _Observer:
    """Gives the bounds of another source, and notes what they meet. An executor's BoundSource."""

    def __init__(self, bounds: ErrorBounds) -> None:
        """Give these bounds."""
        self._bounds = bounds
        self.stored: dict[int, tuple[float, Statistics]] = {}  # by root value index
        self.rms: dict[int, float] = {}  # of the output's gradient, by layer index
        self.terms: dict[int, int] = {}

    def bound(self, saved: SavedValue, tensor: Tensor, factor_of: FactorOf) -> float:
        """Absolute error bound of the solver's next iteration."""
        return self._bounds.bound(saved, tensor, factor_of)

    def saw_stored(self, saved: SavedValue, stored: StoredActivation) -> None:
        """Note bound and statistics."""
        self.stored[saved.value.index] = stored.error_bound, stored.statistics

    def wants_gradient(self, layer: int) -> bool:
        """Whether to measure: always."""
        return True

    def saw_gradient(self, layer: int, gradient: Tensor, terms: int, batch: int) -> None:
        """Note what the formula needs."""
        self.rms[layer] = gradient.rms()
        self.terms[layer] = terms


# -- measuring -------------------------------------------------------------------------------------


@dataclass
class _Difference:
    """How far the gradients of one layer are off."""

    weights: float = math.nan
    weight_gradient: float = math.nan
    data: float = math.nan


@dataclass
class _Sums:
    """Sums of squares over several blobs: of errors, and of what they are errors of."""

    errors: float = 0.0
    values: float = 0.0
    count: int = 0

    def add(self, exact: Tensor, other: Tensor) -> None:
        """Add the values of two blobs."""
        values = exact.numpy().astype(np.float64)
        self.errors += float(np.square(other.numpy() - values).sum())
        self.values += float(np.square(values).sum())
        self.count += values.size


def _rows(net: Net) -> dict[int, BoundRow]:
    """Return an empty row for each layer that reads a bounded value, by layer index."""
    layers = {
        reader.layer
        for saved in net.executor.plan.saved.values()
        if saved.form == Form.BOUNDED
        for reader in saved.readers
    }
    nodes = [net.graph.nodes[index] for index in sorted(layers)]
    return {node.index: BoundRow(node.name, node.type, math.nan) for node in nodes}


def _compare(
    exact: Net, bounded: Net, rows: Mapping[int, BoundRow], *, own: bool
) -> list[_Difference]:
    """Run both nets forward and back, the same random numbers each time; one entry a row.

    Args:
        exact: the net without errors.
        bounded: the net with them.
        rows: the layers to measure.
        own: whether each layer of `bounded` starts from the exact gradient of its output.
    """
    differences = {index: _Difference() for index in rows}
    last = len(exact.graph.nodes) - 1
    for net in (exact, bounded):
        count = net.executor.forward_count
        net.executor.forward(0, last)
        net.executor.forward_count = count
        net.executor.seed_losses()
    for index in range(last, -1, -1):
        if not exact.executor.layers[index].facts.runs_backward:
            continue
        if own:
            _hand_over(exact, bounded, index)
        for net in (exact, bounded):
            for parameter in net.executor.layers[index].layer.parameters:
                parameter.clear_gradient()
            net.executor.backward(index, index)
        if index in rows:
            differences[index] = _difference(exact, bounded, index)
    return list(differences.values())


def _hand_over(exact: Net, bounded: Net, index: int) -> None:
    """Give the bounded net's layer the exact gradient of its outputs."""
    for top in exact.graph.nodes[index].tops:
        source, target = (net.executor.slots[top.index].diff for net in (exact, bounded))
        if source is not None and target is not None:
            target.copy_from(source)


def _difference(exact: Net, bounded: Net, index: int) -> _Difference:
    node = exact.graph.nodes[index]
    runtime = exact.executor.layers[index]
    result = _Difference()
    if runtime.propagation.parameters and runtime.propagation.parameters[0]:
        sums = _Sums()
        first, second = (
            net.executor.layers[index].layer.parameters[0].gradient for net in (exact, bounded)
        )
        sums.add(first, second)
        result.weights = math.sqrt(sums.errors / sums.count)
        result.weight_gradient = math.sqrt(sums.values / sums.count)
    sums = _Sums()
    for position, value in enumerate(node.bottoms):
        if runtime.propagation.bottoms[position]:
            source, target = (net.executor.slots[value.index].diff for net in (exact, bounded))
            if source is not None and target is not None:
                sums.add(source, target)
    if sums.values > 0:
        result.data = math.sqrt(sums.errors / sums.values)
    return result


def _predict(net: Net, observer: _Observer, rows: Mapping[int, BoundRow]) -> None:
    """Write the formula's figures into the rows, and how wide the bounds are."""
    for saved in net.executor.plan.saved.values():
        if saved.form != Form.BOUNDED:
            continue
        bound, statistics = observer.stored[saved.value.index]
        std = nonzero_std(statistics)
        for reader in saved.readers:
            row = rows[reader.layer]
            row.bound_share = bound / std if std > 0 else 0.0
            if reader.rule == BoundRule.GRADIENT and reader.layer in observer.rms:
                share = statistics.nonzeros / max(statistics.count, 1)
                share = read_share(reader, statistics, share)
                row.predicted = gradient_error(
                    bound, observer.rms[reader.layer], observer.terms[reader.layer], share
                )
