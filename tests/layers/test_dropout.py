"""Dropout: shares, scaling, and masks that are a function of key, count and element."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    Array,
    LayerUnderTest,
    check_golden,
    check_gradients,
    check_in_place,
    golden_names,
    random_array,
)

from caffe import _core
from caffe.proto import caffe_pb2 as pb


def _dropout(ratio: float, bottom: Array, key: int = 1, count: int = 0) -> LayerUnderTest:
    layer = LayerUnderTest(f'type: "Dropout" dropout_param {{ dropout_ratio: {ratio} }}', [bottom])
    layer.context = _context(key, count)
    return layer


def _context(key: int, count: int) -> _core.layers.ForwardContext:
    return _core.layers.ForwardContext(train=True, random_key=key, forward_count=count)


def _kept(size: int, key: int = 1, count: int = 0) -> Array:
    (y,) = _dropout(0.5, np.ones(size, np.float32), key, count).forward()
    return y != 0


@pytest.mark.parametrize("name", golden_names("dropout_"))
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.5, 0.9])
def test_share_kept_and_scale(ratio: float) -> None:
    size = 200_000
    (y,) = _dropout(ratio, np.ones(size, np.float32)).forward()
    assert set(np.unique(y)) == {np.float32(0), 1 / (1 - np.float32(ratio))}
    sigma = np.sqrt(ratio * (1 - ratio) / size)
    assert abs((y != 0).mean() - (1 - ratio)) < 5 * sigma


def test_neighbours_are_independent() -> None:
    kept = _kept(400_000)
    for shift in (1, 2, 3, 4, 64, 256):
        assert abs((kept[shift:] == kept[:-shift]).mean() - 0.5) < 5 * 0.5 / np.sqrt(399_000)


def test_mask_is_a_function_of_key_count_and_element() -> None:
    mask = _kept(5000)
    np.testing.assert_array_equal(_kept(5000), mask)
    np.testing.assert_array_equal(_kept(1234), mask[:1234])
    for other in (_kept(5000, key=2), _kept(5000, count=1), _kept(5000, key=1 << 40)):
        assert 0.4 < (other == mask).mean() < 0.6


def _philox(counter: list[int], key: int) -> list[int]:
    """Philox4x32-10, from its paper."""
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            b >> 32 ^ counter[1] ^ low,
            b & 0xFFFFFFFF,
            a >> 32 ^ counter[3] ^ high,
            a & 0xFFFFFFFF,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return counter


def test_the_generator_is_philox() -> None:
    # A known answer of the generator's authors, for counter and key 0.
    assert _philox([0] * 4, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    key, count, size = 0x123456789ABCDEF0, 3 + (7 << 32), 700
    numbers = [
        n for group in range(size // 4) for n in _philox([group, 0, count & 0xFFFFFFFF, 7], key)
    ]
    np.testing.assert_array_equal(_kept(size, key, count), np.array(numbers) >= 1 << 31)


def test_threads_do_not_change_the_mask() -> None:
    before = _core.num_threads()
    try:
        _core.set_num_threads(1)
        one = _kept(100_001)
        _core.set_num_threads(3)
        np.testing.assert_array_equal(_kept(100_001), one)
    finally:
        _core.set_num_threads(before)


def test_gradients() -> None:
    check_gradients(_dropout(0.4, random_array(7, 11)))


@pytest.mark.parametrize("shape", [(7, 11), (3, 5, 64, 64), (1,)])
def test_in_place(shape: tuple[int, ...]) -> None:
    check_in_place(_dropout(0.4, random_array(*shape)))


def test_a_pass_that_saves_nothing_leaves_the_mask_of_backward_alone() -> None:
    layer = _dropout(0.5, np.ones(1000, np.float32))
    (y,) = layer.forward()
    layer.context = _core.layers.ForwardContext(
        train=True, save_for_backward=False, random_key=1, forward_count=9
    )
    layer.forward()
    (dx,) = layer.backward([np.ones(1000, np.float32)])
    np.testing.assert_array_equal(dx, y)


def test_identity_in_the_test_phase() -> None:
    x = random_array(5, 6)
    layer = LayerUnderTest('type: "Dropout"', [x], phase=pb.TEST)
    np.testing.assert_array_equal(layer.forward()[0], x)
    np.testing.assert_array_equal(layer.backward([x])[0], x)
    check_in_place(layer)


@pytest.mark.parametrize("ratio", [1, -0.5, 1.5, "nan"])
def test_bad_ratio(ratio: object) -> None:
    with pytest.raises(ValueError, match=r"dropout_ratio is \S+, needs to be between 0 and 1"):
        LayerUnderTest(f'type: "Dropout" dropout_param {{ dropout_ratio: {ratio} }}', [])
