"""Pooling against BVLC Caffe's figures, a plain loop in NumPy, and finite differences."""

import numpy as np
import pytest
from harness import (
    LayerUnderTest,
    check_golden,
    check_gradients,
    distinct_array,
    golden_names,
    random_array,
)

from caffe import _core

# name: (options, shape of the bottom). Widths of 4 and 8 outputs are where the fast loops begin.
CASES = {
    "k2s2": ("kernel_size: 2 stride: 2", (2, 3, 6, 8)),
    "k2s2 odd": ("kernel_size: 2 stride: 2", (1, 2, 7, 9)),
    "k2s2 wide": ("kernel_size: 2 stride: 2", (1, 2, 5, 37)),
    "k3s2": ("kernel_size: 3 stride: 2", (2, 2, 9, 11)),
    "k3s2 wide": ("kernel_size: 3 stride: 2", (1, 2, 8, 56)),
    "k3s2 padded": ("kernel_size: 3 stride: 2 pad: 1", (2, 2, 8, 20)),
    "k3s1": ("kernel_size: 3", (1, 2, 6, 7)),
    "k3s1 padded": ("kernel_size: 3 pad: 1", (1, 2, 6, 21)),
    "floor": ("kernel_size: 3 stride: 2 round_mode: FLOOR", (1, 2, 8, 8)),
    "clipped by padding": ("kernel_size: 3 stride: 3 pad: 2", (1, 2, 7, 7)),
    "stride over the kernel": ("kernel_size: 1 stride: 3", (1, 2, 5, 6)),
    "stride past the edge": ("kernel_size: 1 stride: 4", (1, 2, 6, 6)),
    "oblong": ("kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 pad_h: 1", (2, 2, 7, 8)),
    "kernel over the bottom": ("kernel_size: 5 stride: 2", (1, 2, 4, 4)),
    "large": ("kernel_size: 17 stride: 5 pad: 8", (1, 1, 20, 19)),
    "global": ("global_pooling: true", (2, 3, 5, 4)),
}


def pooling(method: str, options: str, tops: int = 1) -> str:
    names = " ".join(f'top: "{name}"' for name in "ym"[:tops])
    return f'type: "Pooling" {names} pooling_param {{ pool: {method} {options} }}'


def by_axis(param, name, both):
    """The values for height and width, given together or apart."""
    if param.HasField(f"{name}_h") or param.HasField(f"{name}_w"):
        return getattr(param, f"{name}_h"), getattr(param, f"{name}_w")
    return both, both


def plain_pooling(x, message):
    """The tops and, for each, the index of the maximum, by loops over windows."""
    p = message.pooling_param
    height, width = x.shape[2:]
    kernel = (height, width) if p.global_pooling else by_axis(p, "kernel", p.kernel_size)
    stride, pad = by_axis(p, "stride", p.stride), by_axis(p, "pad", p.pad)
    out = []
    for i, size in enumerate((height, width)):
        steps = (size + 2 * pad[i] - kernel[i]) / stride[i]
        steps = int(np.ceil(steps) if p.round_mode == p.CEIL else np.floor(steps))
        out.append(steps + (0 if steps * stride[i] >= size + pad[i] else 1))
    y = np.empty((*x.shape[:2], *out), np.float32)
    mask = np.empty_like(y)
    for i, j in np.ndindex(*out):
        top, left = i * stride[0] - pad[0], j * stride[1] - pad[1]
        bottom = min(top + kernel[0], height + pad[0])
        right = min(left + kernel[1], width + pad[1])
        window = x[:, :, max(top, 0) : bottom, max(left, 0) : right]
        flat = window.reshape(*x.shape[:2], -1)
        if p.pool == p.MAX:
            best = flat.argmax(axis=2)
            row, column = np.divmod(best, window.shape[3])
            y[:, :, i, j] = flat.max(axis=2)
            mask[:, :, i, j] = (max(top, 0) + row) * width + max(left, 0) + column
        else:
            y[:, :, i, j] = flat.sum(axis=2) / ((bottom - top) * (right - left))
    return y, mask


@pytest.mark.parametrize("name", golden_names("pool_"))
def test_golden(name):
    check_golden(name)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["MAX", "AVE"])
