"""BatchNorm: golden vectors, gradients, statistics against NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    Array,
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    check_in_place,
    golden_names,
    random_array,
)

from caffe import _core
from caffe.proto import caffe_pb2 as pb

BATCH_NORM = 'type: "BatchNorm"'
GLOBAL = 'type: "BatchNorm" batch_norm_param { use_global_stats: true }'
SHAPES = [(6, 3, 5, 4), (7, 5), (9,), (4, 3, 2), (3, 2, 2, 3, 2), (70, 130), (2, 3, 90, 70)]


def _over(x: Array) -> tuple[int, ...]:
    """The axes a channel's sums run over."""
    return (0,) if x.ndim == 1 else (0, *range(2, x.ndim))


def _fresh(x: Array, text: str = BATCH_NORM, **kwargs: object) -> LayerUnderTest:
    channels = 1 if x.ndim == 1 else x.shape[1]
    zeros = [np.zeros(n, np.float32) for n in (channels, channels, 1)]
    return LayerUnderTest(text, [x], zeros, learns=[False] * 3, **kwargs)


@pytest.mark.parametrize("name", golden_names("batchnorm_"))
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("shape", SHAPES)
def test_training_statistics(shape: tuple[int, ...]) -> None:
    x = random_array(*shape) * 3 + 2
    layer = _fresh(x)
    (y,) = layer.forward()
    mean = x.mean(_over(x), dtype=np.float64, keepdims=True)
    variance = x.var(_over(x), dtype=np.float64, keepdims=True)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 1e-5), rtol=1e-5, atol=1e-5)
    m = x.size // mean.size
    got_mean, got_variance, factor = layer.parameters
    np.testing.assert_allclose(got_mean, mean.ravel(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got_variance, variance.ravel() * m / (m - 1), rtol=1e-5)
    assert factor[0] == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape: tuple[int, ...]) -> None:
    check_gradients(_fresh(random_array(*shape)))


def test_gradients_with_global_statistics() -> None:
    x = random_array(4, 3, 5)
    statistics = [random_array(3), np.array([1.5, 2.0, 0.3], np.float32), np.float32([2.0])]
    layer = LayerUnderTest(GLOBAL, [x], statistics, learns=[False] * 3)
    before = [p.copy() for p in layer.parameters]
    check_gradients(layer)
    np.testing.assert_array_equal(np.concatenate(before), np.concatenate(layer.parameters))


@pytest.mark.parametrize("text", [BATCH_NORM, GLOBAL])
def test_in_place(text: str) -> None:
    x = random_array(4, 3, 5, 6)
    layer = LayerUnderTest(text, [x], [np.ones(n, np.float32) for n in (3, 3, 1)])
    check_in_place(layer)


@pytest.mark.parametrize("shape", [(8, 4, 90, 80), (64, 40)])
def test_large_mean_does_not_drown_the_variance(shape: tuple[int, ...]) -> None:
    x = random_array(*shape) + np.float32(3000)  # float's steps here are 0.00024
    (y,) = _fresh(x).forward()
    x64 = x.astype(np.float64)
    expected = (x64 - x64.mean(_over(x), keepdims=True)) / np.sqrt(
        x64.var(_over(x), keepdims=True) + 1e-5
    )
    np.testing.assert_allclose(y, expected, atol=5e-4)


def test_constant_channel_is_zero() -> None:
    x = np.full((4, 2, 3, 3), 7.7, np.float32)
    layer = _fresh(x)
    (y,) = layer.forward()
    (dx,) = layer.backward([random_array(4, 2, 3, 3)])
    assert np.abs(y).max() < 1e-3
    assert np.isfinite(dx).all()


def test_one_value_a_channel() -> None:
    layer = _fresh(random_array(1, 3))
    (y,) = layer.forward()
    assert (y == 0).all()
    np.testing.assert_array_equal(layer.parameters[1], 0)


def test_result_does_not_depend_on_threads() -> None:
    x = random_array(16, 8, 30, 30)
    before = _core.num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            _core.set_num_threads(threads)
            layer = _fresh(x)
            results.append(layer.forward() + layer.backward([random_array(*x.shape, seed=5)]))
    finally:
        _core.set_num_threads(before)
    for other in results[1:]:
        for expected, got in zip(results[0], other):
            np.testing.assert_array_equal(got, expected)


def test_forward_without_saving_updates_running_statistics_and_keeps_nothing() -> None:
    layer = _fresh(random_array(4, 3, 5))
    layer.context = _core.layers.ForwardContext(train=True, save_for_backward=False)
    layer.forward()
    assert layer.parameters[2][0] == 1
    assert layer.core.saved_bytes() == 0


def test_keeps_two_floats_a_channel_until_dropped() -> None:
    layer = _fresh(random_array(4, 3, 5))
    layer.forward()
    assert layer.core.saved_bytes() == 2 * 3 * 4
    layer.core.drop_saved()
    assert layer.core.saved_bytes() == 0
    with pytest.raises(_core.Error, match="without a forward pass that saved"):
        layer.backward([random_array(4, 3, 5)])


