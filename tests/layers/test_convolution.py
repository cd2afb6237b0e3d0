"""Convolution against BVLC Caffe's figures, finite differences and, if installed, PyTorch."""

import numpy as np
import pytest
from harness import LayerUnderTest, check_golden, check_gradients, golden_names, random_array

from caffe import _core

Quality = _core.layers.Quality


def convolution(options: str) -> str:
    return f'type: "Convolution" convolution_param {{ {options} }}'


# name: (options, shape of the bottom)
CASES = {
    "plain": ("num_output: 3 kernel_size: 3", (2, 4, 6, 5)),
    "everything": (
        "num_output: 6 group: 2 kernel_h: 3 kernel_w: 2 pad_h: 2 pad_w: 1 stride_h: 2 stride_w: 1 "
        "dilation: 2 dilation: 3",
        (2, 4, 7, 8),
    ),
    "blocked group": ("num_output: 32 group: 2 kernel_size: 5 pad: 2", (2, 16, 6, 7)),
    "depthwise": ("num_output: 5 group: 5 kernel_size: 3 pad: 1 stride: 2", (2, 5, 7, 7)),
    "depthwise multiplier": ("num_output: 8 group: 4 kernel_size: 3", (2, 4, 5, 5)),
    "1x1": ("num_output: 5 kernel_size: 1", (3, 4, 5, 4)),
    "1x1 strided": ("num_output: 16 kernel_size: 1 stride: 2", (2, 16, 5, 6)),
    "1-D": ("num_output: 4 kernel_size: 3 pad: 1 stride: 2 group: 2", (3, 4, 9)),
    "3-D": (
        "num_output: 4 kernel_size: [2, 3, 1] stride: [1, 2, 1] pad: [1, 0, 0] group: 2",
        (2, 4, 4, 5, 3),
    ),
    "one channel": ("num_output: 8 kernel_size: 3 pad: 1", (2, 1, 8, 8)),
    "three channels": ("num_output: 16 kernel_size: 11 stride: 4", (1, 3, 19, 23)),
    "no bias": ("num_output: 3 kernel_size: 2 bias_term: false", (2, 3, 4, 4)),
    "whole image": ("num_output: 3 kernel_size: 4", (2, 2, 4, 4)),
}


