"""The nets that a solver names: to train and to test, each with the state that it is to be in."""

from __future__ import annotations

from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_net


def solver_nets(param: pb.SolverParameter, phase: int) -> list[tuple[pb.NetParameter, pb.NetState]]:
    """Return the nets that a solver names for a phase, each with the state it is to be in.

    For TEST: one for each test_iter. Raises ValueError where their numbers do not fit.
    """
    shared = [read_net(param.net)] if param.HasField("net") else []
    if param.HasField("net_param"):
        shared.append(param.net_param)
    if len(shared) > 1:
        raise ValueError("the solver has both net and net_param; use one")
    if phase == pb.TRAIN:
        nets = [param.train_net_param] if param.HasField("train_net_param") else []
        nets += [read_net(param.train_net)] if param.HasField("train_net") else []
        nets += shared
        return [(net, _state(net, param.train_state, phase)) for net in nets]

    nets = [*param.test_net_param, *map(read_net, param.test_net)]
    count = len(param.test_iter)
    if count < len(nets) or (count > len(nets) and not shared):
        raise ValueError(f"the solver has {count} test_iter for {len(nets)} test nets")
    nets += shared * (count - len(nets))
    if count and param.test_interval <= 0:
        raise ValueError(f"test_interval is {param.test_interval}, needs more than 0")
    if param.test_state and len(param.test_state) != count:
        raise ValueError(f"the solver has {len(param.test_state)} test_state for {count} test nets")
    states = list(param.test_state) or [pb.NetState()] * count
    return [(net, _state(net, state, phase)) for net, state in zip(nets, states)]


def _state(net: pb.NetParameter, solver_state_: pb.NetState, phase: int) -> pb.NetState:
    state = pb.NetState(phase=phase)  # type: ignore[arg-type]
    state.MergeFrom(net.state)
    state.MergeFrom(solver_state_)
    state.phase = phase  # type: ignore[assignment]
    return state
