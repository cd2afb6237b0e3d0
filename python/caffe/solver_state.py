"""What a solver state holds beyond Caffe's fields: a resumed run equals the uninterrupted one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from caffe import log
from caffe.error_bound import GradientStatistics, ValueBound
from caffe.layer_types.base import PythonLayer
from caffe.proto import caffe_pb2 as pb

if TYPE_CHECKING:
    from caffe.net import Net
    from caffe.solver import Solver

_FORWARD_COUNT = ""  # the name under which the net's own count of passes is kept


def collect(solver: Solver, state: pb.CometState) -> None:
    """Write bounds, statistics, counters, data positions and the loss window into `state`."""
    graph = solver.net.graph
    for index, value in solver.bounds.values.items():
        entry = state.bound.add(
            value=f"{index}:{graph.values[index].name}",
            nonzero_share=value.nonzero_share,
            std=value.std,
        )
        if value.bound is not None:
            entry.error_bound = value.bound
    for index, statistics in solver.bounds.gradients.items():
        state.gradient_statistics.add(
            layer=graph.nodes[index].name,
            magnitude=statistics.magnitude,
            momentum=statistics.momentum,
        )
    state.next_refresh = solver.schedule.next
    if solver.schedule.last_rate is not None:
        state.learning_rate = solver.schedule.last_rate
    state.plan_hash = solver.net.executor.plan_digest()
    state.random_seed = solver.seed
    state.random_counter.add(layer=_FORWARD_COUNT, count=solver.net.executor.forward_count)
    state.loss_window.extend(solver.loss_window)
    for prefix, net in _nets(solver):
        for name, layer in _data_layers(net):
            state.data_position.add(layer=prefix + name, position=layer.position)  # type: ignore[attr-defined]


def apply(solver: Solver, state: pb.CometState) -> None:
    """Set the solver to what collect() wrote; bounds only where the memory plan is the same."""
    solver.loss_window.extend(state.loss_window)
    for counter in state.random_counter:
        if counter.layer == _FORWARD_COUNT:
            solver.net.executor.forward_count = counter.count
    if solver.param.random_seed < 0:
        solver.net.reseed(state.random_seed)
        solver.seed = state.random_seed
    positions = {entry.layer: entry.position for entry in state.data_position}
    for prefix, net in _nets(solver):
        for name, layer in _data_layers(net):
            if prefix + name in positions:
                layer.position = positions[prefix + name]  # type: ignore[attr-defined]
    if state.plan_hash != solver.net.executor.plan_digest():
        log.warning(
            "the solver state was written under another memory plan: error bounds start afresh"
        )
        return
    _apply_bounds(solver, state)


def _apply_bounds(solver: Solver, state: pb.CometState) -> None:
    solver.schedule.next = state.next_refresh
    if state.HasField("learning_rate"):
        solver.schedule.last_rate = state.learning_rate
    for entry in state.bound:
        index = int(entry.value.split(":", 1)[0])
        bound = entry.error_bound if entry.HasField("error_bound") else None
        solver.bounds.values[index] = ValueBound(bound, entry.nonzero_share, entry.std)
    layers = {node.name: node.index for node in solver.net.graph.nodes}
    for statistics in state.gradient_statistics:
        solver.bounds.gradients[layers[statistics.layer]] = GradientStatistics(
            magnitude=statistics.magnitude, momentum=statistics.momentum
        )


def _nets(solver: Solver) -> list[tuple[str, Net]]:
    tests = [(f"test {index}: ", net) for index, net in enumerate(solver.test_nets)]
    return [("", solver.net), *tests]


def _data_layers(net: Net) -> list[tuple[str, object]]:
    """Layers in Python that say where in their data they are."""
    return [
        (runtime.node.name, runtime.layer.layer)
        for runtime in net.executor.layers
        if isinstance(runtime.layer, PythonLayer) and hasattr(runtime.layer.layer, "position")
    ]
