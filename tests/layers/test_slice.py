"""Slice: golden vector, every way to say where, gradients, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from harness import LayerUnderTest, Quality, check_golden, check_gradients, random_array


def slicing(options: str, tops: int) -> str:
    names = " ".join(f'top: "y{k}"' for k in range(tops))
    return f'type: "Slice" {names} slice_param {{ {options} }}'


def test_golden() -> None:
    check_golden("slice")


@pytest.mark.parametrize(
    ("options", "shape", "axis", "points"),
    [
        ("", (2, 6, 3), 1, [2, 4]),
        ("slice_point: 1 slice_point: 5", (2, 6, 3), 1, [1, 5]),
        ("axis: 0", (6, 5), 0, [2, 4]),
        ("axis: -1 slice_point: [1, 2]", (2, 3, 9), 2, [1, 2]),
        ("slice_dim: 2 slice_point: [4, 8]", (2, 3, 9), 2, [4, 8]),
        ("axis: 1", (3, 0, 2), 1, [0, 0]),
        ("axis: 1", (2, 9, 70, 40), 1, [3, 6]),
    ],
)
def test_values_and_gradients(
    options: str, shape: tuple[int, ...], axis: int, points: list[int]
) -> None:
    x = random_array(*shape)
    layer = LayerUnderTest(slicing(options, len(points) + 1), [x])
    tops = layer.forward()
    for got, expected in zip(tops, np.split(x, points, axis)):
        np.testing.assert_array_equal(got, expected)
    diffs = [random_array(*top.shape, seed=k) for k, top in enumerate(tops)]
    (dx,) = layer.backward(diffs)
    np.testing.assert_array_equal(dx, np.concatenate(diffs, axis))
    if x.size:
        check_gradients(layer, step=0.25, tolerance=2e-3, samples=20)
    needs = layer.core.needs(layer.propagation)
    assert {need.quality for need in needs.bottoms + needs.tops} == {Quality.NOTHING}


def test_one_top_is_a_copy() -> None:
    x = random_array(3, 4)
    np.testing.assert_array_equal(LayerUnderTest(slicing("", 1), [x]).forward()[0], x)


@pytest.mark.parametrize(
    ("options", "tops", "words"),
    [
        ("axis: 3", 2, "axis 3 is out of range for 2 axes"),
        ("", 4, "axis 1 has 6 entries, which do not divide into 4 tops; give slice_point"),
        ("slice_point: 2", 3, "has 1 values of slice_point, needs 2 for 3 tops"),
        ("slice_point: 4 slice_point: 2", 3, "the part for top 1 goes from 4 to 2 of 6"),
        ("slice_point: 2 slice_point: 2", 3, "the part for top 1 goes from 2 to 2 of 6"),
        ("slice_point: 0", 2, "the part for top 0 goes from 0 to 0 of 6"),
        ("slice_point: 6", 2, "the part for top 1 goes from 6 to 6 of 6"),
        ("slice_point: 9", 2, "the part for top 1 goes from 9 to 6 of 6"),
        ("axis: 1 slice_dim: 1", 2, "both axis and its older name slice_dim"),
        ("", 0, "has no tops"),
    ],
)
def test_bad_configuration(options: str, tops: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(slicing(options, tops), [random_array(2, 6)], default_top=False)
