"""The six solver types: which settings they take, what they keep, what bounds learn from them."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from nets import batches, make_solver, small_models, train

import caffe
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net, parse_solver
from caffe.solver_types import SOLVERS

INNER = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 6 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  param { lr_mult: 2 } param { lr_mult: 0 }
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
TYPES = {
    "SGD": "momentum: 0.9",
    "Nesterov": "momentum: 0.9",
    "AdaGrad": "momentum: 0",
    "RMSProp": "momentum: 0 rms_decay: 0.9",
    "AdaDelta": "momentum: 0.95 delta: 1e-6 base_lr: 1",
    "Adam": "momentum: 0.9 momentum2: 0.99",
}
WRONG = {
    ("AdaGrad", "momentum: 0.9"): "momentum is 0.9, but solver type AdaGrad has none: leave it out",
    ("RMSProp", "momentum: 0.1"): "momentum is 0.1, but solver type RMSProp has none",
    ("RMSProp", "momentum: 0 rms_decay: 1"): "rms_decay is 1, solver type RMSProp needs it to be",
    ("RMSProp", "momentum: 0 rms_decay: -0.1"): "rms_decay is -0.1",
    ("Adam", "momentum2: 1"): "momentum2 is 1, solver type Adam needs it to be from 0 to below 1",
    ("Adam", "momentum: 1"): "momentum is 1, needs to be from 0 to below 1",
    ("Adam", "delta: 0"): "delta is 0, solver type Adam needs more than 0",
    ("AdaDelta", "delta: -1"): "delta is -1",
    ("AdaGrad", "momentum: 0 delta: nan"): "delta is nan",
}


def test_every_type_is_tried() -> None:
    assert list(TYPES) == list(SOLVERS)


@pytest.mark.parametrize(("kind", "text"), WRONG)
def test_settings_a_type_cannot_do_with(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=WRONG[kind, text]):
        make_solver(parse_net(INNER), f'type: "{kind}" {text}')


def test_unknown_type_is_named_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="unknown solver type 'adam'; did you mean 'Adam'"):
        make_solver(parse_net(INNER), 'type: "adam"')


@pytest.mark.parametrize("legacy", pb.SolverParameter.SolverType.keys())
def test_the_legacy_enum_makes_the_class(legacy: str) -> None:
    momentum = "momentum: 0" if legacy in ("ADAGRAD", "RMSPROP") else "momentum: 0.9"
    solver = caffe.get_solver(
        parse_solver(
            f'solver_type: {legacy} base_lr: 0.1 lr_policy: "fixed" {momentum} '
            f"snapshot_after_train: false net_param {{ {INNER} }}"
        )
    )
    assert solver.type.upper() == legacy
    assert type(solver).__name__ == f"{solver.type}Solver"
    assert type(solver) is getattr(caffe, f"{solver.type}Solver")


def test_a_class_of_another_type_than_the_file_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    param = pb.SolverParameter()
    param.CopyFrom(make_solver(parse_net(INNER)).param)
    assert caffe.AdamSolver(param).type == "Adam"
    assert capfd.readouterr().err == ""
    param.type = "Nesterov"
    caffe.AdamSolver(param)
    assert "type is 'Nesterov', but AdamSolver trains it with Adam" in capfd.readouterr().err


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_learns_and_leaves_what_is_frozen(kind: str) -> None:
    solver = make_solver(parse_net(INNER), f'type: "{kind}" base_lr: 0.05 {TYPES[kind]}')
    assert len(solver.history) == 2 * SOLVERS[kind].histories
    rng = np.random.default_rng(1)
    batch = (rng.standard_normal((4, 6)).astype(np.float32), np.array([0, 1, 2, 1], np.float32))
    bias = solver.net.params["ip"][1].data.copy()
    losses = train(solver, [batch] * 30)
    assert losses[-1] < 0.8 * losses[0]
    np.testing.assert_array_equal(solver.net.params["ip"][1].data, bias)


@pytest.mark.parametrize("kind", TYPES)
def test_mean_momentum_is_in_units_of_the_gradient(kind: str) -> None:
    text = f'type: "{kind}" {TYPES[kind]} iter_size: 2 base_lr: 0.125'
    solver = make_solver(parse_net(INNER), text)
    train(solver, batches((4, 6), 1, classes=3) * 5)
    index = 0  # ip's weights, lr_mult 2
    gradient = np.abs(solver.net.params["ip"][0].diff).mean() / 2
    history = np.abs(solver.history[0].numpy()).mean()
    expected = {
        "SGD": history / 0.25,
        "Nesterov": history / 0.25,
        "Adam": history / 0.1,
    }.get(kind, gradient)
    np.testing.assert_allclose(solver.mean_momentum(index), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", TYPES)
def test_adaptive_bounds_are_set_and_training_goes_on(kind: str) -> None:
    net, shape = small_models()["lenet"]
    text = f'type: "{kind}" base_lr: 0.001 {TYPES[kind]}'
    solver = make_solver(net, text, "mode: ADAPTIVE interval: 2")
    losses = train(solver, batches(shape, 6))
    assert np.isfinite(losses).all()
    rows = [row for row in solver.net.compression_report() if row.saved.form.name == "BOUNDED"]
    assert rows
    for row in rows:
        assert 0 < row.error_bound < np.inf


@pytest.mark.parametrize("kind", TYPES)
def test_only_histories_that_hold_the_rate_make_a_refresh_wait_for_them(kind: str) -> None:
    net, shape = small_models()["lenet"]
    text = f'type: "{kind}" {TYPES[kind]} lr_policy: "step" gamma: 0.1 stepsize: 2 base_lr: 0.001'
    solver = make_solver(net, text, "mode: ADAPTIVE interval: 2")
    train(solver, batches(shape, 3))
    # 3 / (1 - 0.9) iterations after the drop at iteration 3, counted from 1; otherwise 3.
    assert solver.schedule.next == (33 if kind in ("SGD", "Nesterov") else 6)


@pytest.mark.parametrize("kind", ["L2", "L1"])
def test_regularisation_pulls_by_weight_or_by_sign(kind: str) -> None:
    text = f'regularization_type: "{kind}" weight_decay: 0.25 momentum: 0 base_lr: 0.5'
    solver = make_solver(parse_net(INNER), text)
    weights = solver.net.params["ip"][0].data
    before = weights.copy()
    solver.net.clear_param_diffs()
    solver.apply_update()
    pull = before if kind == "L2" else np.sign(before)
    np.testing.assert_allclose(weights, before - 0.5 * 2 * 0.25 * pull, rtol=1e-6)


def test_unknown_regularisation() -> None:
    with pytest.raises(ValueError, match="unknown regularization_type 'l2'; did you mean 'L2'"):
        make_solver(parse_net(INNER), 'regularization_type: "l2"')


def test_share_weights_and_callbacks() -> None:
    solver = make_solver(parse_net(INNER))
    net = caffe.Net(parse_net(INNER), caffe.TEST)
    solver.share_weights(net)
    events = []
    solver.add_callback(
        lambda: events.append("start"),
        lambda: events.append(float(np.abs(solver.net.params["ip"][0].diff).sum())),
    )
    before = net.params["ip"][0].data.copy()
    train(solver, batches((4, 6), 2, classes=3))
    assert events[0] == events[2] == "start"
    assert events[1] > 0
    assert np.abs(net.params["ip"][0].data - before).max() > 0
    np.testing.assert_array_equal(net.params["ip"][0].data, solver.net.params["ip"][0].data)


def test_text_of_all_types_is_a_solver() -> None:
    for kind, text in TYPES.items():
        param = text_format.Parse(f'type: "{kind}" {text}', pb.SolverParameter())
        SOLVERS[kind].check_rule(param)
