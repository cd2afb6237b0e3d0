"""Stochastic pooling: its probabilities, what it repeats, gradients, the mean in TEST.

BVLC Caffe has it for GPUs alone and its CPU vectors do not cover it: the definition is Zeiler and
Fergus, "Stochastic pooling for regularization of deep convolutional neural networks", 2013.
"""

import numpy as np
import pytest
from harness import LayerUnderTest, random_array

from caffe import _core
from caffe.proto import caffe_pb2 as pb


def pooling(options: str) -> str:
    return f'type: "Pooling" top: "y" pooling_param {{ pool: STOCHASTIC {options} }}'


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.maximum(random_array(*shape, seed=seed), 0) + np.float32(0)


def windows(x: np.ndarray, kernel: int, stride: int, y: np.ndarray):
    """(window of x, its output) for each."""
    for n, c, i, j in np.ndindex(*y.shape):
        corner = (slice(i * stride, i * stride + kernel), slice(j * stride, j * stride + kernel))
        yield x[n, c][corner], y[n, c, i, j]


@pytest.mark.parametrize(("kernel", "stride", "size"), [(2, 2, 8), (3, 2, 8), (3, 1, 5), (2, 3, 7)])
def test_takes_a_value_of_the_window(kernel, stride, size):
    x = positive(2, 3, size, size)
    layer = LayerUnderTest(pooling(f"kernel_size: {kernel} stride: {stride}"), [x])
    (y,) = layer.forward()
    for window, value in windows(x, kernel, stride, y):
        assert value in window
        assert value > 0 or not window.any()
    dy = random_array(*y.shape)
    (dx,) = layer.backward([dy])
    np.testing.assert_allclose(dx.sum(), dy.sum(), rtol=1e-4)
    np.testing.assert_allclose((dx * x).sum(), (dy * y).sum(), rtol=1e-4)


def test_probabilities_are_in_proportion():
    x = np.tile(np.float32([[1, 2], [0, 5]]), (1, 1, 100, 100))
    (y,) = LayerUnderTest(pooling("kernel_size: 2 stride: 2"), [x]).forward()
    counts = [np.count_nonzero(y == value) for value in (1, 2, 0, 5)]
    expected = np.array([1, 2, 0, 5]) / 8 * y.size
    deviation = np.sqrt(np.maximum(expected * (1 - expected / y.size), 0))
    assert (np.abs(counts - expected) <= 4 * deviation).all()


def test_draws_follow_key_and_pass_alone():
    x = positive(4, 3, 8, 8)
    layer = LayerUnderTest(pooling("kernel_size: 2 stride: 2"), [x])
    (first,) = layer.forward()
    np.testing.assert_array_equal(layer.forward()[0], first)
    layer.context = _core.layers.ForwardContext(True, random_key=1701, forward_count=1)
    assert not np.array_equal(layer.forward()[0], first)
    other = LayerUnderTest(pooling("kernel_size: 2 stride: 2"), [x], random_key=5)
    assert not np.array_equal(other.forward()[0], first)
    threads = _core.num_threads()
    try:
        _core.set_num_threads(1)
        layer.context = _core.layers.ForwardContext(True, random_key=1701)
        np.testing.assert_array_equal(layer.forward()[0], first)
    finally:
        _core.set_num_threads(threads)


def test_windows_without_anything_and_nan():
    (y,) = LayerUnderTest(pooling("kernel_size: 2"), [np.zeros((1, 1, 3, 3))]).forward()
    np.testing.assert_array_equal(y, 0)
    x = np.float32([[[[1, np.nan], [2, 3]]]])
    assert np.isnan(LayerUnderTest(pooling("kernel_size: 2"), [x]).forward()[0]).all()
    x = np.float32([[[[-1, -2], [0, 3]]]])
    assert LayerUnderTest(pooling("kernel_size: 2"), [x]).forward()[0] == 3


def test_the_mean_in_test():
    x = positive(2, 3, 7, 7)
    x[0, 0, :3, :3] = 0
    layer = LayerUnderTest(pooling("kernel_size: 3 stride: 2"), [x], phase=pb.TEST)
    (y,) = layer.forward()
    for window, value in windows(x, 3, 2, y):
        total = window.sum()
        expected = (window**2).sum() / total if total else 0
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    with pytest.raises(_core.Error, match="STOCHASTIC has none in TEST"):
        layer.backward([y])


def test_padding_is_refused():
    with pytest.raises(ValueError, match="STOCHASTIC pooling takes no pad"):
        LayerUnderTest(pooling("kernel_size: 2 pad: 1"), [random_array(1, 1, 4, 4)])


def test_keeps_few_bits():
    layer = LayerUnderTest(pooling("kernel_size: 2 stride: 2"), [positive(1, 4, 64, 64)])
    layer.forward()
    assert layer.core.saved_bytes() == 4 * 32 * 32 * 2 // 8
