"""MVN: golden vectors, values and gradients of every option, rows without spread, PyTorch."""

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

SHAPES = [(2, 3, 4, 5), (3, 4, 6), (3, 8), (2, 2, 70, 60)]
OPTIONS = ["", "across_channels: true", "normalize_variance: false", "eps: 0.1"]


def mvn(options: str) -> str:
    return f'type: "MVN" mvn_param {{ {options} }}'


@pytest.mark.parametrize("name", ["mvn", "mvn_mean_only"])
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients(shape: tuple[int, ...], options: str) -> None:
    if len(shape) == 2 and "across" not in options:
        options += " across_channels: true"  # a channel of one value has nothing to normalise
    x = 3 * random_array(*shape) + 10
    layer = LayerUnderTest(mvn(options), [x])
    p = layer.message.mvn_param
    axes = tuple(range(1 if p.across_channels else 2, len(shape)))
    centred = x.astype(np.float64) - x.mean(axes, dtype=np.float64, keepdims=True)
    if p.normalize_variance:
        centred /= np.sqrt(np.mean(centred**2, axes, keepdims=True)) + p.eps
    np.testing.assert_allclose(layer.forward()[0], centred, rtol=1e-4, atol=1e-5)
    check_gradients(layer, step=0.1, samples=30)
    check_in_place(layer)


def test_rows_without_spread() -> None:
    x = np.full((2, 3, 4), 7, np.float32)
    for options in OPTIONS:
        layer = LayerUnderTest(mvn(options), [x])
        np.testing.assert_array_equal(layer.forward()[0], np.zeros_like(x))
        assert np.isfinite(layer.backward([random_array(2, 3, 4)])[0]).all()


def test_one_axis_and_one_value() -> None:
    np.testing.assert_array_equal(LayerUnderTest(mvn(""), [random_array(4)]).forward()[0], 0)
    with pytest.raises(ValueError, match="bottom is a scalar"):
        LayerUnderTest(mvn(""), [np.float32(1)])


def test_needs_and_saved_bytes() -> None:
    layer = LayerUnderTest(mvn(""), [random_array(2, 3, 4)])
    needs = layer.core.needs(layer.propagation)
    assert needs.tops[0].quality == Quality.BOUNDED
    assert needs.tops[0].rule == _core.layers.BoundRule.NORMALISED
    assert needs.bottoms[0].quality == Quality.NOTHING
    layer.forward()
    assert layer.core.saved_bytes() == 2 * 3 * 4
    layer.core.drop_saved()
    with pytest.raises(_core.Error, match="without a forward pass that saved"):
        layer.backward([random_array(2, 3, 4)])
    mean_only = LayerUnderTest(mvn("normalize_variance: false"), [random_array(2, 3, 4)])
    needs = mean_only.core.needs(mean_only.propagation)
    assert needs.tops[0].quality == Quality.NOTHING


def test_eps_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="eps is 0, needs to be positive"):
        LayerUnderTest(mvn("eps: 0"), [random_array(2, 3)])


@pytest.mark.parametrize("across", [False, True])
def test_against_pytorch(across: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, dy = random_array(3, 4, 5, 6), random_array(3, 4, 5, 6, seed=1)
    layer = LayerUnderTest(mvn(f"across_channels: {str(across).lower()}"), [x])
    theirs = torch.tensor(x, requires_grad=True)
    out = torch.nn.functional.group_norm(theirs, 1 if across else 4, eps=0)
    np.testing.assert_allclose(layer.forward()[0], out.detach(), rtol=1e-4, atol=1e-5)
    out.backward(torch.tensor(dy))
    np.testing.assert_allclose(layer.backward([dy])[0], theirs.grad, rtol=1e-4, atol=1e-5)
