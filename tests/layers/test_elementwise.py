"""The layers that are a function of each value: golden vectors, gradients, PyTorch, odd values."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    check_in_place,
    distinct_array,
    random_array,
    to_tensor,
    unwritten,
)

from caffe import _core

GOLDEN = (
    *("absval", "bnll", "clip", "elu", "exp", "log"),
    *("power", "prelu", "sigmoid", "swish", "tanh", "threshold"),
)

#: Type and options -> the function in float64, and the range of x that it is tried on.
FUNCTIONS = {
    'type: "AbsVal"': (np.abs, (-3, 3)),
    'type: "BNLL"': (lambda x: np.logaddexp(0, x), (-6, 6)),
    'type: "Clip" clip_param { min: -0.5 max: 1 }': (lambda x: np.clip(x, -0.5, 1), (-2, 2)),
    'type: "ELU"': (lambda x: np.where(x > 0, x, np.expm1(x)), (-3, 3)),
    'type: "ELU" elu_param { alpha: 0.3 }': (
        lambda x: np.where(x > 0, x, 0.3 * np.expm1(x)),
        (-3, 3),
    ),
    'type: "ELU" elu_param { alpha: -2 }': (
        lambda x: np.where(x > 0, x, -2 * np.expm1(x)),
        (-3, 3),
    ),
    'type: "ELU" elu_param { alpha: 0 }': (lambda x: np.where(x > 0, x, 0), (-3, 3)),
    'type: "Exp"': (np.exp, (-2, 2)),
    'type: "Exp" exp_param { base: 2 scale: 1.5 shift: -0.5 }': (
        lambda x: 2 ** (1.5 * x - 0.5),
        (-2, 2),
    ),
    'type: "Exp" exp_param { scale: -0.5 shift: 1 }': (lambda x: np.exp(1 - 0.5 * x), (-2, 2)),
    'type: "Log"': (np.log, (0.3, 4)),
    'type: "Log" log_param { base: 10 scale: -2 shift: 9 }': (
        lambda x: np.log10(9 - 2 * x),
        (-2, 4),
    ),
    'type: "Log" log_param { base: 0.5 }': (lambda x: -np.log2(x), (0.3, 4)),
    'type: "Power"': (lambda x: x, (-2, 2)),
    'type: "Power" power_param { power: 0 }': (np.ones_like, (-2, 2)),
    'type: "Power" power_param { power: 1 scale: -3 shift: 2 }': (lambda x: 2 - 3 * x, (-2, 2)),
    'type: "Power" power_param { power: 2 scale: 0.5 shift: 0.1 }': (
        lambda x: (0.5 * x + 0.1) ** 2,
        (-2, 2),
    ),
    'type: "Power" power_param { power: 3 }': (lambda x: x**3, (-2, 2)),
    'type: "Power" power_param { power: 0.5 shift: 3 }': (lambda x: (x + 3) ** 0.5, (-2, 2)),
    'type: "Power" power_param { power: -1 scale: 2 shift: 5 }': (
        lambda x: 1 / (2 * x + 5),
        (-2, 2),
    ),
    'type: "Power" power_param { power: 2 scale: 0 shift: 3 }': (lambda x: 9 + 0 * x, (-2, 2)),
    'type: "Sigmoid"': (lambda x: 1 / (1 + np.exp(-x)), (-6, 6)),
    'type: "Swish"': (lambda x: x / (1 + np.exp(-x)), (-6, 6)),
    'type: "Swish" swish_param { beta: 2.5 }': (lambda x: x / (1 + np.exp(-2.5 * x)), (-4, 4)),
    'type: "TanH"': (np.tanh, (-4, 4)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 90, 70), ()])
@pytest.mark.parametrize("text", FUNCTIONS)
def test_values(text: str, shape: tuple[int, ...]) -> None:
    function, (low, high) = FUNCTIONS[text]
    x = np.random.default_rng(1).uniform(low, high, shape).astype(np.float32)
    layer = LayerUnderTest(text, [x])
    (y,) = layer.forward()
    np.testing.assert_allclose(y, function(x.astype(np.float64)), rtol=3e-6, atol=3e-7)
    check_in_place(layer)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_gradients(text: str) -> None:
    _, (low, high) = FUNCTIONS[text]
    x = np.linspace(low, high, 61, dtype=np.float32) + np.float32(0.007)
    check_gradients(LayerUnderTest(text, [x]), step=5e-3)


@pytest.mark.parametrize("text", [text for text in FUNCTIONS if "power: 0 " not in text])
def test_nan_is_not_hidden(text: str) -> None:
    if "scale: 0 " in text:
        return  # a constant
    (y,) = LayerUnderTest(text, [np.float32([np.nan])]).forward()
    assert np.isnan(y).all()


@pytest.mark.parametrize(
    ("text", "x", "y", "dx"),
    [
        ('type: "AbsVal"', [-2, 0, 3], [2, 0, 3], [-1, 0, 1]),
        # A value at a limit passes its gradient on, as in BVLC Caffe.
        (
            'type: "Clip" clip_param { min: -1 max: 2 }',
            [-1.5, -1, 0, 2, 2.5],
            [-1, -1, 0, 2, 2],
            [0, 1, 1, 1, 0],
        ),
        ('type: "Clip" clip_param { min: 1 max: 1 }', [0, 1, 2], [1, 1, 1], [0, 1, 0]),
        ('type: "ELU" elu_param { alpha: 0.5 }', [0], [0], [0.5]),
        ('type: "Sigmoid"', [-1e30, 1e30, 0], [0, 1, 0.5], [0, 0, 0.25]),
        ('type: "TanH"', [-1e30, 1e30, 1e-20], [-1, 1, 1e-20], [0, 0, 1]),
        ('type: "BNLL"', [-1e30, 1e30], [0, 1e30], [0, 1]),
        ('type: "Swish"', [-1e3, 1e3, 0], [0, 1e3, 0], [0, 1, 0.5]),
        ('type: "Power" power_param { power: 0 }', [0, -1, np.nan], [1, 1, 1], [0, 0, 0]),
        ('type: "Exp"', [200], [np.inf], [np.inf]),
    ],
)
def test_at_the_edges(text: str, x: list[float], y: list[float], dx: list[float]) -> None:
    layer = LayerUnderTest(text, [np.float32(x)])
    np.testing.assert_allclose(layer.forward()[0], np.float32(y), rtol=1e-6, atol=1e-30)
    (got,) = layer.backward([np.ones(len(x), np.float32)])
    np.testing.assert_allclose(got, np.float32(dx), rtol=1e-6, atol=1e-30)


def test_threshold() -> None:
    x = np.float32([-1, 0.2, 0.2001, 3, np.nan])
    layer = LayerUnderTest('type: "Threshold" threshold_param { threshold: 0.2 }', [x])
    np.testing.assert_array_equal(layer.forward()[0], [0, 0, 1, 1, 0])
    assert layer.core.traits().differentiable_bottoms == 0


NOTHING, BOUNDED, EXACT = Quality.NOTHING, Quality.BOUNDED, Quality.EXACT
BOUNDED_SIGN = Quality.BOUNDED_SIGN


@pytest.mark.parametrize(
    ("text", "bottom", "top"),
    [
        ('type: "AbsVal"', BOUNDED_SIGN, NOTHING),
        ('type: "BNLL"', NOTHING, BOUNDED),
        ('type: "Clip" clip_param { min: 0 max: 1 }', NOTHING, NOTHING),
        ('type: "ELU"', NOTHING, BOUNDED),
        ('type: "ELU" elu_param { alpha: 0.5 }', NOTHING, BOUNDED_SIGN),
        ('type: "ELU" elu_param { alpha: -1 }', BOUNDED_SIGN, NOTHING),
        ('type: "Exp"', NOTHING, BOUNDED),
        ('type: "Log"', NOTHING, BOUNDED),
        ('type: "Power" power_param { scale: 3 }', NOTHING, NOTHING),
        ('type: "Power" power_param { power: 2 }', BOUNDED, NOTHING),
        ('type: "Power" power_param { power: 2 scale: 0 }', NOTHING, NOTHING),
        ('type: "Power" power_param { power: 1.5 }', EXACT, NOTHING),
        ('type: "Sigmoid"', NOTHING, BOUNDED),
        ('type: "Swish"', BOUNDED, NOTHING),
        ('type: "TanH"', NOTHING, BOUNDED),
        ('type: "Threshold"', NOTHING, NOTHING),
    ],
)
def test_needs(text: str, bottom: Quality, top: Quality) -> None:
    layer = LayerUnderTest(text, [random_array(3, 4)])
    needs = layer.core.needs(layer.propagation)
    assert [needs.bottoms[0].quality, needs.tops[0].quality] == [bottom, top]
    frozen = layer.core.needs(_core.layers.Propagation([False], []))
    assert [frozen.bottoms[0].quality, frozen.tops[0].quality] == [NOTHING, NOTHING]
    assert layer.core.traits().forward_in_place == (bottom == NOTHING)


def test_error_factor_bounds_every_slope() -> None:
    x = np.linspace(-8, 8, 4001, dtype=np.float32)
    for text in FUNCTIONS:
        layer = LayerUnderTest(text, [x])
        steepest = layer.core.traits().error_factor
        if not np.isfinite(steepest):
            assert not layer.core.traits().cheap, text
            continue
        (y,) = layer.forward()
        slopes = np.abs(np.diff(y.astype(np.float64)) / np.diff(x.astype(np.float64)))
        assert slopes.max() <= steepest * (1 + 2e-3), text


def test_clip_keeps_one_bit_a_value() -> None:
    layer = LayerUnderTest('type: "Clip" clip_param { min: 0 max: 1 }', [random_array(1000)])
    layer.forward()
    assert layer.core.saved_bytes() == 1000 // 8 + 3  # whole words of 64
    layer.core.drop_saved()
    with pytest.raises(_core.Error, match="without a forward pass that saved"):
        layer.backward([random_array(1000)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('type: "Clip" clip_param { min: 1 max: 0 }', "min is 1, above max, 0"),
        ('type: "Clip"', "clip_param needs min and max"),
        ('type: "Exp" exp_param { base: 0 }', "base is 0, needs to be positive, or -1 for e"),
        ('type: "Exp" exp_param { base: -2 }', "base is -2"),
        ('type: "Log" log_param { base: 1 }', "base is 1, needs to be positive and not 1"),
        ('type: "Log" log_param { base: -3 }', "base is -3"),
    ],
)
def test_bad_options(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(text, [random_array(3)])


@pytest.mark.parametrize("text", [*FUNCTIONS, 'type: "Threshold"', 'type: "PReLU"'])
def test_two_bottoms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has 2 bottoms, needs 1"):
        LayerUnderTest(text, [random_array(2, 2), random_array(2, 2)])


# -- PReLU -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["", "channel_shared: true"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3), (2, 3, 60, 50)])
def test_prelu(shape: tuple[int, ...], options: str) -> None:
    x = distinct_array(*shape) + np.float32(0.03)
    layer = LayerUnderTest(f'type: "PReLU" prelu_param {{ {options} }}', [x])
    (slopes,) = layer.parameters
    assert slopes.shape == (() if options else (shape[1],))
    a = slopes.reshape(-1, *[1] * (len(shape) - 2))
    np.testing.assert_array_equal(layer.forward()[0], np.where(x > 0, x, a * x))
    check_gradients(layer)
    check_in_place(layer)


def test_prelu_needs_and_packed_mask() -> None:
    x, dy = random_array(5, 7, 13), random_array(5, 7, 13, seed=1)
    learned = LayerUnderTest('type: "PReLU"', [x])
    need = learned.core.needs(learned.propagation).bottoms[0]
    assert need.quality == BOUNDED_SIGN
    assert need.rule == _core.layers.BoundRule.GRADIENT
    assert learned.core.gradient_terms() == 5 * 13
    frozen = LayerUnderTest('type: "PReLU"', [x], learns=[False])
    assert frozen.core.needs(frozen.propagation).bottoms[0].quality == Quality.SIGN
    frozen.forward()
    (expected,) = frozen.backward([dy])
    dx = unwritten(x.shape)
    mask = _core.store.pack_sign(to_tensor(x))
    frozen.core.backward([mask], [_core.Tensor()], [to_tensor(dy)], [dx], frozen.propagation)
    np.testing.assert_array_equal(dx.numpy(), expected)


def test_prelu_of_one_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 2 axes or more"):
        LayerUnderTest('type: "PReLU"', [random_array(3)])


# -- a second opinion ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ('type: "ELU" elu_param { alpha: 0.7 }', "ELU", {"alpha": 0.7}),
        ('type: "BNLL"', "Softplus", {}),
        ('type: "Sigmoid"', "Sigmoid", {}),
        ('type: "Swish"', "SiLU", {}),
        ('type: "TanH"', "Tanh", {}),
        (
            'type: "Clip" clip_param { min: -0.5 max: 0.5 }',
            "Hardtanh",
            {"min_val": -0.5, "max_val": 0.5},
        ),
    ],
)
def test_against_pytorch(text: str, name: str, options: dict[str, float]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, dy = 3 * random_array(4, 100), random_array(4, 100, seed=1)
    ours = LayerUnderTest(text, [x])
    theirs = torch.tensor(x, requires_grad=True)
    out = getattr(torch.nn, name)(**options)(theirs)
    np.testing.assert_allclose(ours.forward()[0], out.detach(), rtol=1e-5, atol=1e-6)
    out.backward(torch.tensor(dy))
    np.testing.assert_allclose(ours.backward([dy])[0], theirs.grad, rtol=1e-5, atol=1e-6)


def test_prelu_against_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, dy, a = random_array(4, 3, 5), random_array(4, 3, 5, seed=1), np.float32([0.1, -0.3, 2])
    ours = LayerUnderTest('type: "PReLU"', [x], [a])
    theirs, slopes = torch.tensor(x, requires_grad=True), torch.tensor(a, requires_grad=True)
    out = torch.nn.functional.prelu(theirs, slopes)
    np.testing.assert_allclose(ours.forward()[0], out.detach(), rtol=1e-6)
    out.backward(torch.tensor(dy))
    np.testing.assert_allclose(ours.backward([dy])[0], theirs.grad, rtol=1e-6)
    np.testing.assert_allclose(ours.parameter_gradients[0], slopes.grad, rtol=1e-5)
