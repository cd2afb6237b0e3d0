"""The error model against measurement, and the control's degenerate cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from google.protobuf import text_format
from nets import batches, make_solver, small_models, train

import caffe
from caffe import sz
from caffe._core.layers import BoundRule, Quality
from caffe.error_bound import ErrorBounds, RefreshSchedule, fixed_bound, gradient_bound
from caffe.proto import caffe_pb2 as pb


def weight_gradient(x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Of a 3x3 convolution without padding: x N,C,H,W and dy N,K,H-2,W-2 give K,C,3,3."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("ncijab,nkij->kcab", windows, dy, optimize=True)


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("bound_in_std", [0.02, 0.1])
def test_gradient_error_is_the_predicted_one(share: float, bound_in_std: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, 6, 18, 18)).astype(np.float32)
    x[rng.random(x.shape) >= share] = 0
    dy = (rng.standard_normal((8, 16, 16, 16)) * np.exp(rng.standard_normal((8, 16, 1, 1)))).astype(
        np.float32
    )
    bound = bound_in_std * float(x[x != 0].std())
    restored = sz.decompress(sz.compress(x, bound))
    measured = (weight_gradient(restored, dy) - weight_gradient(x, dy)).std()
    rms = math.sqrt(float((dy.astype(np.float64) ** 2).mean()))
    # The bound for a wanted sigma, turned round: the sigma that this bound was for.
    per_sigma = gradient_bound(1.0, rms, 8 * 16 * 16, float((x != 0).mean()))
    assert per_sigma is not None
    assert 0.85 < measured / (bound / per_sigma) < 1.15


def test_adaptive_bounds_meet_sigma_in_a_net() -> None:
    net, shape = small_models()["fashion_cnn"]
    solver = make_solver(net, compression="mode: ADAPTIVE bound_cap: 1 sigma_factor: 1e-3")
    train(solver, batches(shape, 8))
    executor = solver.net.executor
    checked = 0
    for saved in executor.plan.saved.values():
        state = solver.bounds.values.get(saved.value.index)
        readers = [r for r in saved.readers if r.layer in solver.bounds.gradients]
        if state is None or not readers:
            continue
        statistics = solver.bounds.gradients[readers[0].layer]
        assert state.bound is not None and state.bound > 0
        assert state.nonzero_share > 0
        terms = executor.layers[readers[0].layer].layer.gradient_terms()
        expected = gradient_bound(
            1e-3 * statistics.momentum, statistics.magnitude, terms, state.nonzero_share
        )
        assert expected is not None
        # A refresh moves a bound by no more than a factor of 4.
        assert expected / 4 <= state.bound <= expected * 4
        checked += 1
    assert checked >= 5


@pytest.mark.parametrize(
    ("sigma", "rms", "share"),
    [(0, 1, 1), (1, 0, 1), (1, 1, 0), (math.nan, 1, 1), (1, math.inf, 1), (1, math.nan, 1)],
)
def test_statistics_that_give_no_bound(sigma: float, rms: float, share: float) -> None:
    assert gradient_bound(sigma, rms, 100, share) is None


@pytest.mark.parametrize(
    "text",
    [
        "momentum: 0",
        "base_lr: 0",
        "iter_size: 3",
        'lr_policy: "step" gamma: 0.1 stepsize: 2',
        "clip_gradients: 0.1",
    ],
)
def test_bounds_stay_positive_and_finite(text: str) -> None:
    net, shape = small_models()["lenet"]
    solver = make_solver(net, text, "mode: ADAPTIVE interval: 2")
    for loss in train(solver, batches(shape, 10)):
        assert math.isfinite(loss)
    reports = [row for row in solver.net.compression_report() if row.saved.form.name == "BOUNDED"]
    assert reports
    for row in reports:
        assert 0 < row.error_bound < math.inf


def test_dead_inputs_and_dead_gradients() -> None:
    net, shape = small_models()["lenet"]
    solver = make_solver(net, compression="mode: ADAPTIVE")
    images, labels = batches(shape, 1)[0]
    train(solver, [(np.zeros_like(images), labels)] * 5 + [(images, labels)] * 3)
    for blob in solver.net.learned:
        assert np.isfinite(blob.parameter.data.numpy()).all()


def test_a_frozen_layer_saves_nothing() -> None:
    net, shape = small_models()["lenet"]
    for layer in net.layer:
        if layer.name == "conv2":
            for spec in layer.param:
                spec.lr_mult = 0
    solver = make_solver(net, compression="mode: ADAPTIVE")
    train(solver, batches(shape, 2))
    names = {node.name: node.index for node in solver.net.graph.nodes}
    readers = {r.layer for saved in solver.net.executor.plan.saved.values() for r in saved.readers}
    assert names["conv2"] not in readers
    assert names["ip1"] in readers


@pytest.mark.parametrize(
    ("kind", "expected"), [("ABS", 0.5), ("REL", 0.5 * 3), ("STD", 0.5 * math.sqrt(1.25))]
)
def test_units_of_fixed_bounds(kind: str, expected: float) -> None:
    class Seen:
        count, nonzeros, sum, sum_squares, min, max = 6, 4, 2.0, 6.0, -1.0, 2.0

    compression = text_format.Parse(
        f"error_bound: 0.5 bound_type: {kind}", pb.CompressionParameter()
    )
    assert fixed_bound(compression, Seen()) == pytest.approx(expected)  # type: ignore[arg-type]


def test_refresh_schedule() -> None:
    schedule = RefreshSchedule(interval=10)
    refreshed = []
    for iteration in range(1, 60):
        schedule.rate_is(iteration, 0.1 if iteration < 40 else 0.01, momentum=0.5)
        if schedule.due(iteration):
            refreshed.append(iteration)
            schedule.done(iteration)
    # 1, 2, 4, 8, 16, then every 10; the drop at 40 puts the next off to 46.
    assert refreshed == [1, 2, 4, 8, 16, 26, 36, 46, 56]


def test_a_creeping_rate_is_no_step() -> None:
    schedule = RefreshSchedule(interval=10)
    for iteration in range(1, 60):
        schedule.rate_is(iteration, 0.1 * (1 - iteration / 100), momentum=0.9)
        if schedule.due(iteration):
            schedule.done(iteration)
    assert schedule.next == 66


def test_layer_overrides_win() -> None:
    net, shape = small_models()["lenet"]
    for layer in net.layer:
        if layer.name == "conv2":
            layer.compression_param.mode = pb.CompressionParameter.FIXED
            layer.compression_param.error_bound = 0.125
            layer.compression_param.bound_type = pb.CompressionParameter.ABS
        if layer.name == "ip1":
            layer.compression_param.mode = pb.CompressionParameter.NONE
    solver = make_solver(net, compression="mode: ADAPTIVE")
    train(solver, batches(shape, 5))
    forms = {
        solver.net.graph.nodes[row.saved.readers[0].layer].name: (
            row.saved.form.name,
            row.error_bound,
        )
        for row in solver.net.compression_report()
    }
    assert forms["conv2"] == ("BOUNDED", 0.125)
    assert forms["ip1"][0] == "RAW"


def test_an_override_under_mode_none_compresses_what_its_layer_reads_and_no_more() -> None:
    net, shape = small_models()["lenet"]
    for layer in net.layer:
        if layer.name == "conv2":
            layer.compression_param.mode = pb.CompressionParameter.FIXED
    # Else it would be worked out again from conv1's output, which NONE keeps in any case.
    solver = make_solver(net, compression="mode: NONE recompute: false")
    train(solver, batches(shape, 2))
    forms = {row.saved.value.name: row.saved.form.name for row in solver.net.compression_report()}
    assert forms["pool1"] == "BOUNDED"
    assert set(forms.values()) == {"BOUNDED", "RAW"}
    assert solver.net.blobs["pool2"].data.any()
    with pytest.raises(caffe.Error, match="pool1"):
        _ = solver.net.blobs["pool1"].data


def test_tightest_reader_wins() -> None:
    bounds = ErrorBounds()
    assert bounds.values == {}
    net, shape = small_models()["lenet"]
    # A second convolution of the same input with a fixed, tighter bound.
    copy = pb.LayerParameter()
    copy.CopyFrom(next(layer for layer in net.layer if layer.name == "conv2"))
    copy.name = "conv2b"
    copy.top[0] = "conv2b"
    copy.compression_param.mode = pb.CompressionParameter.FIXED
    copy.compression_param.bound_type = pb.CompressionParameter.ABS
    copy.compression_param.error_bound = 1e-4
    flat = pb.LayerParameter(name="silent", type="InnerProduct", bottom=["conv2b"], top=["silent"])
    flat.inner_product_param.num_output = 10
    flat.inner_product_param.weight_filler.type = "xavier"
    loss = pb.LayerParameter(
        name="loss2", type="SoftmaxWithLoss", bottom=["silent", "label"], top=["loss2"]
    )
    net.layer.extend([copy, flat, loss])
    solver = make_solver(net, compression="mode: ADAPTIVE")
    train(solver, batches(shape, 5))
    shared = [
        row
        for row in solver.net.compression_report()
        if {solver.net.graph.nodes[r.layer].name for r in row.saved.readers} >= {"conv2", "conv2b"}
    ]
    assert len(shared) == 1
    assert shared[0].error_bound <= 1e-4


def test_a_budget_lets_the_largest_err_most() -> None:
    """In proportion to the root of what is kept; some more and some less than without."""
    net, shape = small_models()["bvlc_reference_caffenet"]
    bounds, nonzeros = {}, {}
    for budget in ("false", "true"):
        solver = make_solver(
            net, compression=f"mode: ADAPTIVE recompute: false bound_cap: 1e9 budget: {budget}"
        )
        train(solver, batches(shape, 1))
        for saved in solver.net.executor.plan.saved.values():
            state = solver.bounds.values.get(saved.value.index)
            by_formula = all(
                reader.rule == BoundRule.GRADIENT
                for reader in saved.readers
                if reader.quality != Quality.SIGN
            )
            if state is not None and state.bound is not None and by_formula:
                bounds[budget, saved.value.name] = state.bound
                assert state.seen is not None
                nonzeros[saved.value.name] = state.seen.nonzeros
    shares = {name: bounds["true", name] / bounds["false", name] for name in nonzeros}
    assert len(shares) >= 3
    scale = [share / math.sqrt(nonzeros[name]) for name, share in shares.items()]
    assert max(scale) == pytest.approx(min(scale), rel=1e-3)
    assert min(shares.values()) < 1 < max(shares.values())
    assert sum(share**2 for share in shares.values()) == pytest.approx(len(shares), rel=0.01)
