"""Deconvolution against BVLC Caffe's figures, finite differences, Convolution and PyTorch."""

import numpy as np
import pytest
from harness import LayerUnderTest, check_golden, check_gradients, golden_names, random_array

from caffe import _core

Quality = _core.layers.Quality


def deconvolution(options: str) -> str:
    return f'type: "Deconvolution" convolution_param {{ {options} }}'


# name: (options, shape of the bottom)
CASES = {
    "plain": ("num_output: 3 kernel_size: 3", (2, 4, 6, 5)),
    "k4s2p1": ("num_output: 3 kernel_size: 4 stride: 2 pad: 1", (2, 4, 5, 6)),
    "everything": (
        "num_output: 6 group: 2 kernel_h: 3 kernel_w: 2 pad_h: 2 pad_w: 1 stride_h: 2 stride_w: 1 "
        "dilation: 2 dilation: 3",
        (2, 4, 5, 6),
    ),
    "blocked group": ("num_output: 32 group: 2 kernel_size: 5 pad: 2", (2, 16, 6, 7)),
    "depthwise": ("num_output: 5 group: 5 kernel_size: 4 pad: 1 stride: 2", (2, 5, 4, 4)),
    "1x1": ("num_output: 5 kernel_size: 1", (3, 4, 5, 4)),
    "gaps": ("num_output: 3 kernel_size: 2 stride: 3", (2, 4, 3, 4)),
    "1-D": ("num_output: 4 kernel_size: 3 pad: 1 stride: 2 group: 2", (3, 4, 5)),
    "3-D": (
        "num_output: 4 kernel_size: [2, 3, 1] stride: [1, 2, 1] pad: [1, 0, 0] group: 2",
        (2, 4, 4, 3, 3),
    ),
    "one channel": ("num_output: 8 kernel_size: 3 pad: 1", (2, 1, 8, 8)),
    "no bias": ("num_output: 3 kernel_size: 2 bias_term: false", (2, 3, 4, 4)),
}


@pytest.mark.parametrize("name", golden_names("deconv_"))
def test_golden(name):
    check_golden(name)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(deconvolution(options), [random_array(*shape)])
    check_gradients(layer, step=0.25, tolerance=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_is_the_transpose_of_a_convolution(name):
    """<y, z> without the bias is <x, convolution of z>, for the same weights and any z."""
    options, shape = CASES[name]
    layer = LayerUnderTest(deconvolution(options), [random_array(*shape)])
    for bias in layer.parameters[1:]:
        bias[...] = 0
    (y,) = layer.forward()
    z = random_array(*y.shape, seed=3)
    param = layer.message.convolution_param
    param.num_output, param.bias_term = shape[1], False
    text = str(layer.message).replace("Deconvolution", "Convolution")
    (back,) = LayerUnderTest(text, [z], layer.parameters[:1]).forward()
    np.testing.assert_allclose(np.vdot(y, z), np.vdot(layer.bottoms[0], back), rtol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch, the second opinion, is not installed")
    options, shape = CASES[name]
    layer = LayerUnderTest(deconvolution(options), [random_array(*shape)])
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
    expected = getattr(torch.nn.functional, f"conv_transpose{spatial}d")(
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


def test_backward_adds_to_gradients_of_two_bottoms():
    text = deconvolution("num_output: 8 kernel_size: 3")
    x, z = random_array(2, 16, 5, 5), random_array(2, 16, 5, 5, seed=1)
    both = LayerUnderTest(text, [x, z])
    tops = both.forward()
    diffs = [random_array(*top.shape, seed=9 + i) for i, top in enumerate(tops)]
    both.backward(diffs)
    expected = [np.zeros_like(gradient) for gradient in both.parameter_gradients]
    for bottom, top, diff in zip([x, z], tops, diffs):
        single = LayerUnderTest(text, [bottom], both.parameters)
        np.testing.assert_array_equal(single.forward()[0], top)
        single.backward([diff])
        expected = [sum(pair) for pair in zip(expected, single.parameter_gradients)]
    for got, wanted in zip(both.parameter_gradients, expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


def test_needs():
    x = random_array(2, 3, 5, 4)
    layer = LayerUnderTest(deconvolution("num_output: 2 kernel_size: 3"), [x])
    needs = layer.core.needs(layer.propagation)
    assert needs.bottoms[0].quality == Quality.BOUNDED
    assert needs.bottoms[0].rule == _core.layers.BoundRule.GRADIENT
    assert layer.core.gradient_terms() == 2 * 5 * 4
    frozen = _core.layers.Propagation([True], [False, True])
    assert layer.core.needs(frozen).bottoms[0].quality == Quality.NOTHING


def test_workspace_goes_back():
    text = deconvolution("num_output: 16 kernel_size: 3")
    layer = LayerUnderTest(text, [random_array(2, 8, 9, 9)])
    (y,) = layer.forward()
    layer.backward([y])
    assert _core.memory.live()["workspace"] == 0


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ("num_output: 2 kernel_size: 3", [(2, 3)], "2x3, needs 3 to 5 axes"),
        ("num_output: 2 kernel_size: 2 pad: 3", [(2, 3, 2, 9)], "a top of -3 positions along"),
        ("num_output: 2", [(2, 3, 5, 5)], "no kernel_size"),
        ("kernel_size: 3", [(2, 3, 5, 5)], "num_output is 0"),
        ("num_output: 2 kernel_size: 3 group: 2", [(2, 3, 5, 5)], "group is 2"),
        ("num_output: 2 kernel_size: 3", [(2, 3, 5, 5), (2, 3, 5, 6)], "2x3x5x5 and 2x3x5x6"),
        ("num_output: 2 kernel_size: 3", [(0, 3, 5, 5)], "empty"),
    ],
)
def test_bad_configuration(options, shapes, words):
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(deconvolution(options), [np.zeros(shape, np.float32) for shape in shapes])
