"""Fillers: distribution, reproducibility, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

from caffe import fillers
from caffe.proto import caffe_pb2


def filled(text, shape=(200, 50, 3, 3), seed=1, **fans):
    array = np.full(shape, np.nan, np.float32)
    param = text_format.Parse(text, caffe_pb2.FillerParameter())
    fillers.fill(array, param, np.random.Generator(np.random.Philox(seed)), **fans)
    assert np.isfinite(array).all()
    return array


def test_constant_is_the_default():
    assert (filled("") == 0).all()
    assert (filled("value: 2.5", ()) == 2.5).all()


def test_uniform():
    array = filled('type: "uniform" min: -1 max: 3')
    assert array.min() < -0.99
    assert array.max() > 2.99
    assert abs(array.mean() - 1) < 0.02


def test_gaussian():
    array = filled('type: "gaussian" mean: 2 std: 0.5')
    assert abs(array.mean() - 2) < 0.01
    assert abs(array.std() - 0.5) < 0.01


def test_sparse_gaussian():
    array = filled('type: "gaussian" std: 1 sparse: 20')
    assert abs(np.count_nonzero(array) / array.size - 20 / 200) < 0.01
    assert (filled('type: "gaussian" sparse: 0') == 0).all()


def test_positive_unitball():
    array = filled('type: "positive_unitball"')
    assert array.min() >= 0
    np.testing.assert_allclose(array.reshape(200, -1).sum(1), 1, rtol=1e-4)


@pytest.mark.parametrize(("norm", "fan"), [("FAN_IN", 450), ("FAN_OUT", 1800), ("AVERAGE", 1125)])
def test_xavier_and_msra(norm, fan):
    xavier = filled(f'type: "xavier" variance_norm: {norm}')
    limit = np.sqrt(3 / fan)
    assert limit * 0.999 < np.abs(xavier).max() <= limit * 1.000001
    msra = filled(f'type: "msra" variance_norm: {norm}')
    assert abs(msra.std() / np.sqrt(2 / fan) - 1) < 0.02


def test_fans_may_be_given():
    array = filled('type: "msra"', fan_in=2)
    assert abs(array.std() - 1) < 0.02


def test_bilinear():
    array = filled('type: "bilinear"', (2, 1, 4, 4))
    np.testing.assert_allclose(array[1, 0, 0], [0.0625, 0.1875, 0.1875, 0.0625])
    np.testing.assert_allclose(array.sum((2, 3)), 4)
    with pytest.raises(ValueError, match="square kernels"):
        filled('type: "bilinear"', (2, 1, 4, 3))


@pytest.mark.parametrize("name", sorted(fillers.RANDOM))
def test_same_seed_same_values(name):
    text = f'type: "{name}"'
    np.testing.assert_array_equal(filled(text), filled(text))
    assert not np.array_equal(filled(text), filled(text, seed=2))


@pytest.mark.parametrize("name", fillers.NAMES)
def test_nothing_to_fill(name):
    assert filled(f'type: "{name}"', (0, 3, 2, 2)).size == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type: "gausian"', "unknown filler 'gausian'; did you mean 'gaussian'"),
        ('type: "Xavier"', "did you mean 'xavier'"),
        ('type: "gaussian" std: -1', "std -1, needs 0 or more"),
        ('type: "uniform" min: 2 max: 1', "min 2 above max 1"),
        ('type: "xavier" sparse: 3', "cannot be sparse"),
    ],
)
def test_refused(text, message):
    with pytest.raises(ValueError, match=message):
        filled(text)
