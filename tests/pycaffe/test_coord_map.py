"""coord_map: where a pixel of one top lies in another, against windows counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.coord_map import (
    AxisMismatchException,
    UndefinedMapException,
    coord_map,
    coord_map_from_to,
    crop,
)


def net(ks=3, stride=1, pad=0, pool=2, dstride=2, dpad=0):
    """Convolution, pooling, and a deconvolution that takes the size back."""
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 1, 100, 100]))
    n.aux = L.Input(shape=dict(dim=[2, 1, 20, 20]))
    n.conv = L.Convolution(n.data, num_output=10, kernel_size=ks, stride=stride, pad=pad)
    n.pool = L.Pooling(n.conv, pool=P.Pooling.MAX, kernel_size=pool, stride=pool, pad=0)
    n.deconv = L.Deconvolution(
        n.pool,
        convolution_param=dict(
            num_output=10, kernel_size=2 * dstride - dstride % 2, stride=dstride, pad=dpad
        ),
    )
    return n


def check(top_from, top_to, a, b):
    found = coord_map_from_to(top_from, top_to)
    np.testing.assert_allclose(found.a, a)
    np.testing.assert_allclose(found.b, b)
    return found


def test_there_and_back() -> None:
    n = net()
    # Convolution cuts 1 off, pooling takes x to (x - 1/2) / 2, deconvolution to 2 x + 3/2.
    assert check(n.deconv, n.data, 1, 0).ax == 1
    check(n.data, n.deconv, 1, 0)
    check(n.pool, n.data, 2, 1.5)


def test_padding_moves() -> None:
    n = net(pad=2, dpad=1)
    check(n.deconv, n.data, 1, -1)
    check(n.conv, n.data, 1, -1)


def test_layers_that_keep_places() -> None:
    n = net()
    for make in (L.ReLU, L.BatchNorm, L.Dropout, L.LRN, L.Sigmoid, L.Scale, L.PReLU):
        n.same = make(n.deconv)
        check(n.same, n.data, 1, 0)
    n.sum = L.Eltwise(n.conv, n.conv)
    check(n.sum, n.data, 1, 1)


def test_strides_multiply() -> None:
    n = net(stride=3, pool=2)
    check(n.pool, n.data, 6, 1 + 3 * 0.5)


def test_dilation() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 9, 9]))
    n.conv = L.Convolution(n.data, num_output=1, kernel_size=3, dilation=2)
    check(n.conv, n.data, 1, 2)


def test_rectangular_windows() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 9, 9, 9]))
    n.conv = L.Convolution(n.data, num_output=1, kernel_size=[3, 5, 1], stride=[1, 2, 1], pad=0)
    check(n.conv, n.data, [1, 2, 1], [1, 2, 0])


def test_crop_layer() -> None:
    n = net()
    n.crop = L.Crop(n.deconv, n.data, crop_param=dict(axis=2, offset=3))
    check(n.crop, n.data, 1, 3)


def test_the_map_is_that_of_the_net() -> None:
    """A single bright pixel travels to where the map says."""
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 16, 16]))
    n.conv = L.Convolution(n.data, num_output=1, kernel_size=5, pad=1)
    n.score = L.TanH(n.conv)
    run = caffe.Net(n.to_proto(), caffe.TEST)
    run.params["conv"][0].data[...] = 0
    run.params["conv"][0].data[0, 0, 2, 2] = 1
    run.blobs["data"].data[0, 0, 9, 6] = 1
    scores = run.forward()["score"][0, 0]
    found = coord_map_from_to(n.data, n.score)
    place = np.array([9, 6]) * found.a + found.b
    np.testing.assert_array_equal(np.argwhere(scores > 0.5), [place])


def test_crop_brings_tops_together() -> None:
    n = net(pad=4)
    n.crop = crop(n.deconv, n.data)
    layer = n.to_proto().layer[-1]
    assert (layer.type, list(layer.bottom)) == ("Crop", ["deconv", "data"])
    assert layer.crop_param.axis == 2
    assert list(layer.crop_param.offset) == [4]
    assert caffe.Net(n.to_proto(), caffe.TEST).blobs["crop"].shape == (2, 10, 100, 100)


def test_crop_refuses() -> None:
    n = net(dstride=1)
    with pytest.raises(AssertionError, match="scale mismatch on crop"):
        crop(n.deconv, n.data)
    n = net(dpad=10)
    with pytest.raises(AssertionError, match="cannot crop negative offset"):
        crop(n.deconv, n.data)
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 9, 9]))
    n.conv = L.Convolution(n.data, num_output=1, kernel_size=2, pad=2)
    with pytest.raises(ValueError, match="cannot crop noninteger offset"):
        crop(n.conv, n.data)


def test_unconnected() -> None:
    n = net()
    n.ip = L.InnerProduct(n.deconv, num_output=10)
    for top, other in ((n.ip, n.data), (n.aux, n.data)):
        with pytest.raises(RuntimeError, match="are they connected by spatial layers"):
            coord_map_from_to(top, other)


def test_what_has_no_map() -> None:
    n = net()
    for top in (
        L.InnerProduct(n.data, num_output=2),
        L.Convolution(n.data, num_output=2, kernel_h=3, kernel_w=2),
        L.Pooling(n.data, global_pooling=True),
    ):
        with pytest.raises(UndefinedMapException):
            coord_map(top.fn)


def test_axes_that_differ() -> None:
    n = net()
    n.other = L.Convolution(n.conv, num_output=2, kernel_size=1, axis=2)
    with pytest.raises(AxisMismatchException, match="axis"):
        coord_map_from_to(n.other, n.data)
