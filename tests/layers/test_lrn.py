"""LRN against BVLC Caffe's figures, its formula in double precision, and finite differences."""

import numpy as np
import pytest
from harness import LayerUnderTest, check_golden, check_gradients, golden_names, random_array

from caffe import _core

# name: (options, shape of the bottom)
CASES = {
    "across": ("local_size: 5 alpha: 0.5 beta: 0.75", (2, 7, 3, 4)),
    "across, k and beta": ("local_size: 3 alpha: 2 beta: 0.4 k: 1.5", (2, 4, 3, 3)),
    "across, one channel": ("local_size: 5 alpha: 1", (2, 1, 3, 3)),
    "across, window over all channels": ("local_size: 21 alpha: 4 beta: 0.75", (1, 6, 2, 5)),
    "across, size 1": ("local_size: 1 alpha: 0.5", (1, 3, 2, 5)),
    "across, many pixels": ("local_size: 5 alpha: 0.5", (1, 6, 17, 19)),
    "within": ("local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL", (2, 3, 5, 6)),
    "within, beta": ("local_size: 5 alpha: 2 beta: 0.5 norm_region: WITHIN_CHANNEL", (1, 2, 7, 5)),
    "within, window over the image": (
        "local_size: 9 alpha: 3 norm_region: WITHIN_CHANNEL",
        (1, 2, 3, 4),
    ),
}


def lrn(options: str) -> str:
    return f'type: "LRN" lrn_param {{ {options} }}'


def formula(x, param):
    """The top in double precision."""
    x = x.astype(np.float64)
    reach = (param.local_size - 1) // 2
    squares = np.zeros_like(x)
    across = param.norm_region == param.ACROSS_CHANNELS
    axes = (1,) if across else (2, 3)
    pads = [(reach, reach) if axis in axes else (0, 0) for axis in range(4)]
    padded = np.pad(x**2, pads)
    for shift in np.ndindex(*([param.local_size] * len(axes))):
        window = [slice(None)] * 4
        for axis, start in zip(axes, shift):
            window[axis] = slice(start, start + x.shape[axis])
        squares += padded[tuple(window)]
    scale = param.alpha / param.local_size ** len(axes) * squares
    return x * ((param.k if across else 1) + scale) ** -param.beta


@pytest.mark.parametrize("name", golden_names("lrn_"))
def test_golden(name):
    check_golden(name)


@pytest.mark.parametrize("name", CASES)
def test_forward_is_the_formula(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(lrn(options), [random_array(*shape)])
    expected = formula(layer.bottoms[0], layer.message.lrn_param)
    np.testing.assert_allclose(layer.forward()[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name):
    options, shape = CASES[name]
    check_gradients(LayerUnderTest(lrn(options), [random_array(*shape)]))


def test_large_values_leave_no_error_behind():
    x = random_array(1, 40, 4, 5) * 1e-2
    x[:, 3] = 3e4
    layer = LayerUnderTest(lrn("local_size: 5 alpha: 1e-4"), [x])
    expected = formula(x, layer.message.lrn_param)
    np.testing.assert_allclose(layer.forward()[0], expected, rtol=2e-6)


def test_needs_its_bottom_only_to_propagate():
    x = random_array(1, 5, 2, 2)
    layer = LayerUnderTest(lrn(""), [x])
    need = layer.core.needs(layer.propagation).bottoms[0]
    assert need.quality == _core.layers.Quality.BOUNDED
    assert need.rule == _core.layers.BoundRule.PROPAGATED
    assert layer.core.traits().cheap
    stopped = LayerUnderTest(lrn(""), [x], propagate=[False])
    needs = stopped.core.needs(stopped.propagation)
    assert needs.bottoms[0].quality == _core.layers.Quality.NOTHING
    (y,) = stopped.forward()
    assert stopped.backward([y]) == [None]


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ("local_size: 4", (1, 5, 2, 2), "local_size is 4, needs to be odd"),
        ("", (1, 5), "1x5, needs 4 axes"),
    ],
)
def test_bad_configuration(options, shape, words):
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(lrn(options), [np.zeros(shape, np.float32)])
