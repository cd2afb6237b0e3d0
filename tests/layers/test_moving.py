"""Crop, Tile, Im2col and SPP: layers that move or pool pixels."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    distinct_array,
    random_array,
)

from caffe import _core

BatchAxis = _core.layers.BatchAxis


@pytest.mark.parametrize("name", ["tile", "im2col", "spp"])
def test_golden(name: str) -> None:
    """Crop's has a gradient of zeros for the unread bottom: see tests/net/test_golden.py."""
    check_golden(name)


# -- Crop ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("", np.s_[:, :, :3, :4]),
        ("offset: 1", np.s_[:, :, 1:4, 1:5]),
        ("offset: [2, 1]", np.s_[:, :, 2:5, 1:5]),
        ("axis: 1", np.s_[:, :2, :3, :4]),
        ("axis: 1 offset: [1, 0, 2]", np.s_[:, 1:3, :3, 2:6]),
        ("axis: -1 offset: 2", np.s_[:, :, :, 2:6]),
        ("axis: 0", np.s_[:2, :2, :3, :4]),
    ],
)
def test_crop(options: str, part: tuple[slice, ...]) -> None:
    x, like = random_array(3, 3, 5, 6), np.zeros((2, 2, 3, 4))
    layer = LayerUnderTest(
        f'type: "Crop" crop_param {{ {options} }}', [x, like], propagate=[True, False]
    )
    np.testing.assert_array_equal(layer.forward()[0], x[part])
    check_gradients(layer, step=0.25, tolerance=2e-3, samples=30)
    needs = layer.core.needs(layer.propagation)
    assert {need.quality for need in needs.bottoms + needs.tops} == {Quality.NOTHING}
    coupled = layer.core.traits().batch_axis == BatchAxis.COUPLED
    assert coupled == ("axis: 0" in options)
    assert layer.core.traits().differentiable_bottoms == 1


