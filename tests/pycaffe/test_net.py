"""caffe.Net as users of pycaffe know it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import caffe
from caffe import layers as L
from caffe.proto import caffe_pb2 as pb

RNG = np.random.default_rng(2)
XAVIER = dict(type="xavier")
BATCH = 4


def spec(middle=()):
    """A classifier of 3x6x6 images with a layer in place and an accuracy in TEST alone."""
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[BATCH, 3, 6, 6]))
    n.label = L.Input(shape=dict(dim=[BATCH]))
    n.conv = L.Convolution(n.data, num_output=5, kernel_size=3, weight_filler=XAVIER)
    n.relu = L.ReLU(n.conv, in_place=True)
    n.ip = L.InnerProduct(n.relu, num_output=7, weight_filler=XAVIER, bias_filler=XAVIER)
    n.prob = L.Softmax(n.ip)
    n.loss = L.SoftmaxWithLoss(n.ip, n.label, loss_weight=2)
    n.accuracy = L.Accuracy(n.ip, n.label, include=dict(phase=caffe.TEST))
    return n


def net(phase=caffe.TRAIN, **also):
    param = spec().to_proto()
    param.force_backward = True
    made = caffe.Net(param, phase, **also)
    made.blobs["data"].data[...] = RNG.normal(size=made.blobs["data"].shape)
    made.blobs["label"].data[...] = RNG.integers(0, 7, BATCH)
    return made


@pytest.fixture
def files(tmp_path):
    path, weights = tmp_path / "net.prototxt", tmp_path / "net.caffemodel"
    path.write_text(str(spec().to_proto()))
    source = caffe.Net(str(path), caffe.TEST)
    source.save(str(weights))
    return str(path), str(weights), source


def test_every_form_of_constructor(files) -> None:
    path, weights, source = files
    made = [
        caffe.Net(path, weights, caffe.TEST),
        caffe.Net(path, caffe.TEST, weights=weights),
        caffe.Net(path, phase=caffe.TEST, weights=weights),
        caffe.Net(network_file=path, phase=caffe.TEST, level=0, stages=None, weights=weights),
        caffe.Net(path, caffe.TEST, stages=["deploy"], weights=weights),
    ]
    for one in made:
        assert "accuracy" in one.blobs
        np.testing.assert_array_equal(one.params["ip"][1].data, source.params["ip"][1].data)
    assert "accuracy" not in caffe.Net(path, caffe.TRAIN).blobs
    with pytest.raises(TypeError, match="needs a phase"):
        caffe.Net(path)


def test_levels_and_stages(tmp_path) -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1]))
    n.deep = L.TanH(n.data, include=dict(min_level=2))
    n.staged = L.TanH(n.data, include=dict(stage=["a", "b"]))
    path = tmp_path / "net.prototxt"
    path.write_text(str(n.to_proto()))
    assert "deep" not in caffe.Net(str(path), caffe.TEST).blobs
    assert "deep" in caffe.Net(str(path), caffe.TEST, level=2).blobs
    assert "staged" not in caffe.Net(str(path), caffe.TEST, stages=["a"]).blobs
    assert "staged" in caffe.Net(str(path), caffe.TEST, stages=["b", "a"]).blobs


def test_names() -> None:
    made = net()
    assert made.inputs == ["data", "label"]
    assert made.outputs == ["prob", "loss"]
    assert list(made.params) == ["conv", "ip"]
    assert list(made.layer_dict) == list(made.top_names) == list(made.bottom_names)
    assert [layer.type for layer in made.layers] == [
        "Input",
        "Input",
        "Convolution",
        "ReLU",
        "InnerProduct",
        "Split",
        "Softmax",
        "SoftmaxWithLoss",
    ]
    assert made.top_names["conv"] == ["conv"]
    assert made.bottom_names["loss"] == ["ip_ip_0_split_1", "label"]
    assert made.blob_loss_weights["loss"] == 2
    assert set(made.blob_loss_weights) == set(made.blobs)
    assert sum(made.blob_loss_weights.values()) == 2


def test_layers_show_their_blobs() -> None:
    made = net()
    conv = made.layer_dict["conv"]
    assert [blob.shape for blob in conv.blobs] == [(5, 3, 3, 3), (5,)]
    conv.blobs[0].data[...] = 3
    assert (made.params["conv"][0].data == 3).all()
    assert list(made.layers[3].blobs) == []
    other = net()
    other.share_with(made)
    other.layer_dict["conv"].blobs[0].data[...] = 4
    assert (made.params["conv"][0].data == 4).all()


def test_blob_has_the_old_sizes() -> None:
    blob = net().blobs["conv"]
    assert (blob.num, blob.channels, blob.height, blob.width) == (BATCH, 5, 4, 4)
    assert blob.count == BATCH * 5 * 4 * 4
    assert tuple(blob.shape) == blob.data.shape == blob.diff.shape


def test_memory_outlives_the_net() -> None:
    made = net()
    made.forward()
    views = [blob.data for blobs in made.params.values() for blob in blobs]
    views += [blob.data for blob in made.blobs.values()]
    sums = [float(view.sum()) for view in views]
    del made
    gc.collect()
    assert [float(view.sum()) for view in views] == sums


def test_forward_returns_outputs_and_what_is_asked_for() -> None:
    made = net()
    assert set(made.forward()) == {"prob", "loss"}
    assert set(made.forward(blobs=["conv"])) == {"prob", "loss", "conv"}
    assert set(made.forward(end="conv")) == {"conv"}
    out = made.forward(start="ip", end="prob")
    np.testing.assert_allclose(out["prob"].sum(axis=1), 1, rtol=1e-5)


def test_forward_takes_inputs() -> None:
    made = net()
    data, label = RNG.normal(size=(BATCH, 3, 6, 6)), RNG.integers(0, 7, BATCH)
    made.forward(data=data, label=label)
    np.testing.assert_array_equal(made.blobs["data"].data, data.astype(np.float32))
    with pytest.raises(ValueError, match="arrays were given for"):
        made.forward(data=data)
    with pytest.raises(ValueError, match="reshape the blob first"):
        made.forward(data=data[:2], label=label[:2])


def test_backward_is_the_gradient() -> None:
    made = net()
    made.forward()
    grads = made.backward(diffs=["conv"])
    assert set(grads) == {"data", "label", "conv"}
    weights, step = made.params["ip"][0], 1e-2
    expected = weights.diff[2, 3]
    losses = []
    for sign in (1, -1):
        weights.data[2, 3] += sign * step
        losses.append(2 * float(made.forward()["loss"]))
        weights.data[2, 3] -= sign * step
    np.testing.assert_allclose(expected, (losses[0] - losses[1]) / (2 * step), rtol=2e-2, atol=1e-4)


def test_backward_takes_gradients_of_outputs() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3]))
    n.y = L.Power(n.data, scale=5)
    made = caffe.Net(pb.NetParameter(force_backward=True, layer=n.to_proto().layer), caffe.TEST)
    made.forward()
    gradient = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(made.backward(y=gradient)["data"], 5 * gradient, rtol=1e-6)


def test_clear_param_diffs() -> None:
    made = net()
    made.forward()
    made.backward()
    made.backward()  # gradients of parameters add up
    assert all(np.abs(blob.diff).sum() > 0 for blob in made.params["conv"])
    made.clear_param_diffs()
    assert all((blob.diff == 0).all() for blobs in made.params.values() for blob in blobs)


def test_reshape_follows_the_inputs() -> None:
    made = net()
    made.blobs["data"].reshape(2, 3, 6, 6)
    made.blobs["label"].reshape(2)
    assert made.blobs["prob"].shape == (BATCH, 7)
    made.reshape()
    assert made.blobs["prob"].shape == (2, 7)


@pytest.mark.parametrize("count", [1, BATCH, 2 * BATCH, 2 * BATCH + 3])
def test_forward_all(count) -> None:
    made = net()
    data = RNG.normal(size=(count, 3, 6, 6)).astype(np.float32)
    label = RNG.integers(0, 7, count)
    found = made.forward_all(blobs=["conv"], data=data, label=label)
    assert found["prob"].shape == (count, 7)
    assert found["loss"].shape == (-(-count // BATCH),)
    one = net()
    one.share_with(made)
    one.blobs["data"].reshape(count, 3, 6, 6)
    one.blobs["label"].reshape(count)
    expected = one.forward(blobs=["conv"], data=data, label=label)
    for name in ("prob", "conv"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def test_forward_all_refuses() -> None:
    made = net()
    data = np.zeros((6, 3, 6, 6))
    with pytest.raises(ValueError, match="different numbers of rows"):
        made.forward_all(data=data, label=np.zeros(5))
    with pytest.raises(ValueError, match="no rows"):
        made.forward_all(data=data[:0], label=np.zeros(0))
    with pytest.raises(ValueError, match="arrays were given for"):
        made.forward_all(dta=data)


def test_forward_backward_all() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[BATCH, 3]))
    n.y = L.TanH(n.data)
    made = caffe.Net(pb.NetParameter(force_backward=True, layer=n.to_proto().layer), caffe.TEST)
    data, gradient = RNG.normal(size=(2, 10, 3)).astype(np.float32)
    outs, diffs = made.forward_backward_all(blobs=["data"], data=data, y=gradient)
    np.testing.assert_allclose(outs["y"], np.tanh(data), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(outs["data"], data)
    np.testing.assert_allclose(
        diffs["data"], gradient * (1 - np.tanh(data) ** 2), rtol=1e-4, atol=1e-6
    )
    with pytest.raises(ValueError, match=r"given for \['z'\]"):
        made.forward_backward_all(z=gradient)


def test_callbacks_see_every_layer() -> None:
    made = net()
    seen = []
    made.before_forward(lambda index: seen.append(("before", index)))
    made.after_forward(lambda index: seen.append(("after", index)))
    made.forward(start="conv", end="ip")
    assert seen == [(when, index) for index in (2, 3, 4) for when in ("before", "after")]
    backward = []
    made.before_backward(lambda index: backward.append(("before", index)))
    made.after_backward(lambda index: backward.append(("after", index)))
    made.forward()
    made.backward()
    count = len(made.layers)
    assert backward == [
        (when, index) for index in range(count - 1, -1, -1) for when in ("before", "after")
    ]


def test_callbacks_may_change_blobs() -> None:
    made = net()
    made.after_forward(
        lambda index: made.blobs["conv"].data.fill(0) if made._layer_names[index] == "relu" else 0
    )
    bias = made.params["ip"][1].data
    np.testing.assert_allclose(
        made.forward(blobs=["ip"])["ip"], np.broadcast_to(bias, (BATCH, 7)), rtol=1e-6
    )


def test_callbacks_of_a_compressing_solver() -> None:
    param = pb.SolverParameter(base_lr=0.01, lr_policy="fixed", solver_mode=0)
    param.compression_param.mode = pb.CompressionParameter.LOSSLESS
    param.net_param.CopyFrom(spec().to_proto())
    solver = caffe.get_solver(param)
    seen = []
    solver.net.after_backward(seen.append)
    solver.step(1)
    assert seen == list(range(len(solver.net.layers) - 1, -1, -1))


def test_share_with() -> None:
    one, two = net(), net()
    two.share_with(one)
    one.params["conv"][0].data[...] = 5
    assert (two.params["conv"][0].data == 5).all()


def test_save_and_copy_from(tmp_path) -> None:
    one, two = net(), net()
    one.save(str(tmp_path / "a.caffemodel"))
    two.copy_from(str(tmp_path / "a.caffemodel"))
    for name, blobs in one.params.items():
        for ours, theirs in zip(blobs, two.params[name]):
            np.testing.assert_array_equal(ours.data, theirs.data)
    pytest.importorskip("h5py", reason="h5py, for HDF5 weights, is not installed")
    three = net()
    one.save_hdf5(str(tmp_path / "a.h5"))
    three.load_hdf5(str(tmp_path / "a.h5"))
    np.testing.assert_array_equal(one.params["ip"][0].data, three.params["ip"][0].data)


# -- MemoryData ------------------------------------------------------------------------------------


def memory_net():
    n = caffe.NetSpec()
    n.data, n.label = L.MemoryData(batch_size=2, channels=3, height=4, width=5, ntop=2)
    n.out = L.Power(n.data, scale=2)
    return caffe.Net(n.to_proto(), caffe.TEST)


@pytest.mark.parametrize("tail", [(), (1, 1, 1)])
def test_set_input_arrays(tail) -> None:
    made = memory_net()
    data = RNG.normal(size=(6, 3, 4, 5)).astype(np.float32)
    labels = np.arange(6, dtype=np.float32)
    made.set_input_arrays(data, labels.reshape(6, *tail))
    for start in (0, 2, 4, 0, 2):
        out = made.forward(blobs=["label"])
        np.testing.assert_array_equal(out["out"], 2 * data[start : start + 2])
        np.testing.assert_array_equal(out["label"], labels[start : start + 2])
    made.set_input_arrays(data[4:], labels[4:])
    np.testing.assert_array_equal(made.forward()["out"], 2 * data[4:])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((6, 3, 4, 6), 6), r"has shape \(6, 3, 4, 6\), needs \(N, 3, 4, 5\)"),
        (((6, 3, 20), 6), "needs"),
        (((6, 3, 4, 5), 5), "one a row of the data"),
        (((5, 3, 4, 5), 5), "5 rows, needs a multiple of batch_size, 2"),
        (((0, 3, 4, 5), 0), "needs"),
    ],
)
def test_arrays_that_do_not_fit(shapes, message) -> None:
    with pytest.raises(ValueError, match=message):
        memory_net().set_input_arrays(np.zeros(shapes[0]), np.zeros(shapes[1]))


def test_memory_data_without_arrays() -> None:
    with pytest.raises(ValueError, match=r"'data' \(MemoryData\): has no data yet"):
        memory_net().forward()
    with pytest.raises(ValueError, match="needs a layer of type MemoryData"):
        net().set_input_arrays(np.zeros((2, 3, 6, 6)), np.zeros(2))
    with pytest.raises(ValueError, match="needs height, of 1 or more"):
        caffe.Net(L.MemoryData(batch_size=2, channels=3, ntop=2)[0].to_proto(), caffe.TEST)


def test_memory_data_warns_of_transforms(capsys) -> None:
    top = L.MemoryData(
        batch_size=2, channels=3, height=4, width=5, ntop=2, transform_param=dict(scale=2)
    )[0]
    made = caffe.Net(top.to_proto(), caffe.TEST)
    made.set_input_arrays(np.zeros((2, 3, 4, 5)), np.zeros(2))
    assert "arrays set by the user are not transformed" in capsys.readouterr().err
