"""LSTMUnit, LSTM and RNN: golden vectors, a loop written from the formulas, gradients, PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Array, LayerUnderTest, Quality, check_golden, check_gradients, random_array

T, N, INPUTS, D, J = 5, 3, 4, 6, 2  # steps, sequences, values in, out, and of a static input
#: Where sequences begin: all at the first step, one again at the third.
CONT = np.ones((T, N), np.float32)
CONT[0] = 0
CONT[2, 1] = 0


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def recurrent(kind: str, options: str = "", tops: int = 1) -> str:
    names = " ".join(f'top: "y{k}"' for k in range(tops))
    return f'type: "{kind}" {names} recurrent_param {{ num_output: {D} {options} }}'


def by_loop(layer: LayerUnderTest, static: Array | None, states: list[Array]) -> list[Array]:
    """y, and the last states, from the formulas, one sequence and step at a time, in float64."""
    x, cont = (array.astype(np.float64) for array in layer.bottoms[:2])
    w = [parameter.astype(np.float64) for parameter in layer.parameters]
    wx, b = w[:2]
    wh = w[3] if static is not None else w[2]
    y = np.zeros((*x.shape[:2], D))
    for n in range(x.shape[1]):
        now = [state[n].astype(np.float64) for state in states]
        for t in range(len(x)):
            z = wx @ x[t, n].ravel() + b + wh @ (cont[t, n] * now[0])
            if static is not None:
                z = z + w[2] @ static[n]
            if layer.message.type == "LSTM":
                i, f, o, g = np.split(z, 4)
                c = cont[t, n] * sigmoid(f) * now[1] + sigmoid(i) * np.tanh(g)
                now = [sigmoid(o) * np.tanh(c), c]
                y[t, n] = now[0]
            else:
                now = [np.tanh(z)]
                y[t, n] = np.tanh(w[-2] @ now[0] + w[-1])
        for state, value in zip(states, now):
            state[n] = value
    return [y, *states]


@pytest.mark.parametrize("name", ["lstm", "rnn"])
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize("with_static", [False, True])
@pytest.mark.parametrize("exposed", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_values_and_gradients(kind: str, exposed: bool, with_static: bool) -> None:
    count = 2 if kind == "LSTM" else 1
    bottoms = [random_array(T, N, 2, INPUTS // 2), CONT]
    static = random_array(N, J, seed=4) if with_static else None
    if static is not None:
        bottoms.append(static)
    states = [np.zeros((N, D), np.float32) for _ in range(count)]
    if exposed:
        states = [random_array(N, D, seed=7 + k) for k in range(count)]
        bottoms += [state[np.newaxis] for state in states]
        bottoms[1] = np.where(CONT == 0, 0, 1)
        bottoms[1][0, 0] = 1  # one sequence goes on from the states that are given
    text = recurrent(kind, f"expose_hidden: {str(exposed).lower()}", 1 + count * exposed)
    propagate = [index != 1 for index in range(len(bottoms))]
    layer = LayerUnderTest(text, bottoms, propagate=propagate)
    for parameter in layer.parameters:
        np.multiply(parameter, 0.5, out=parameter)
    expected = by_loop(layer, static, [state.copy() for state in states])
    tops = layer.forward()
    for got, wanted in zip(tops, expected):
        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)
    check_gradients(layer, samples=25)


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_the_next_pass_goes_on_where_cont_says(kind: str) -> None:
    x = random_array(2 * T, N, INPUTS)
    whole = LayerUnderTest(recurrent(kind), [x, np.ones((2 * T, N))])
    (expected,) = whole.forward()
    halves = LayerUnderTest(recurrent(kind), [x[:T], np.ones((T, N))], whole.parameters)
    np.testing.assert_allclose(halves.forward()[0], expected[:T], rtol=1e-5, atol=1e-6)
    halves.bottoms[0] = x[T:]
    np.testing.assert_allclose(halves.forward()[0], expected[T:], rtol=1e-5, atol=1e-6)
    halves.bottoms[1] = np.zeros((T, N), np.float32)
    anew = LayerUnderTest(recurrent(kind), [x[T:], np.zeros((T, N))], whole.parameters)
    np.testing.assert_array_equal(halves.forward()[0], anew.forward()[0])


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_another_batch_starts_from_zero(kind: str) -> None:
    layer = LayerUnderTest(recurrent(kind), [random_array(T, N, INPUTS), np.ones((T, N))])
    layer.forward()
    layer.bottoms = [random_array(T, 2, INPUTS), np.ones((T, 2), np.float32)]
    layer.reshape()
    fresh = LayerUnderTest(recurrent(kind), layer.bottoms, layer.parameters)
    np.testing.assert_array_equal(layer.forward()[0], fresh.forward()[0])


def test_lstm_against_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, dy = random_array(T, N, INPUTS), random_array(T, N, D, seed=1)
    cont = np.ones((T, N))
    cont[0] = 0
    ours = LayerUnderTest(recurrent("LSTM"), [x, cont], propagate=[True, False])
    wx, b, wh = ours.parameters
    order = [0, 1, 3, 2]  # PyTorch's gates are i, f, g, o
    theirs = torch.nn.LSTM(INPUTS, D)

    def reordered(array: Array) -> Array:
        return np.concatenate([np.split(array, 4)[k] for k in order])

    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.tensor(reordered(wx)))
        theirs.weight_hh_l0.copy_(torch.tensor(reordered(wh)))
        theirs.bias_ih_l0.copy_(torch.tensor(reordered(b)))
        theirs.bias_hh_l0.zero_()
    inputs = torch.tensor(x, requires_grad=True)
    out, _ = theirs(inputs)
    out.backward(torch.tensor(dy))
    np.testing.assert_allclose(ours.forward()[0], out.detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.backward([dy])[0], inputs.grad, rtol=1e-4, atol=1e-5)
    for got, wanted in zip(
        ours.parameter_gradients, (theirs.weight_ih_l0, theirs.bias_ih_l0, theirs.weight_hh_l0)
    ):
        np.testing.assert_allclose(reordered(got), wanted.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_frozen_blobs_stay_untouched(kind: str) -> None:
    blobs = 3 if kind == "LSTM" else 5
    layer = LayerUnderTest(
        recurrent(kind),
        [random_array(T, N, INPUTS), CONT],
        learns=[False] * blobs,
        propagate=[True, False],
    )
    (y,) = layer.forward()
    layer.backward([y])
    assert not any(parameter.has_gradient for parameter in layer.core.parameters)
    needs = layer.core.needs(layer.propagation)
    assert [need.quality for need in needs.bottoms] == [Quality.NOTHING, Quality.EXACT]


@pytest.mark.parametrize(
    ("kind", "kept"), [("LSTM", T * N * 4 * D + 2 * N * D), ("RNN", (T + 1) * N * D)]
)
def test_what_is_kept(kind: str, kept: int) -> None:
    layer = LayerUnderTest(recurrent(kind), [random_array(T, N, INPUTS), CONT])
    layer.forward()
    assert layer.core.saved_bytes() == 4 * kept
    layer.core.drop_saved()
    assert layer.core.saved_bytes() == 0
    needs = layer.core.needs(layer.propagation)
    assert [need.quality for need in needs.bottoms] == [Quality.BOUNDED, Quality.EXACT]
    assert needs.tops[0].quality == Quality.BOUNDED


@pytest.mark.parametrize(
    ("kind", "options", "shapes", "words"),
    [
        ("LSTM", "", [(T, N, INPUTS)], "has 1 bottoms, needs 2 or more"),
        (
            "LSTM",
            "",
            [(T, N, INPUTS), (T, N), (N, J), (1, N, D)],
            "has 4 bottoms and 1 tops, needs 2",
        ),
        ("LSTM", "expose_hidden: true", [(T, N, INPUTS), (T, N)], "needs 4 bottoms .* and 3 tops"),
        (
            "RNN",
            "",
            [(T, N, INPUTS), (N, T)],
            "needs steps x sequences x ... and steps x sequences",
        ),
        ("RNN", "", [(T,), (T,)], "needs steps x sequences"),
        ("RNN", "", [(0, N, INPUTS), (0, N)], "no steps"),
        ("LSTM", "", [(T, N, INPUTS), (T, N), (N + 1, J)], "needs 3 sequences of 2 values"),
    ],
)
def test_bad_blobs(kind: str, options: str, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(recurrent(kind, options), [np.zeros(shape) for shape in shapes])


def test_bad_options_and_later_shapes() -> None:
    with pytest.raises(ValueError, match="num_output 0, needs 1 or more"):
        LayerUnderTest('type: "LSTM"', [random_array(T, N, INPUTS), CONT])
    layer = LayerUnderTest(recurrent("RNN"), [random_array(T, N, INPUTS), CONT])
    layer.bottoms[0] = random_array(T, N, INPUTS + 1)
    with pytest.raises(ValueError, match="has 5 values, but the weights are for 4"):
        layer.reshape()
    states = [np.zeros((1, N, D)), np.zeros((1, N, D - 1))]
    with pytest.raises(ValueError, match="bottom 3, a state, has shape"):
        LayerUnderTest(
            recurrent("LSTM", "expose_hidden: true", 3), [random_array(T, N, INPUTS), CONT, *states]
        )


# -- LSTMUnit --------------------------------------------------------------------------------------

UNIT = 'type: "LSTMUnit" top: "c" top: "h"'


def test_unit() -> None:
    c_prev, x = random_array(1, N, D), random_array(1, N, 4 * D, seed=1)
    cont = np.float32([[1, 0, 0.5]])
    layer = LayerUnderTest(UNIT, [c_prev, x, cont], propagate=[True, True, False])
    i, f, o, g = np.split(x.astype(np.float64), 4, axis=2)
    c = cont[..., np.newaxis] * sigmoid(f) * c_prev + sigmoid(i) * np.tanh(g)
    got_c, got_h = layer.forward()
    np.testing.assert_allclose(got_c, c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got_h, sigmoid(o) * np.tanh(c), rtol=1e-5, atol=1e-6)
    check_gradients(layer)
    assert layer.core.traits().differentiable_bottoms == 2


def test_unit_is_a_step_of_lstm() -> None:
    x, h, c = (
        random_array(1, N, INPUTS),
        random_array(1, N, D, seed=1),
        random_array(1, N, D, seed=2),
    )
    cont = np.ones((1, N), np.float32)
    lstm = LayerUnderTest(recurrent("LSTM", "expose_hidden: true", 3), [x, cont, h, c])
    y, last_h, last_c = lstm.forward()
    wx, b, wh = lstm.parameters
    unit = LayerUnderTest(UNIT, [c, x @ wx.T + b + h @ wh.T, cont])
    got_c, got_h = unit.forward()
    np.testing.assert_allclose(got_h, y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got_c, last_c, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(last_h, y)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(2, N, D), (2, N, 4 * D), (2, N)], r"c_prev has shape \(2, 3, 6\), needs 1 x N x D"),
        ([(1, N, D), (1, N, 3 * D), (1, N)], r"needs \(1, 3, 24\) and \(1, 3\)"),
        ([(1, N, D), (1, N, 4 * D)], "has 2 bottoms, needs 3"),
    ],
)
def test_bad_unit(shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(UNIT, [np.zeros(shape) for shape in shapes])
