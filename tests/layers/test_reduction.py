"""Reduction: golden vectors, every operation and axis, gradients, needs."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    distinct_array,
    golden_names,
    random_array,
)

from caffe import _core

OPERATIONS = {
    "SUM": lambda x: x.sum(-1),
    "ASUM": lambda x: np.abs(x).sum(-1),
    "SUMSQ": lambda x: (x * x).sum(-1),
    "MEAN": lambda x: x.mean(-1),
}


def reduction(operation: str, options: str = "") -> str:
    return f'type: "Reduction" reduction_param {{ operation: {operation} {options} }}'


@pytest.mark.parametrize("name", golden_names("reduction_"))
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("options", "shape", "top"),
    [
        ("", (3, 4, 5), ()),
        ("axis: 1", (3, 4, 5), (3,)),
        ("axis: -1 coeff: -0.5", (3, 4, 5), (3, 4)),
        ("axis: 1 coeff: 2", (5, 1), (5,)),
        ("axis: 2", (2, 3, 100, 90), (2, 3)),
        ("", (), ()),
    ],
)
def test_values_and_gradients(
    options: str, shape: tuple[int, ...], top: tuple[int, ...], operation: str
) -> None:
    x = distinct_array(*shape) + np.float32(0.03)
    x = x / np.abs(x).max()
    layer = LayerUnderTest(reduction(operation, options), [x])
    (y,) = layer.forward()
    assert y.shape == top
    rows = x.astype(np.float64).reshape(*top, -1)
    expected = layer.message.reduction_param.coeff * OPERATIONS[operation](rows)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    if x.size < 1000:  # a sum of thousands rounds away a small step
        check_gradients(layer, step=2e-3, samples=30)


@pytest.mark.parametrize(
    ("operation", "quality"),
    [
        ("SUM", Quality.NOTHING),
        ("MEAN", Quality.NOTHING),
        ("ASUM", Quality.BOUNDED_SIGN),
        ("SUMSQ", Quality.BOUNDED),
    ],
)
def test_needs(operation: str, quality: Quality) -> None:
    layer = LayerUnderTest(reduction(operation), [random_array(3, 4)])
    assert layer.core.needs(layer.propagation).bottoms[0].quality == quality
    assert layer.core.needs(layer.propagation).tops[0].quality == Quality.NOTHING


@pytest.mark.parametrize(
    ("operation", "options", "factor"),
    [
        ("SUM", "axis: 1 coeff: -0.5", 2),
        ("ASUM", "", 12),
        ("MEAN", "coeff: 3", 3),
        ("SUMSQ", "", np.inf),
    ],
)
def test_error_factor(operation: str, options: str, factor: float) -> None:
    layer = LayerUnderTest(reduction(operation, options), [random_array(3, 4)])
    assert layer.core.traits().error_factor == pytest.approx(factor)


def test_the_absolute_values_gradient_at_zero() -> None:
    layer = LayerUnderTest(reduction("ASUM"), [np.float32([0, -1, 2])])
    layer.forward()
    np.testing.assert_array_equal(layer.backward([np.float32(3)])[0], [0, -3, 3])


def test_batch_axis() -> None:
    assert (
        LayerUnderTest(reduction("SUM"), [random_array(3)]).core.traits().batch_axis
        == _core.layers.BatchAxis.COUPLED
    )


@pytest.mark.parametrize(
    ("options", "bottoms", "words"),
    [
        ("axis: 2", [random_array(3, 4)], "axis 2 is out of range for 2 axes"),
        ("", [random_array(3), random_array(3)], "has 2 bottoms, needs 1"),
    ],
)
def test_bad_configuration(options: str, bottoms: list[np.ndarray], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(reduction("SUM", options), bottoms)
