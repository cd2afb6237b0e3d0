"""Layers in Python as pycaffe runs them."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import caffe
from caffe import layers as L


class Times(caffe.Layer):
    """Multiplies by what param_str says."""

    def setup(self, bottom, top):
        self.factor = float(self.param_str or 10)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.factor * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = self.factor * top[0].diff


class Fails(caffe.Layer):
    def setup(self, bottom, top):
        raise RuntimeError("on purpose")


class Learns(caffe.Layer):
    """Outputs its parameter; the parameter's gradient is 1."""

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[0] = 0

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[0] = self.blobs[0].data[0]

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] = 1


class TellsPhase(caffe.Layer):
    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape()

    def forward(self, bottom, top):
        top[0].data[()] = self.phase


def python(*bottoms, layer, **fields):
    return L.Python(*bottoms, module=__name__, layer=layer, **fields)


def chain():
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[10, 9, 8]))
    n.one = python(n.data, layer="Times")
    n.two = python(n.one, layer="Times", param_str="5")
    n.three = python(n.two, layer="Times")
    param = n.to_proto()
    param.force_backward = True
    return caffe.Net(param, caffe.TRAIN)


def test_forward_and_backward() -> None:
    made = chain()
    made.blobs["data"].data[...] = 1
    np.testing.assert_array_equal(made.forward()["three"], np.full((10, 9, 8), 500))
    gradient = np.full((10, 9, 8), 7.0)
    np.testing.assert_array_equal(made.backward(three=gradient)["data"], 500 * gradient)


@pytest.mark.parametrize("shape", [(4,), (4, 4, 4, 4), (2, 3, 4, 5, 6)])
def test_reshape(shape) -> None:
    made = chain()
    made.blobs["data"].reshape(*shape)
    made.forward()
    assert {blob.data.shape for blob in made.blobs.values()} == {shape}


def test_the_layer_is_the_users_object() -> None:
    made = chain()
    layer = made.layer_dict["two"]
    assert isinstance(layer, Times)
    assert layer is made.layers[2]
    assert (layer.type, layer.factor) == ("Python", 5)
    layer.factor = 2
    made.blobs["data"].data[...] = 1
    assert (made.forward()["three"] == 200).all()


def test_exception_shows_the_users_line() -> None:
    with pytest.raises(RuntimeError, match="on purpose") as caught:
        caffe.Net(python(layer="Fails").to_proto(), caffe.TEST)
    lines = "".join(traceback.format_exception(caught.type, caught.value, caught.tb))
    assert 'raise RuntimeError("on purpose")' in lines
    assert "in layer 'Python1' (Python)" in "".join(caught.value.__notes__)


def test_parameters_are_saved_and_loaded(tmp_path) -> None:
    n = caffe.NetSpec()
    n.out = python(layer="Learns")
    param = n.to_proto()
    param.force_backward = True
    made = caffe.Net(param, caffe.TRAIN)
    assert made.forward()["out"][0] == 0
    made.backward()
    made.layers[0].blobs[0].data[0] -= 2 * made.params["out"][0].diff[0]
    assert made.forward()["out"][0] == -2
    made.save(str(tmp_path / "a.caffemodel"))
    again = caffe.Net(n.to_proto(), caffe.TEST)
    again.copy_from(str(tmp_path / "a.caffemodel"))
    assert again.forward()["out"][0] == -2


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_phase(phase) -> None:
    out = caffe.Net(python(layer="TellsPhase").to_proto(), phase).forward()
    assert out["Python1"] == phase