def test_use_global_stats_defaults_to_the_test_phase() -> None:
    x = random_array(4, 3, 5)
    assert _fresh(x).core.needs(_want()).tops[0].quality == Quality.BOUNDED
    assert _fresh(x, phase=pb.TEST).core.needs(_want()).tops[0].quality == Quality.NOTHING


def _want() -> _core.layers.Propagation:
    return _core.layers.Propagation([True], [False] * 3)


def test_unfilled_statistics_give_finite_values() -> None:
    (y,) = _fresh(random_array(4, 3, 5), phase=pb.TEST).forward()
    assert np.isfinite(y).all()


@pytest.mark.parametrize("momentum", [0.9, 0.999])
def test_pytorch_agrees(momentum: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is a second opinion where installed")
    theirs = torch.nn.BatchNorm2d(5, affine=False, momentum=1 - momentum)
    text = f"{BATCH_NORM} batch_norm_param {{ moving_average_fraction: {momentum} }}"
    layer = _fresh(random_array(6, 5, 7, 8), text)
    for step in range(3):
        x = random_array(6, 5, 7, 8, seed=step) * (step + 1) + step
        dy = random_array(6, 5, 7, 8, seed=50 + step)
        layer.bottoms[0][...] = x
        their_x = torch.tensor(x, requires_grad=True)
        their_y = theirs(their_x)
        their_y.backward(torch.tensor(dy))
        (y,), (dx,) = layer.forward(), layer.backward([dy])
        np.testing.assert_allclose(y, their_y.detach().numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(dx, their_x.grad.numpy(), rtol=1e-4, atol=1e-5)
    # PyTorch's averages start from mean 0 and variance 1, Caffe's from sums of weight 0.
    mean, variance, _ = layer.parameters
    share = np.float64(1) - np.float64(momentum)
    np.testing.assert_allclose(mean * share, theirs.running_mean.numpy(), rtol=1e-4, atol=1e-6)
    expected = theirs.running_var.numpy() - momentum**3
    np.testing.assert_allclose(variance * share, expected, rtol=1e-3, atol=1e-5)


def test_another_channel_count_is_refused() -> None:
    layer = _fresh(random_array(4, 3, 5))
    with pytest.raises(ValueError, match="bottom has 4 channels, but the statistics are of 3"):
        layer.core.reshape([[4, 4, 5]])


@pytest.mark.parametrize(
    ("text", "shapes", "words"),
    [
        (BATCH_NORM, [[]], "scalar"),
        (BATCH_NORM, [[2, 3], [2, 3]], "has 2 bottoms, needs 1"),
    ],
)
def test_bad_shapes(text: str, shapes: list[list[int]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _fresh(random_array(2, 3), text).core.reshape(shapes)


def test_bad_eps() -> None:
    with pytest.raises(ValueError, match="eps is 0, needs to be positive"):
        _core.layers.BatchNorm(eps=0)


@pytest.mark.parametrize("shape", [(6, 3, 5, 4), (7, 5), (5, 3, 70, 65)])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_slices_give_the_bits_of_the_whole(shape: tuple[int, ...], size: int) -> None:
    """Sums first, slice by slice, then the gradient slice by slice, written over dy."""
    layer = _core.layers.BatchNorm(eps=1e-5)
    layer.reshape([shape])
    assert layer.exact_slice() == 0
    for parameter in layer.parameters:
        parameter.data.zero()
    x, y, dy, dx = (_core.Tensor(shape, _core.MemoryKind.DATA) for _ in range(4))
    x.numpy()[...] = random_array(*shape) * 3 + 2
    dy.numpy()[...] = random_array(*shape)
    layer.forward([x], [y], _core.layers.ForwardContext(train=True))
    wants = _core.layers.Propagation([True], [False] * 3)
    layer.backward([_core.Tensor()], [y], [dy], [dx], wants)
    batch = shape[0]
    slices = [
        (_core.layers.BatchSlice(index, begin, begin + size >= batch), begin)
        for index, begin in enumerate(range(0, batch, size))
    ]
    for part, begin in slices:
        end = min(begin + size, batch)
        layer.add_up([_core.Tensor()], [y.slice(begin, end)], [dy.slice(begin, end)], wants, part)
    for part, begin in slices:
        end = min(begin + size, batch)
        here = [dy.slice(begin, end)]
        layer.backward([_core.Tensor()], [y.slice(begin, end)], here, here, wants, part)
    np.testing.assert_array_equal(dy.numpy(), dx.numpy())


def test_slices_of_one_channel_are_not_the_same() -> None:
    """Its sums run over blocks that know no samples: backward is to take the whole batch."""
    layer = _core.layers.BatchNorm(eps=1e-5)
    layer.reshape([(9, 1, 4)])
    assert layer.exact_slice() > 9