@pytest.mark.parametrize(
    ("options", "like", "words"),
    [
        ("offset: 4", (3, 3, 3, 4), "cannot cut 3 values from offset 4 on out of axis 2"),
        ("", (3, 3, 6, 4), "cannot cut 6 values from offset 0 on out of axis 2 .* which has 5"),
        ("offset: [1, 2, 3]", (3, 3, 3, 3), "has 3 values of offset, needs 1 or 2"),
        ("axis: 4", (3, 3, 3, 3), "axis 4 does not exist: the bottom has 4 axes"),
        ("", (3, 3, 3), "bottom 0 has 4 axes and bottom 1 3"),
    ],
)
def test_bad_crop(options: str, like: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(
            f'type: "Crop" crop_param {{ {options} }}', [random_array(3, 3, 5, 6), np.zeros(like)]
        )


# -- Tile ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("tiles", [1, 3])
def test_tile(tiles: int, axis: int) -> None:
    x = random_array(2, 3, 4)
    layer = LayerUnderTest(f'type: "Tile" tile_param {{ axis: {axis} tiles: {tiles} }}', [x])
    np.testing.assert_array_equal(layer.forward()[0], np.concatenate([x] * tiles, axis))
    check_gradients(layer, step=0.25, tolerance=2e-3)
    assert (layer.core.traits().batch_axis == BatchAxis.COUPLED) == (axis == 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "tiles 0, needs 1 or more"),
        ("tiles: -1", "tiles -1"),
        ("tiles: 2 axis: 2", "axis 2 does not exist"),
    ],
)
def test_bad_tile(options: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(f'type: "Tile" tile_param {{ {options} }}', [random_array(2, 3)])


# -- Im2col ----------------------------------------------------------------------------------------

IM2COL = [
    ("kernel_size: 3", (2, 3, 5, 6)),
    ("kernel_size: 3 stride: 2 pad: 1", (2, 3, 6, 7)),
    ("kernel_h: 3 kernel_w: 2 pad_h: 2 pad_w: 0 stride_h: 1 stride_w: 3", (1, 2, 4, 8)),
    ("kernel_size: 2 dilation: 3 pad: 4", (1, 2, 4, 5)),
    ("kernel_size: 3 stride: 2", (2, 3, 9)),
    ("kernel_size: [2, 3, 1] pad: [1, 0, 0]", (2, 2, 3, 4, 3)),
]


@pytest.mark.parametrize(("options", "shape"), IM2COL)
def test_im2col_is_what_convolution_reads(options: str, shape: tuple[int, ...]) -> None:
    x = random_array(*shape)
    layer = LayerUnderTest(f'type: "Im2col" convolution_param {{ {options} }}', [x])
    text = f'type: "Convolution" convolution_param {{ {options} num_output: 4 bias_term: false }}'
    convolution = LayerUnderTest(text, [x])
    (columns,), (expected,) = layer.forward(), convolution.forward()
    weights = convolution.parameters[0].reshape(4, -1)
    got = np.einsum("oc,nc...->no...", weights, columns)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    check_gradients(layer, step=0.25, tolerance=2e-3, samples=30)


def test_im2col_of_other_axes() -> None:
    x = random_array(2, 3, 4, 5)
    text = 'type: "Im2col" convolution_param {{ kernel_size: 2 axis: {} }}'
    (last,) = LayerUnderTest(text.format(2), [x]).forward()
    assert last.shape == (2, 3, 8, 4)
    (same,) = LayerUnderTest(text.format(-2), [x]).forward()
    np.testing.assert_array_equal(last, same)
    flat = LayerUnderTest(text.format(1), [x.reshape(6, 4, 5)]).forward()[0]
    np.testing.assert_array_equal(last, flat.reshape(last.shape))


@pytest.mark.parametrize(
    ("options", "shape", "words"),
    [
        ("", (2, 3, 5, 5), "no kernel_size"),
        ("kernel_size: 0", (2, 3, 5, 5), "kernel_size is 0, needs to be at least 1"),
        ("kernel_size: 6", (2, 3, 5, 5), "reaches over 6 positions, .* has 5 with padding"),
        ("kernel_size: [3, 3, 3]", (2, 3, 5, 5), "3 values of kernel_size, needs 1 or 2"),
        ("kernel_size: 3 stride: 0", (2, 3, 5, 5), "stride is 0"),
        ("kernel_size: 3", (2, 3), "no spatial axes behind axis 1"),
        ("kernel_size: 3 axis: 4", (2, 3, 5, 5), "axis 4 does not exist"),
    ],
)
def test_bad_im2col(options: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(f'type: "Im2col" convolution_param {{ {options} }}', [random_array(*shape)])


# -- SPP -------------------------------------------------------------------------------------------


def pyramid(height: int, method: str = "MAX") -> str:
    return f'type: "SPP" spp_param {{ pyramid_height: {height} pool: {method} }}'


@pytest.mark.parametrize(("height", "size"), [(1, (5, 4)), (2, (6, 6)), (3, (8, 12)), (3, (9, 7))])
@pytest.mark.parametrize("method", ["MAX", "AVE"])
def test_spp(method: str, height: int, size: tuple[int, int]) -> None:
    x = distinct_array(2, 3, *size)
    layer = LayerUnderTest(pyramid(height, method), [x])
    (y,) = layer.forward()
    assert y.shape == (2, 3 * sum(4**level for level in range(height)))
    whole = x.max((2, 3)) if method == "MAX" else None
    if whole is not None:
        np.testing.assert_array_equal(y[:, :3], whole)
    if method == "AVE" and size == (8, 12):
        cells = x.reshape(2, 3, 4, 2, 4, 3).mean((3, 5)).reshape(2, -1)
        np.testing.assert_allclose(y[:, -48:], cells, rtol=1e-4, atol=1e-4)
    check_gradients(layer, samples=30)


def test_spp_of_random_values() -> None:
    x = np.maximum(random_array(2, 3, 8, 8), 0)
    layer = LayerUnderTest(pyramid(3, "STOCHASTIC"), [x])
    (y,) = layer.forward()
    assert np.isin(y, x).all()
    np.testing.assert_array_equal(layer.forward()[0], y)
    (dx,) = layer.backward([np.ones_like(y)])
    assert dx.sum() == y.size
    assert layer.core.saved_bytes() > 0
    layer.core.drop_saved()
    assert layer.core.saved_bytes() == 0


def test_spp_of_another_size() -> None:
    layer = LayerUnderTest(pyramid(2), [random_array(2, 3, 8, 8)])
    layer.bottoms = [random_array(2, 3, 5, 9)]
    layer.reshape()
    assert layer.forward()[0].shape == (2, 15)
    check_gradients(layer, samples=10)


@pytest.mark.parametrize(
    ("text", "shape", "words"),
    [
        ('type: "SPP"', (1, 1, 4, 4), "pyramid_height 0, needs 1 or more"),
        (pyramid(3), (1, 1, 5, 5), "asks for 4 x 4 windows of 5 x 5 pixels"),
        (pyramid(2), (1, 4, 4), "needs 4 axes"),
    ],
)
def test_bad_spp(text: str, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(text, [random_array(*shape)])
