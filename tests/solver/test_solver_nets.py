"""Every way in which a solver can name its nets, and when and how test nets run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import caffe
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net, parse_solver
from caffe.solver import Solver
from caffe.solver_nets import solver_nets

NET = """
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
RULES = """
layer { name: "train" type: "ReLU" bottom: "ip" top: "train" include { phase: TRAIN } }
layer { name: "test" type: "ReLU" bottom: "ip" top: "test" include { phase: TEST } }
layer { name: "deep" type: "ReLU" bottom: "ip" top: "deep" include { min_level: 2 } }
layer { name: "staged" type: "ReLU" bottom: "ip" top: "staged" include { stage: "a" } }
"""
SETTINGS = 'base_lr: 0.1 lr_policy: "fixed" snapshot_after_train: false solver_mode: CPU '


def named(name: str) -> str:
    return f'name: "{name}" {NET} {RULES}'


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "c"):
        Path(f"{name}.prototxt").write_text(named(name))


def nets(text: str, phase: int) -> list[str]:
    return [net.name for net, _ in solver_nets(parse_solver(text), phase)]


#: Solver text -> names of the net to train and of those to test.
FORMS = {
    'net: "a.prototxt"': ("a", []),
    'net: "a.prototxt" test_iter: 1': ("a", ["a"]),
    'net: "a.prototxt" test_iter: 1 test_iter: 2': ("a", ["a", "a"]),
    'net_param { name: "n" } test_iter: 1': ("n", ["n"]),
    'train_net: "a.prototxt"': ("a", []),
    'train_net: "a.prototxt" test_net: "b.prototxt" test_iter: 1': ("a", ["b"]),
    'train_net: "a.prototxt" test_net: "b.prototxt" test_net: "c.prototxt" test_iter: [1, 2]': (
        "a",
        ["b", "c"],
    ),
    'train_net_param { name: "n" } test_net_param { name: "t" } test_iter: 1': ("n", ["t"]),
    'train_net_param { name: "n" } test_net: "b.prototxt" test_net_param { name: "t" } '
    "test_iter: [1, 1]": ("n", ["t", "b"]),
    'net: "a.prototxt" test_net: "b.prototxt" test_iter: [1, 1]': ("a", ["b", "a"]),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    train, tests = FORMS[text]
    text += " test_interval: 1"
    assert nets(text, pb.TRAIN) == [train]
    assert nets(text, pb.TEST) == tests


WRONG = {
    'net: "a.prototxt" net_param { }': "has both net and net_param; use one",
    'train_net: "a.prototxt" test_iter: 1': "has 1 test_iter for 0 test nets",
    'train_net: "a.prototxt" test_net: "b.prototxt"': "has 0 test_iter for 1 test nets",
    'net: "a.prototxt" test_net: "b.prototxt" test_net: "c.prototxt" test_iter: 1': (
        "has 1 test_iter for 2 test nets"
    ),
    'net: "a.prototxt" test_iter: 1 test_state { } test_state { }': (
        "has 2 test_state for 1 test nets"
    ),
    'net: "a.prototxt" test_iter: 1 test_interval: 0': "test_interval is 0, needs more than 0",
    "": "names 0 nets to train, needs one of net, net_param",
    'net: "a.prototxt" train_net: "b.prototxt"': "names 2 nets to train",
    'net: "d.prototxt"': "'d.prototxt' does not exist",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_does_not_fit(text: str) -> None:
    interval = "" if "test_interval" in text else "test_interval: 1 "
    with pytest.raises((ValueError, FileNotFoundError), match=WRONG[text]):
        caffe.get_solver(parse_solver(SETTINGS + interval + text))


def layers_of(net: caffe.Net) -> set[str]:
    return {"train", "test", "deep", "staged"} & set(net.layer_dict)


def test_states_of_the_nets() -> None:
    solver = caffe.get_solver(
        parse_solver(
            SETTINGS + 'net: "a.prototxt" test_interval: 1 test_iter: [1, 1] '
            'train_state { stage: "a" } test_state { level: 2 } test_state { stage: "a" }'
        )
    )
    assert layers_of(solver.net) == {"train", "staged"}
    assert [layers_of(net) for net in solver.test_nets] == [{"test", "deep"}, {"test", "staged"}]


def test_the_state_in_the_net_counts_as_well() -> None:
    solver = caffe.get_solver(
        parse_solver(
            SETTINGS + f"train_net_param {{ {named('n')} state {{ level: 3 }} }} "
            'train_state { stage: "a" }'
        )
    )
    assert layers_of(solver.net) == {"train", "deep", "staged"}


def solver_of(text: str) -> Solver:
    param = pb.SolverParameter()
    text_format.Merge(SETTINGS + "max_iter: 4 test_interval: 2 test_iter: 3 " + text, param)
    param.net_param.CopyFrom(parse_net(NET))
    return caffe.get_solver(param)


@pytest.mark.parametrize(
    ("text", "tested"),
    [
        ("", [0, 2, 4]),
        ("test_initialization: false", [2, 4]),
        ("max_iter: 3", [0, 2]),
    ],
)
def test_when_it_tests(text: str, tested: list[int], capfd: pytest.CaptureFixture[str]) -> None:
    solver_of(text).solve()
    log = capfd.readouterr().err
    found = [int(n) for n in re.findall(r"Iteration (\d+), Testing net \(#0\)", log)]
    assert found == tested


def test_the_mean_loss_of_a_test(capfd: pytest.CaptureFixture[str]) -> None:
    solver = solver_of("test_compute_loss: true")
    losses = []
    forward = solver.test_nets[0].forward
    solver.test_nets[0].forward = lambda: losses.append(forward()["loss"].item()) or {}
    solver.test(0)
    assert len(losses) == 3
    shown = re.search(r"Test loss: (\S+)", capfd.readouterr().err)
    assert shown is not None
    np.testing.assert_allclose(float(shown[1]), np.mean(losses), rtol=1e-5)
    solver_of("").test(0)
    assert "Test loss" not in capfd.readouterr().err
