"""InnerProduct against BVLC Caffe's figures, NumPy and finite differences."""

import numpy as np
import pytest
from harness import LayerUnderTest, check_golden, check_gradients, golden_names, random_array

from caffe import _core

Quality = _core.layers.Quality


def inner_product(options: str) -> str:
    return f'type: "InnerProduct" inner_product_param {{ {options} }}'


CASES = {
    "plain": ("num_output: 4", (3, 5)),
    "images": ("num_output: 4", (3, 2, 3, 2)),
    "axis 2": ("num_output: 4 axis: 2", (3, 2, 3, 2)),
    "last axis": ("num_output: 4 axis: -1", (3, 2, 5)),
    "axis 0": ("num_output: 4 axis: 0", (3, 2)),
    "transposed": ("num_output: 4 transpose: true", (3, 2, 3)),
    "no bias": ("num_output: 4 bias_term: false", (3, 5)),
}


@pytest.mark.parametrize("name", golden_names("innerproduct"))
def test_golden(name):
    check_golden(name)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(inner_product(options), [random_array(*shape)])
    check_gradients(layer, step=0.25, tolerance=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_forward_is_the_matrix_product(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(inner_product(options), [random_array(*shape)])
    param = layer.message.inner_product_param
    axis = param.axis % len(shape)
    matrix = layer.bottoms[0].reshape(int(np.prod(shape[:axis])), -1)
    weights = layer.parameters[0] if param.transpose else layer.parameters[0].T
    expected = matrix @ weights + (layer.parameters[1] if param.bias_term else 0)
    (y,) = layer.forward()
    assert y.shape == (*shape[:axis], 4)
    np.testing.assert_allclose(y, expected.reshape(y.shape), rtol=1e-5, atol=1e-5)
    assert layer.core.gradient_terms() == len(matrix)
    independent = axis > 0
    assert (layer.core.traits().batch_axis == _core.layers.BatchAxis.INDEPENDENT) == independent


@pytest.mark.parametrize("options", ["num_output: 4", "num_output: 4 transpose: true"])
def test_backward_adds_to_gradients(options):
    layer = LayerUnderTest(inner_product(options), [random_array(3, 5)])
    (y,) = layer.forward()
    dy = random_array(*y.shape, seed=3)
    layer.backward([dy])
    once = [gradient.copy() for gradient in layer.parameter_gradients]
    layer.backward([2 * dy])
    for got, first in zip(layer.parameter_gradients, once):
        np.testing.assert_allclose(got, 3 * first, rtol=1e-5, atol=1e-5)


def test_needs_follow_what_learns():
    x = random_array(3, 5)
    layer = LayerUnderTest(inner_product("num_output: 4"), [x])
    need = layer.core.needs(layer.propagation).bottoms[0]
    assert (need.quality, need.rule) == (Quality.BOUNDED, _core.layers.BoundRule.GRADIENT)

    frozen = LayerUnderTest(inner_product("num_output: 4"), [x], learns=[False, True])
    (y,) = frozen.forward()
    frozen.backward([y])
    assert frozen.core.needs(frozen.propagation).bottoms[0].quality == Quality.NOTHING
    assert not frozen.core.parameters[0].has_gradient
    np.testing.assert_allclose(frozen.parameter_gradients[1], y.sum(axis=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ("", (2, 3), "num_output is 0"),
        ("num_output: 4 axis: 3", (2, 3), "axis 3 is out of range"),
        ("num_output: 4", (2, 0), "nothing from axis 1 on"),
    ],
)
def test_bad_configuration(options, shape, words):
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(inner_product(options), [np.zeros(shape, np.float32)])


def test_weights_for_another_count():
    layer = LayerUnderTest(inner_product("num_output: 4"), [random_array(2, 3)])
    layer.bottoms = [random_array(2, 6)]
    with pytest.raises(ValueError, match="has 6 values from axis 1 on, but its weights are for 3"):
        layer.reshape()
