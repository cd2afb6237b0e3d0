"""What check_bounds() measures, against the formula, NumPy and runs without errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from google.protobuf import text_format
from nets import batches, make_solver, model, parameters, train

import caffe
from caffe import bound_check
from caffe.proto import caffe_pb2 as pb
from caffe.solver import Solver

SHAPE = (32, 1, 28, 28)
WIDE = "mode: ADAPTIVE sigma_factor: 1e9"  # the cap decides


def trained(compression: str, steps: int = 12) -> Solver:
    solver = make_solver(model("fashion_cnn", SHAPE), compression=compression)
    train(solver, batches(SHAPE, steps))
    return solver


@pytest.mark.parametrize(
    "compression",
    [f"{WIDE} bound_cap: 0.05", f"{WIDE} bound_cap: 0.1", f"{WIDE} bound_cap: 1 dither: true"],
)
def test_the_formula_predicts_what_is_measured(compression: str) -> None:
    rows = caffe.check_bounds(trained(compression))
    ratios = {row.layer: row.ratio for row in rows if not math.isnan(row.ratio)}
    assert set(ratios) == {
        "conv2",
        "conv3",
        "conv4",
        "conv5",
        "conv6",
        "fc",
    }  # conv1 reads an input
    for layer, ratio in ratios.items():
        # Wide bounds err less than uniformly near 0, where signs are kept.
        assert 0.75 < ratio < 1.2, (layer, ratio)


def test_tiny_bounds_leave_gradients_alone_and_wide_ones_do_not() -> None:
    tiny = caffe.check_bounds(trained("mode: FIXED error_bound: 1e-5"))
    wide = caffe.check_bounds(trained("mode: FIXED error_bound: 0.5"))
    assert [row.layer for row in tiny] == [row.layer for row in wide]
    for small, large in zip(tiny, wide):
        assert small.bound_share == pytest.approx(1e-5, rel=1e-3)
        assert large.bound_share == pytest.approx(0.5, rel=1e-3)
        if not math.isnan(small.carried):
            assert small.carried < 1e-3 * small.weight_gradient
            assert large.carried > 100 * small.carried
        if not math.isnan(small.data_carried):
            assert small.data_carried < 1e-4
    norms = [row for row in wide if row.type == "BatchNorm"]
    assert len(norms) == 6
    for row in norms:
        assert 1e-4 < row.data_error <= row.data_carried + 1e-3 < 0.2
    assert all(row.data_error == 0 for row in wide if row.type == "Convolution")


def two_products(compression: str) -> Solver:
    net = text_format.Parse(
        """layer { name: "data" type: "Input" top: "data"
                   input_param { shape { dim: 64 dim: 50 } } }
           layer { name: "t" type: "Input" top: "t"
                   input_param { shape { dim: 64 dim: 7 } } }
           layer { name: "a" type: "InnerProduct" bottom: "data" top: "a"
                   inner_product_param { num_output: 40 weight_filler { type: "xavier" } } }
           layer { name: "b" type: "InnerProduct" bottom: "a" top: "b"
                   inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
           layer { name: "loss" type: "EuclideanLoss" bottom: "b" bottom: "t" top: "loss" }""",
        pb.NetParameter(),
    )
    return make_solver(net, compression=f"mode: FIXED error_bound: 0.1 {compression}")


def test_the_error_of_one_layer_is_numpys() -> None:
    solver = two_products("bound_type: ABS")
    rng = np.random.default_rng(3)
    batch = {"data": rng.standard_normal((64, 50)), "t": rng.standard_normal((64, 7))}
    (row,) = caffe.check_bounds(solver, batch)
    weights = [blobs[0].data.astype(np.float64) for blobs in solver.net.params.values()]
    a = batch["data"] @ weights[0].T
    dy = (a @ weights[1].T - batch["t"]) / 64
    assert row.layer == "b"
    assert row.bound_share == pytest.approx(0.1 / a.std(), rel=1e-4)
    assert row.weight_gradient == pytest.approx(np.sqrt(np.mean((dy.T @ a) ** 2)), rel=1e-4)
    expected = 0.1 / math.sqrt(3) * np.sqrt(np.mean(dy**2)) * math.sqrt(64)
    assert row.predicted == pytest.approx(expected, rel=1e-4)
    assert row.measured == row.carried == pytest.approx(expected, rel=0.2)
    assert row.data_error == 0


def test_errors_that_follow_the_values_are_seen() -> None:
    # The same sample 64 times: plain rounding errs the same 64 times, and errors add up.
    rng = np.random.default_rng(4)
    batch = {"data": np.tile(rng.standard_normal(50), (64, 1)), "t": np.full((64, 7), 100.0)}
    (plain,) = caffe.check_bounds(two_products("dither: false"), batch)
    (dithered,) = caffe.check_bounds(two_products("dither: true"), batch)
    assert 0.7 * 8 < plain.ratio < 1.3 * 8  # sqrt(64)
    assert 0.8 < dithered.ratio < 1.2


def test_checking_leaves_training_as_it_was() -> None:
    data = batches(SHAPE, 6)
    compression = "mode: ADAPTIVE dither: true bound_cap: 0.3"
    plain = make_solver(model("fashion_cnn", SHAPE), compression=compression)
    checked = make_solver(model("fashion_cnn", SHAPE), compression=compression)
    train(plain, data)
    bound_check.check_regularly(checked, 2)
    train(checked, data)
    for one, other in zip(parameters(plain), parameters(checked)):
        np.testing.assert_array_equal(one, other)


class Counting(caffe.Layer):
    """Counts batches, and can go back."""

    position = 0
    differentiable_bottoms = 0
    backward_reads_data = False

    def reshape(self, bottom: object, top: list) -> None:  # type: ignore[type-arg]
        top[0].reshape(*SHAPE)
        top[1].reshape(SHAPE[0])

    def forward(self, bottom: object, top: list) -> None:  # type: ignore[type-arg]
        images, labels = batches(SHAPE, 1, seed=self.position)[0]
        top[0].data[...] = images
        top[1].data[...] = labels
        self.position += 1


def counting_solver() -> Solver:
    net = pb.NetParameter()
    source = net.layer.add(name="data", type="Python", top=["data", "label"])
    source.python_param.module, source.python_param.layer = __name__, "Counting"
    net.layer.extend(layer for layer in model("fashion_cnn", SHAPE).layer if layer.type != "Input")
    return make_solver(net, compression=f"{WIDE} bound_cap: 0.1")


def test_the_next_batch_is_measured_and_still_trained_on() -> None:
    solver = counting_solver()
    solver.step(3)
    rows = caffe.check_bounds(solver)
    same = caffe.check_bounds(solver, dict(zip(("data", "label"), batches(SHAPE, 1, seed=3)[0])))
    assert rows[0].layer == "conv1"  # its input comes from a layer of data: kept within a bound
    assert repr(rows) == repr(same)  # nan differs from itself, its text does not
    assert solver.net.executor.layers[0].layer.layer.position == 3  # type: ignore[attr-defined]
    solver.step(1)


def test_refusals() -> None:
    exact = trained("mode: LOSSLESS", 1)
    with pytest.raises(ValueError, match="needs mode FIXED or ADAPTIVE"):
        caffe.check_bounds(exact)
    with pytest.raises(ValueError, match="needs mode FIXED or ADAPTIVE"):
        bound_check.check_regularly(exact, 10)
    solver = trained("mode: ADAPTIVE", 1)
    images, labels = batches(SHAPE, 1)[0]
    with pytest.raises(ValueError, match=r"has arrays for \['data'\], needs \['data', 'label'\]"):
        caffe.check_bounds(solver, {"data": images})
    with pytest.raises(ValueError, match=r"'data' has shape \(5, 1, 28, 28\), needs \(32,"):
        caffe.check_bounds(solver, {"data": images[:5], "label": labels})


def test_table() -> None:
    rows = caffe.check_bounds(trained("mode: ADAPTIVE bound_cap: 0.3", 3))
    lines = bound_check.table(rows)
    assert len(lines) == len(rows) + 1
    assert len({line.split()[0] for line in lines}) == len(lines)
    text = dict(zip([line.split()[0] for line in lines], lines))
    conv2 = next(row for row in rows if row.layer == "conv2")
    assert f"{conv2.predicted:.2e}" in text["conv2"]
    assert f"{conv2.measured:.2e}" in text["conv2"]
