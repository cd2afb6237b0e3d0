"""Bias: golden vector, every axis option, gradients, needs."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    check_in_place,
    random_array,
)

from caffe import _core

BatchAxis = _core.layers.BatchAxis

ONE_BOTTOM = [
    ("", (4, 3, 5, 2), (3,)),
    ("axis: 1 num_axes: 2", (4, 3, 5, 2), (3, 5)),
    ("axis: 0 num_axes: -1", (4, 3, 5), (4, 3, 5)),
    ("axis: -1", (4, 3, 5), (5,)),
    ("num_axes: 0", (4, 3, 5), ()),
    ("", (3, 2, 100, 90), (2,)),
]


def bias(options: str) -> str:
    return f'type: "Bias" bias_param {{ {options} }}'


def test_golden() -> None:
    check_golden("bias")


@pytest.mark.parametrize(("options", "shape", "offsets"), ONE_BOTTOM)
def test_one_bottom(options: str, shape: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    x = random_array(*shape)
    layer = LayerUnderTest(bias(options), [x])
    (b,) = layer.parameters
    assert b.shape == offsets
    axis = layer.message.bias_param.axis % len(shape) if offsets else 0
    spread = b.reshape((*offsets, *[1] * (len(shape) - axis - len(offsets))))
    np.testing.assert_array_equal(layer.forward()[0], x + spread)
    check_gradients(layer, step=0.25, tolerance=2e-3, samples=30)
    check_in_place(layer)
    along_batch = axis == 0 and bool(offsets)
    assert (layer.core.traits().batch_axis == BatchAxis.COUPLED) == along_batch


@pytest.mark.parametrize(
    ("options", "shape", "other"),
    [
        ("", (4, 3, 5), (3, 5)),
        ("axis: 0", (4, 3, 5), (4,)),
        ("axis: 0", (4, 3, 5), (4, 3, 5)),
        ("axis: -1", (4, 3, 5), (5,)),
        ("", (4, 3), ()),
    ],
)
def test_two_bottoms(options: str, shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    b = random_array(*other, seed=1) if other else np.float32(0.5)
    layer = LayerUnderTest(bias(options), [random_array(*shape), b])
    assert layer.core.parameters == []
    check_gradients(layer, step=0.25, tolerance=2e-3, samples=30)
    check_in_place(layer)
    needs = layer.core.needs(layer.propagation)
    assert {need.quality for need in needs.bottoms + needs.tops} == {Quality.NOTHING}


def test_gradients_add_up() -> None:
    layer = LayerUnderTest(bias(""), [random_array(4, 3)])
    layer.forward()
    dy = random_array(4, 3)
    layer.backward([dy])
    layer.backward([dy])
    np.testing.assert_allclose(layer.parameter_gradients[0], 2 * dy.sum(0), rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ("axis: 2", [[4, 3]], "axis 2 is out of range for 2 axes"),
        ("num_axes: 3", [[4, 3]], "axis 1 and num_axes 3 reach past the 2 axes"),
        ("num_axes: -2", [[4, 3]], "num_axes is -2"),
        ("", [[4, 3], [4]], "bottom 1 is 4, which does not match bottom 0, 4x3, from axis 1"),
        ("", [[4, 3], [3], [3]], "has 3 bottoms, needs 1 to 2"),
    ],
)
def test_bad_shapes(options: str, shapes: list[list[int]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(bias(options), [np.zeros(shape, np.float32) for shape in shapes])


def test_another_channel_count_is_refused() -> None:
    layer = LayerUnderTest(bias(""), [random_array(4, 3)])
    with pytest.raises(ValueError, match="bottom 4x5 needs parameters of 5, but they are 3"):
        layer.core.reshape([[4, 5]])
