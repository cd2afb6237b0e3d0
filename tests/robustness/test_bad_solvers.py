"""Solver settings that cannot be are found before anything runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import make_solver
from small import fill, net_text

from caffe.lr_policy import learning_rate
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net

SETTINGS = {
    "base_lr: nan": "base_lr is nan, needs to be a number from 0 up",
    "base_lr: -1": "base_lr is -1",
    "momentum: 1.5": "momentum is 1.5, needs to be from 0 to below 1",
    "momentum: nan": "momentum is nan",
    "weight_decay: nan": "weight_decay is nan",
    "clip_gradients: inf": "clip_gradients is inf",
    "max_iter: -5": "max_iter is -5",
    "snapshot: -1": "snapshot is -1",
    "test_iter: 0 test_interval: 1": "test_iter of test net 0 is 0",
    "test_iter: 1": "test_interval is 0, needs more than 0",
    'lr_policy: "poly" power: 1 max_iter: 0': "'poly' has max_iter 0",
}
COMPRESSION = {
    "error_bound: inf": "error_bound is inf",
    "sigma_factor: -1": "sigma_factor is -1",
    "bound_cap: nan": "bound_cap is nan",
    "paper_a: -1": "paper_a is -1",
    "negative_factor: 0.5": "negative_factor is 0.5, needs to be from 1 to 1024",
    "negative_factor: nan": "negative_factor is nan",
}


@pytest.mark.parametrize("text", SETTINGS)
def test_setting(text: str) -> None:
    with pytest.raises(ValueError, match=SETTINGS[text]):
        make_solver(parse_net(net_text()), text)


@pytest.mark.parametrize("text", COMPRESSION)
def test_compression_of_the_solver_and_of_a_layer(text: str) -> None:
    with pytest.raises(ValueError, match=f"^compression_param: {COMPRESSION[text]}"):
        make_solver(parse_net(net_text()), compression=f"mode: ADAPTIVE {text}")
    net = parse_net(net_text(options=f"compression_param {{ mode: FIXED {text} }}"))
    with pytest.raises(ValueError, match=rf"layer 'c2' \(Convolution\): .*{COMPRESSION[text]}"):
        make_solver(net)


@pytest.mark.parametrize("text", ['keep: "m"', "interval: 5", "display: 0", 'memory_limit: "1G"'])
def test_what_only_the_solver_can_say(text: str) -> None:
    net = parse_net(net_text(options=f"compression_param {{ {text} }}"))
    with pytest.raises(ValueError, match=r"layer 'c2' .* belongs in the solver"):
        make_solver(net)


def test_base_lr_and_max_iter_must_be_there() -> None:
    param = pb.SolverParameter()
    param.CopyFrom(make_solver(parse_net(net_text())).param)
    param.ClearField("max_iter")
    solver = make_solver(parse_net(net_text()))
    solver.param.CopyFrom(param)
    with pytest.raises(ValueError, match="no max_iter"):
        solver.solve()
    param.ClearField("base_lr")
    with pytest.raises(ValueError, match="no base_lr"):
        type(solver)(param)


def test_snapshot_folder_that_cannot_be_written(tmp_path: Path) -> None:
    text = 'snapshot_after_train: true snapshot_prefix: "{}"'
    with pytest.raises(OSError, match="nothing can be written in its folder '/proc'"):
        make_solver(parse_net(net_text()), text.format("/proc/x"))  # not even root can
    make_solver(parse_net(net_text()), text.format(tmp_path / "x"))
    assert not list(tmp_path.iterdir())


def test_rates_beyond_what_numbers_hold() -> None:
    late = pb.SolverParameter(base_lr=1, lr_policy="sigmoid", gamma=1, stepsize=100000)
    assert learning_rate(late, 0) == 0
    for policy, gamma in (("exp", 10), ("inv", -1), ("inv", -2)):
        param = pb.SolverParameter(base_lr=1, lr_policy=policy, gamma=gamma, power=0.5)
        with pytest.raises(ValueError, match=f"'{policy}' gives no learning rate at iteration"):
            learning_rate(param, 1 if policy == "inv" else 400)


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS", "FIXED", "ADAPTIVE"])
def test_step_goes_on_after_a_stop_and_an_error(mode: str) -> None:
    solver = make_solver(parse_net(net_text()), compression=f"mode: {mode}")
    fill(solver.net)
    solver.request_stop()
    solver.step(2)
    assert solver.iter == 0
    solver.step(2)
    assert solver.iter == 2
    solver.net.blobs["label"].data[1] = 10
    with pytest.raises(RuntimeError, match=r"layer 'loss' .* sample 1 is 10"):
        solver.step(1)
    for batch in (3, 1, 6):
        fill(solver.net, batch)
        solver.step(1)
    assert solver.iter == 5
    assert np.isfinite(solver.net.loss())
