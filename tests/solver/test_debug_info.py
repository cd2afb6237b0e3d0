"""The lines of debug_info against the arrays that they describe."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nets import batches, make_solver, train

import caffe
from caffe.prototxt import parse_net

SHAPE = (4, 1, 6, 6)
NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 1 dim: 6 dim: 6 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { name: "w" }
  param { lr_mult: 0 }
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "act" }
layer { name: "ip" type: "InnerProduct" bottom: "act" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
NUMBER = r"([-+.e0-9]+|nan|inf)"


def lines_of(log: str) -> list[str]:
    return [line.split("]     [", 1)[1] for line in log.splitlines() if "]     [" in line]


def number_after(text: str, lines: list[str]) -> float:
    found = [re.fullmatch(re.escape(text) + NUMBER, line) for line in lines]
    matches = [match for match in found if match]
    assert matches, f"{text} in {lines}"
    return float(matches[-1][1])


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS"])
def test_lines(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    keep = "" if mode == "NONE" else 'keep: ["conv", "act", "ip"]'
    net = parse_net(NET)
    solver = make_solver(net, "debug_info: true display: 1 momentum: 0", f"mode: {mode} {keep}")
    weights = solver.net.params["conv"][0].data.copy()
    train(solver, batches(SHAPE, 1, classes=3))
    lines = lines_of(capfd.readouterr().err)
    blobs, params = solver.net.blobs, solver.net.params

    def is_mean(text: str, values: np.ndarray) -> None:
        mean = np.abs(values.astype(np.float64)).mean()
        np.testing.assert_allclose(number_after(text, lines), mean, rtol=1e-5, err_msg=text)

    is_mean("Forward] Layer relu, top blob act data: ", blobs["act"].data)
    is_mean("Forward] Layer ip, top blob ip data: ", blobs["ip"].data)
    is_mean("Forward] Layer conv, param blob w data: ", weights)
    is_mean("Backward] Layer ip, bottom blob act diff: ", blobs["act"].diff)
    is_mean("Backward] Layer loss, bottom blob ip diff: ", blobs["ip"].diff)
    is_mean("Backward] Layer conv, param blob w diff: ", params["conv"][0].diff)
    is_mean("Backward] Layer ip, param blob 1 diff: ", params["ip"][1].diff)
    start = "Update] Layer conv, param w data: "
    update = next(line for line in lines if line.startswith(start))
    found = re.fullmatch(re.escape(start) + NUMBER + "; diff: " + NUMBER, update)
    assert found
    np.testing.assert_allclose(float(found[1]), np.abs(weights).mean(), rtol=1e-5)
    np.testing.assert_allclose(
        float(found[2]), np.abs(0.01 * params["conv"][0].diff).mean(), rtol=1e-3
    )

    # Nothing is said of gradients that nobody computes.
    assert not any("Backward] Layer conv, bottom" in line for line in lines)
    assert not any("Backward] Layer conv, param blob 1" in line for line in lines)

    gradients = [blob.parameter.gradient.numpy() for blob in solver.net.learned]
    totals = next(line for line in lines if line.startswith("Backward] All net params"))
    pattern = r"\(data, diff\): L1 norm = \({0}, {0}\); L2 norm = \({0}, {0}\)".replace(
        "{0}", NUMBER
    )
    norms = re.search(pattern, totals)
    assert norms
    flat = np.concatenate([gradient.ravel() for gradient in gradients]).astype(np.float64)
    np.testing.assert_allclose(float(norms[2]), np.abs(flat).sum(), rtol=1e-5)
    np.testing.assert_allclose(float(norms[4]), np.linalg.norm(flat), rtol=1e-5)


def test_only_where_lines_are_due(capfd: pytest.CaptureFixture[str]) -> None:
    solver = make_solver(parse_net(NET), "debug_info: true display: 2")
    data = batches(SHAPE, 4, classes=3)
    train(solver, data)
    totals = [line for line in lines_of(capfd.readouterr().err) if "All net params" in line]
    assert len(totals) == 2


def test_a_test_net_shows_its_forward_pass(capfd: pytest.CaptureFixture[str]) -> None:
    solver = make_solver(parse_net(NET), "debug_info: true test_iter: 1 test_interval: 1")
    solver.test(0)
    assert any("Layer ip, top blob ip data" in x for x in lines_of(capfd.readouterr().err))


def test_a_net_of_ones_own(capfd: pytest.CaptureFixture[str]) -> None:
    net = caffe.Net(parse_net("debug_info: true " + NET), caffe.TRAIN)
    net.forward()
    net.backward()
    lines = lines_of(capfd.readouterr().err)
    assert any(line.startswith("Forward] Layer conv, top blob conv") for line in lines)
    assert any(line.startswith("Backward] Layer ip, bottom blob act") for line in lines)
    caffe.Net(parse_net(NET), caffe.TRAIN).forward()
    assert lines_of(capfd.readouterr().err) == []
