"""ReLU: golden vector, gradients, and backward from a packed mask of signs."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    Array,
    LayerUnderTest,
    check_golden,
    check_gradients,
    check_in_place,
    distinct_array,
    golden_names,
    random_array,
    to_tensor,
    unwritten,
)

from caffe import _core

SLOPES = [0, 0.1, -0.5, 2]


def _relu(slope: float, x: Array) -> LayerUnderTest:
    return LayerUnderTest(f'type: "ReLU" relu_param {{ negative_slope: {slope} }}', [x])


@pytest.mark.parametrize("name", golden_names("relu"))
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 80, 70), (3,)])
def test_values_and_gradients(slope: float, shape: tuple[int, ...]) -> None:
    x = distinct_array(*shape) + np.float32(0.03)
    layer = _relu(slope, x)
    (y,) = layer.forward()
    np.testing.assert_array_equal(y, np.where(x > 0, x, np.float32(slope) * x))
    check_gradients(layer)
    check_in_place(layer)


def test_zeros_are_positive_zeros() -> None:
    (y,) = _relu(0, np.array([-1, -0.0, 0, -1e-40, -np.inf], np.float32)).forward()
    assert not np.signbit(y).any()


def test_nan_is_not_hidden() -> None:
    for slope in SLOPES:
        assert np.isnan(_relu(slope, np.float32([np.nan])).forward()[0]).all()


@pytest.mark.parametrize("slope", SLOPES)
@pytest.mark.parametrize("count", [1, 63, 64, 65, 40_000])
def test_backward_from_a_packed_mask(slope: float, count: int) -> None:
    x, dy = random_array(count), random_array(count, seed=1)
    layer = _relu(slope, x)
    (y,) = layer.forward()
    mask = _core.store.pack_sign(to_tensor(x if slope < 0 else y))
    assert mask.is_mask
    assert mask.bytes == (count + 63) // 64 * 8
    src, dst = (mask, _core.Tensor()) if slope < 0 else (_core.Tensor(), mask)
    dx = unwritten((count,))
    layer.core.backward([src], [dst], [to_tensor(dy)], [dx], layer.propagation)
    np.testing.assert_array_equal(dx.numpy(), layer.backward([dy])[0])


def test_two_bottoms_are_refused() -> None:
    with pytest.raises(ValueError, match="has 2 bottoms, needs 1"):
        LayerUnderTest('type: "ReLU"', [random_array(2), random_array(2)])