@pytest.mark.parametrize("name", golden_names("conv_"))
def test_golden(name):
    check_golden(name)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(convolution(options), [random_array(*shape)])
    # Linear in each argument: a wide step costs nothing and rounds less.
    check_gradients(layer, step=0.25, tolerance=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch, the second opinion, is not installed")
    options, shape = CASES[name]
    layer = LayerUnderTest(convolution(options), [random_array(*shape)])
    param = layer.message.convolution_param
    spatial = len(shape) - 2

    def per_axis(values, short, otherwise):
        height, width = getattr(param, f"{short}_h", 0), getattr(param, f"{short}_w", 0)
        if not values and (height or width):
            return (height, width)
        values = tuple(values) or (otherwise,)
        return values * spatial if len(values) == 1 else values

    x, *weights = [
        torch.tensor(a, requires_grad=True) for a in [layer.bottoms[0], *layer.parameters]
    ]
    function = getattr(torch.nn.functional, f"conv{spatial}d")
    expected = function(
        x,
        *weights,
        stride=per_axis(param.stride, "stride", 1),
        padding=per_axis(param.pad, "pad", 0),
        dilation=per_axis(param.dilation, "dilation", 1),
        groups=param.group,
    )
    (y,) = layer.forward()
    np.testing.assert_allclose(y, expected.detach().numpy(), rtol=1e-4, atol=1e-4)
    dy = random_array(*y.shape, seed=5)
    expected.backward(torch.tensor(dy))
    (dx,) = layer.backward([dy])
    np.testing.assert_allclose(dx, x.grad.numpy(), rtol=1e-4, atol=1e-4)
    for got, wanted in zip(layer.parameter_gradients, weights):
        np.testing.assert_allclose(got, wanted.grad.numpy(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("channels", [4, 16])
def test_backward_adds_to_gradients(channels):
    layer = LayerUnderTest(
        convolution("num_output: 16 kernel_size: 3"), [random_array(2, channels, 6, 6)]
    )
    (y,) = layer.forward()
    dy = random_array(*y.shape, seed=3)
    layer.backward([dy])
    once = [gradient.copy() for gradient in layer.parameter_gradients]
    layer.backward([2 * dy])
    for got, first in zip(layer.parameter_gradients, once):
        np.testing.assert_allclose(got, 3 * first, rtol=1e-5, atol=1e-5)
    layer.clear_gradients()
    layer.backward([dy])
    for got, first in zip(layer.parameter_gradients, once):
        np.testing.assert_array_equal(got, first)


def test_several_bottoms_share_the_weights():
    x, z = random_array(2, 8, 5, 5), random_array(2, 8, 5, 5, seed=1)
    text = convolution("num_output: 8 kernel_size: 3")
    both = LayerUnderTest(text, [x, z])
    single = LayerUnderTest(text, [x], both.parameters)
    tops = both.forward()
    diffs = [random_array(*top.shape, seed=9 + i) for i, top in enumerate(tops)]
    gradients = both.backward(diffs)
    for bottom, top, diff, gradient in zip([x, z], tops, diffs, gradients):
        single.bottoms[0][...] = bottom
        np.testing.assert_array_equal(single.forward()[0], top)
        np.testing.assert_array_equal(single.backward([diff])[0], gradient)
    for got, expected in zip(both.parameter_gradients, single.parameter_gradients):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_frozen_parameters_need_nothing_and_stay_untouched():
    text = convolution("num_output: 8 kernel_size: 3")
    layer = LayerUnderTest(text, [random_array(2, 8, 5, 5)], learns=[False, False])
    (y,) = layer.forward()
    (dx,) = layer.backward([np.ones_like(y)])
    assert np.isfinite(dx).all()
    needs = layer.core.needs(layer.propagation)
    assert [need.quality for need in needs.bottoms + needs.tops] == [Quality.NOTHING] * 2
    assert all(parameter.gradient_is_zero for parameter in layer.core.parameters)
    assert not any(parameter.has_gradient for parameter in layer.core.parameters)


def test_bias_alone_learns_without_the_bottom():
    text = convolution("num_output: 8 kernel_size: 3")
    layer = LayerUnderTest(
        text, [random_array(2, 8, 5, 5)], propagate=[False], learns=[False, True]
    )
    (y,) = layer.forward()
    assert layer.core.needs(layer.propagation).bottoms[0].quality == Quality.NOTHING
    dy = random_array(*y.shape)
    assert layer.backward([dy]) == [None]
    np.testing.assert_allclose(
        layer.parameter_gradients[1], dy.sum(axis=(0, 2, 3)), rtol=1e-4, atol=1e-5
    )


def test_learning_weights_need_a_bounded_bottom():
    layer = LayerUnderTest(convolution("num_output: 2 kernel_size: 3"), [random_array(2, 3, 5, 4)])
    needs = layer.core.needs(layer.propagation)
    assert needs.bottoms[0].quality == Quality.BOUNDED
    assert needs.bottoms[0].rule == _core.layers.BoundRule.GRADIENT
    assert needs.tops[0].quality == Quality.NOTHING
    assert layer.core.gradient_terms() == 2 * 3 * 2


def test_shapes_may_change():
    layer = LayerUnderTest(convolution("num_output: 8 kernel_size: 3"), [random_array(2, 8, 5, 5)])
    layer.forward()
    first = layer.bottoms[0]
    layer.bottoms = [random_array(3, 8, 7, 6)]
    layer.reshape()
    assert layer.forward()[0].shape == (3, 8, 5, 4)
    check_gradients(layer, step=0.25, tolerance=2e-3, samples=10)
    layer.bottoms = [first]
    layer.reshape()
    assert layer.forward()[0].shape == (2, 8, 3, 3)


def test_workspace_goes_back():
    layer = LayerUnderTest(convolution("num_output: 16 kernel_size: 3"), [random_array(2, 8, 9, 9)])
    (y,) = layer.forward()
    layer.backward([y])
    assert _core.memory.live()["workspace"] == 0
    assert layer.core.saved_bytes() == 0


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ("num_output: 2 kernel_size: 3", [(2, 3)], "2x3, needs 3 to 5 axes"),
        ("num_output: 2 kernel_size: 3", [(2, 3, 2, 9)], "reaches over 3 positions"),
        ("num_output: 2", [(2, 3, 5, 5)], "no kernel_size"),
        ("kernel_size: 3", [(2, 3, 5, 5)], "num_output is 0"),
        ("num_output: 2 kernel_size: 3 group: 2", [(2, 3, 5, 5)], "group is 2"),
        ("num_output: 2 kernel_size: 3 axis: 2", [(2, 3, 5, 5)], "axis is 2"),
        ("num_output: 2 kernel_size: 0", [(2, 3, 5, 5)], "kernel_size is 0"),
        ("num_output: 2 kernel_size: 3 stride: 0", [(2, 3, 5, 5)], "stride is 0"),
        ("num_output: 2 kernel_size: [3, 3, 3]", [(2, 3, 5, 5)], "3 values of kernel_size"),
        ("num_output: 2 kernel_size: 3", [(2, 3, 5, 5), (2, 3, 5, 6)], "2x3x5x5 and 2x3x5x6"),
        ("num_output: 2 kernel_size: 3", [(0, 3, 5, 5)], "empty"),
        ("num_output: 2 kernel_h: 3", [(2, 3, 5, 5)], "only one of kernel_h and kernel_w"),
        ("num_output: 2 kernel_size: 3 pad: 1 pad_h: 1", [(2, 3, 5, 5)], "both pad and pad_h"),
        ("num_output: 2 kernel_h: 3 kernel_w: 3", [(2, 3, 5)], "2 values of kernel_size"),
    ],
)
def test_bad_configuration_is_one_clear_line(options, shapes, words):
    with pytest.raises(ValueError, match=words) as caught:
        LayerUnderTest(convolution(options), [np.zeros(shape, np.float32) for shape in shapes])
    assert "\n" not in str(caught.value)


def test_weights_for_other_channels():
    layer = LayerUnderTest(convolution("num_output: 2 kernel_size: 3"), [random_array(2, 3, 5, 5)])
    layer.bottoms = [random_array(2, 4, 5, 5)]
    with pytest.raises(ValueError, match=r"weights are 2x3x3x3, but .* needs 2x4x3x3"):
        layer.reshape()