def test_forward_is_the_plain_loop(method, name):
    options, shape = CASES[name]
    layer = LayerUnderTest(pooling(method, options), [random_array(*shape)])
    expected, _ = plain_pooling(layer.bottoms[0], layer.message)
    (y,) = layer.forward()
    if method == "MAX":
        np.testing.assert_array_equal(y, expected)
    else:
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_max(name):
    options, shape = CASES[name]
    check_gradients(LayerUnderTest(pooling("MAX", options), [distinct_array(*shape)]))


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_ave(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(pooling("AVE", options), [random_array(*shape)])
    check_gradients(layer, step=0.25, tolerance=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_ties_go_to_the_first_in_row_major_order(name):
    options, shape = CASES[name]
    x = np.random.default_rng(3).integers(0, 2, shape).astype(np.float32)
    layer = LayerUnderTest(pooling("MAX", options, tops=2), [x])
    y, mask = layer.forward()
    expected, expected_mask = plain_pooling(x, layer.message)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(mask, expected_mask)
    # Backward agrees with the mask, and takes nothing from the mask's gradient.
    dy = random_array(*y.shape, seed=4)
    (dx,) = layer.backward([dy, np.full_like(mask, np.nan)])
    planes = np.zeros((shape[0] * shape[1], shape[2] * shape[3]))
    rows = np.arange(len(planes))[:, None]
    np.add.at(
        planes, (rows, mask.reshape(len(planes), -1).astype(int)), dy.reshape(len(planes), -1)
    )
    np.testing.assert_allclose(dx, planes.reshape(shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("name", CASES)
def test_what_is_not_finite(name, value):
    options, shape = CASES[name]
    x = random_array(*shape)
    x[np.random.default_rng(1).random(shape) < 0.2] = value
    layer = LayerUnderTest(pooling("MAX", options, tops=2), [x])
    y, mask = layer.forward()
    expected, expected_mask = plain_pooling(x, layer.message)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(mask, expected_mask)


@pytest.mark.parametrize("name", ["k2s2", "k3s2", "k2s2 wide"])
def test_only_minus_infinity(name):
    options, shape = CASES[name]
    layer = LayerUnderTest(pooling("MAX", options), [np.full(shape, -np.inf)])
    (y,) = layer.forward()
    assert (y == -np.inf).all()
    (dx,) = layer.backward([np.ones_like(y)])
    assert dx.sum() == y.size


@pytest.mark.parametrize(
    ("options", "shape", "bits"),
    [
        ("kernel_size: 2 stride: 2", (2, 3, 8, 8), 2),
        ("kernel_size: 3 stride: 2", (2, 3, 9, 9), 4),
        ("kernel_size: 5 stride: 5", (2, 3, 20, 20), 5),
        ("kernel_size: 17 stride: 1", (1, 2, 20, 20), 9),
        ("kernel_size: 1 stride: 2", (2, 3, 8, 8), 0),
    ],
)
def test_saved_index_is_packed(options, shape, bits):
    layer = LayerUnderTest(pooling("MAX", options), [random_array(*shape)])
    before = _core.memory.live()["stored_activations"]
    (y,) = layer.forward()
    plane = y.shape[2] * y.shape[3]
    digits = [min(8, bits - shift) for shift in range(0, bits, 8)]
    expected = max(y.shape[0] * y.shape[1] * sum((plane * d + 7) // 8 for d in digits), 1)
    assert layer.core.saved_bytes() == expected
    assert _core.memory.live()["stored_activations"] - before == expected
    layer.core.drop_saved()
    assert layer.core.saved_bytes() == 0
    assert _core.memory.live()["stored_activations"] == before
    with pytest.raises(_core.Error, match="needs the index"):
        layer.backward([y])


def test_saves_nothing_when_not_asked():
    layer = LayerUnderTest(pooling("MAX", "kernel_size: 2"), [random_array(1, 1, 4, 4)])
    layer.context = _core.layers.ForwardContext(train=False, save_for_backward=False)
    layer.forward()
    assert layer.core.saved_bytes() == 0
    average = LayerUnderTest(pooling("AVE", "kernel_size: 2"), [random_array(1, 1, 4, 4)])
    average.forward()
    assert average.core.saved_bytes() == 0


@pytest.mark.parametrize("method", ["MAX", "AVE"])
def test_needs_nothing(method):
    layer = LayerUnderTest(pooling(method, "kernel_size: 2"), [random_array(1, 1, 4, 4)])
    needs = layer.core.needs(layer.propagation)
    nothing = _core.layers.Quality.NOTHING
    assert [need.quality for need in needs.bottoms + needs.tops] == [nothing, nothing]
    assert layer.core.traits().cheap


@pytest.mark.parametrize(
    ("text", "shape", "words"),
    [
        (pooling("AVE", "kernel_size: 2", tops=2), (1, 1, 4, 4), "second top"),
        (pooling("MAX", ""), (1, 1, 4, 4), "no kernel_size"),
        (pooling("MAX", "kernel_size: 2"), (1, 4, 4), "1x4x4, needs 4 axes"),
        (pooling("MAX", "kernel_size: 2 pad: 2"), (1, 1, 4, 4), "less than the kernel's 2"),
        (pooling("MAX", "kernel_size: 2 stride: 0"), (1, 1, 4, 4), "stride height is 0"),
        (pooling("MAX", "kernel_size: 7"), (1, 1, 4, 4), "of 7 does not fit in 4"),
        (
            pooling("MAX", "kernel_size: 5 stride: 2 round_mode: FLOOR"),
            (1, 1, 4, 4),
            "of 5 does not fit in 4",
        ),
        (pooling("MAX", "global_pooling: true pad: 1"), (1, 1, 4, 4), "neither pad nor stride"),
        (
            pooling("MAX", "global_pooling: true kernel_size: 2"),
            (1, 1, 4, 4),
            "both global_pooling",
        ),
        (pooling("MAX", "kernel_size: 2 kernel_h: 2"), (1, 1, 4, 4), "both kernel_size and"),
        (pooling("MAX", "kernel_size: 2"), (0, 1, 4, 4), "empty"),
    ],
)
def test_bad_configuration(text, shape, words):
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(text, [np.zeros(shape, np.float32)])
