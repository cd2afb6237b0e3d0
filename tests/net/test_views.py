"""Blobs as Python sees them: views, released blobs, kept blobs, inputs."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from nets import batches, make_solver, small_models, train

import caffe
from caffe._core import memory
from caffe.proto import caffe_pb2 as pb

NET = """
name: "views"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 3 dim: 5 dim: 5 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
"""


def parse(text: str) -> pb.NetParameter:
    return text_format.Parse(text, pb.NetParameter())


def test_a_view_of_plain_mode_follows_the_net() -> None:
    net = caffe.Net(parse(NET), phase=caffe.TRAIN)
    view = net.blobs["conv"].data
    rng = np.random.default_rng(0)
    net.forward(data=rng.standard_normal((2, 3, 5, 5)))
    first = view.copy()
    net.forward(data=rng.standard_normal((2, 3, 5, 5)))
    assert not np.array_equal(first, view)
    np.testing.assert_array_equal(view, net.blobs["conv"].data)


def test_an_in_place_layer_never_spoils_what_backward_reads() -> None:
    # Sign flips in the ReLU's input would show if conv's output were read where its top is.
    text = NET.replace('top: "conv" }', 'top: "conv" relu_param { negative_slope: -0.5 } }')
    in_place = caffe.Net(parse("force_backward: true " + text), phase=caffe.TRAIN)
    apart = caffe.Net(
        parse(
            "force_backward: true "
            + text.replace('bottom: "conv" top: "conv"', 'bottom: "conv" top: "act"').replace(
                'bottom: "conv" top: "ip"', 'bottom: "act" top: "ip"'
            )
        ),
        phase=caffe.TRAIN,
    )
    apart.share_with(in_place)
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 5)).astype(np.float32)
    gradients = []
    for net in (in_place, apart):
        net.forward(data=x)
        gradients.append(net.backward(ip=np.ones((2, 2), np.float32))["data"].copy())
    np.testing.assert_array_equal(*gradients)


def test_a_released_blob_says_how_to_keep_it() -> None:
    net, shape = small_models()["lenet"]
    solver = make_solver(net, compression="mode: ADAPTIVE")
    train(solver, batches(shape, 1))
    with pytest.raises(caffe.Error, match='keep: "pool1"'):
        _ = solver.net.blobs["pool1"].data
    kept = make_solver(net, compression='mode: ADAPTIVE keep: "pool1"')
    train(kept, batches(shape, 1))
    assert kept.net.blobs["pool1"].data.shape[1:] == (20, 12, 12)


def test_keep_of_an_unknown_blob_names_the_nearest() -> None:
    net, _ = small_models()["lenet"]
    with pytest.raises(ValueError, match="did you mean 'pool1'"):
        make_solver(net, compression='mode: ADAPTIVE keep: "pol1"')


def test_a_view_outlives_the_release_and_counts_as_pythons() -> None:
    net, shape = small_models()["lenet"]
    solver = make_solver(net, compression='mode: ADAPTIVE keep: "pool1"')
    train(solver, batches(shape, 1))
    view = solver.net.blobs["pool1"].data
    before = view.copy()
    solver.net.executor.release_all()
    np.testing.assert_array_equal(view, before)
    assert memory.live()["held_by_python"] >= view.nbytes
    view[...] = 0
    del view
    assert memory.live()["held_by_python"] == 0


def test_reshaping_the_input_reshapes_the_net() -> None:
    net = caffe.Net(parse(NET), phase=caffe.TEST)
    net.blobs["data"].reshape(7, 3, 5, 5)
    net.reshape()
    assert net.blobs["ip"].shape == (7, 2)
    assert net.forward(data=np.zeros((7, 3, 5, 5)))["ip"].shape == (7, 2)


def test_an_input_that_nobody_filled_is_zero() -> None:
    for _ in range(5):
        caffe.Net(parse(NET), phase=caffe.TRAIN).forward(data=np.full((2, 3, 5, 5), np.nan))
        # Its buffer may be the one that just held NaN.
        net = caffe.Net(parse(NET), phase=caffe.TRAIN)
        net.forward()
        assert not net.blobs["data"].data.any()


def test_arrays_that_do_not_fit() -> None:
    net = caffe.Net(parse(NET), phase=caffe.TEST)
    with pytest.raises(ValueError, match="shape"):
        net.forward(data=np.zeros((1, 3, 5, 5)))
    with pytest.raises(ValueError, match="data"):
        net.forward(dta=np.zeros((2, 3, 5, 5)))
    with pytest.raises(ValueError, match="did you mean 'conv'"):
        net.forward(end="conf")
    with pytest.raises(ValueError, match=r"layer 'ip' \(InnerProduct\)"):
        net.blobs["data"].reshape(2, 3, 6, 6)
        net.forward()


def test_partial_forward_reads_the_last_value() -> None:
    net = caffe.Net(parse(NET), phase=caffe.TEST)
    net.forward(data=np.ones((2, 3, 5, 5)))
    net.blobs["conv"].data[...] = 0
    out = net.forward(start="ip")["ip"]
    np.testing.assert_array_equal(out, 0)


def test_under_compression_backward_runs_once_after_each_forward() -> None:
    net, shape = small_models()["lenet"]
    solver = make_solver(net, compression="mode: ADAPTIVE")
    images, labels = batches(shape, 1)[0]
    solver.net.forward(data=images, label=labels)
    solver.net.backward()
    with pytest.raises(caffe.Error, match="backward can run once after each forward"):
        solver.net.backward()
    solver.net.forward(data=images, label=labels)
    solver.net.backward()


def test_what_forward_returns_is_readable_under_compression() -> None:
    net, shape = small_models()["lenet"]
    images, labels = batches(shape, 1)[0]
    results = []
    for mode in ("NONE", "ADAPTIVE"):
        solver = make_solver(net, compression=f"mode: {mode}")
        named = solver.net.forward(blobs=["pool1"], end="conv2", data=images, label=labels)
        assert set(named) == {"pool1", "conv2"}
        results.append({name: array.copy() for name, array in named.items()})
    for name, array in results[0].items():
        np.testing.assert_array_equal(array, results[1][name])


def test_what_trains_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    net, shape = small_models()["lenet"]
    without_loss = pb.NetParameter()
    without_loss.CopyFrom(net)
    del without_loss.layer[-1]
    make_solver(without_loss, "test_interval: 5")
    said = capfd.readouterr().err
    assert "the net has no loss" in said
    assert "there is no test_iter" in said
    solver = make_solver(net)
    images, labels = batches(shape, 1)[0]
    train(solver, [(images * np.float32(np.nan), labels)] * 2)
    assert capfd.readouterr().err.count("the loss is nan") == 1
