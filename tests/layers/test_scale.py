"""Scale: golden vectors, every axis option, gradients, needs."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    GOLDEN,
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    check_in_place,
    golden_names,
    random_array,
)

from caffe import _core

Propagation = _core.layers.Propagation
BoundRule = _core.layers.BoundRule
BatchAxis = _core.layers.BatchAxis

ONE_BOTTOM = [
    ("", (4, 3, 5, 2), (3,)),
    ("bias_term: true", (4, 3, 5, 2), (3,)),
    ("axis: 1 num_axes: 2 bias_term: true", (4, 3, 5, 2), (3, 5)),
    ("axis: 1 num_axes: -1 bias_term: true", (4, 3, 5, 2), (3, 5, 2)),
    ("axis: 0 num_axes: -1 bias_term: true", (4, 3, 5), (4, 3, 5)),
    ("axis: -1", (4, 3, 5), (5,)),
    ("num_axes: 0 bias_term: true", (4, 3, 5), ()),
    ("bias_term: true", (70, 130), (130,)),
    ("bias_term: true", (3, 2, 100, 90), (2,)),
    ("num_axes: 0", (), ()),
]


@pytest.mark.parametrize("name", golden_names("scale"))
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize(("options", "shape", "factors"), ONE_BOTTOM)
def test_one_bottom(options: str, shape: tuple[int, ...], factors: tuple[int, ...]) -> None:
    x = random_array(*shape) if shape else np.float32(1.5)
    layer = LayerUnderTest(f'type: "Scale" scale_param {{ {options} }}', [np.asarray(x)])
    assert [p.shape for p in layer.parameters] == [factors] * len(layer.parameters)
    (y,) = layer.forward()
    axis = next(a for a in range(len(shape) + 1) if shape[a : a + len(factors)] == factors)
    view = factors + (1,) * (len(shape) - axis - len(factors))
    expected = x * layer.parameters[0].reshape(view)
    if "bias_term" in options:
        expected = expected + layer.parameters[1].reshape(view)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
    check_gradients(layer)
    check_in_place(layer)


@pytest.mark.parametrize(
    ("axis", "shape", "factors"),
    [(0, (4, 3, 5), (4, 3)), (1, (4, 3, 5), (3,)), (1, (4, 3, 5), (3, 5)), (0, (4, 3), (4, 3))],
)
@pytest.mark.parametrize("bias", ["false", "true"])
def test_two_bottoms(
    axis: int, shape: tuple[int, ...], factors: tuple[int, ...], bias: str
) -> None:
    layer = LayerUnderTest(
        f'type: "Scale" scale_param {{ axis: {axis} bias_term: {bias} }}',
        [random_array(*shape), random_array(*factors, seed=1)],
    )
    assert len(layer.parameters) == (bias == "true")
    check_gradients(layer)


def test_scalar_second_bottom() -> None:
    layer = LayerUnderTest('type: "Scale"', [random_array(4, 3), np.float32(2).reshape(())])
    (y,) = layer.forward()
    np.testing.assert_array_equal(y, 2 * layer.bottoms[0])
    check_gradients(layer)


def test_gradients_add_up_over_passes() -> None:
    layer = LayerUnderTest('type: "Scale" scale_param { bias_term: true }', [random_array(4, 3)])
    dy = random_array(4, 3, seed=3)
    layer.forward()
    layer.backward([dy])
    once = [g.copy() for g in layer.parameter_gradients]
    layer.backward([dy])
    for one, two in zip(once, layer.parameter_gradients):
        np.testing.assert_allclose(two, 2 * one, rtol=1e-6)


def test_needs_follow_what_is_asked() -> None:
    own = LayerUnderTest('type: "Scale"', [random_array(4, 3)]).core
    assert own.needs(Propagation([True], [False])).bottoms[0].quality == Quality.NOTHING
    learning = own.needs(Propagation([True], [True])).bottoms[0]
    assert (learning.quality, learning.rule) == (Quality.BOUNDED, BoundRule.NORMALISED)
    two = LayerUnderTest('type: "Scale"', [random_array(4, 3), random_array(3)]).core
    needs = two.needs(Propagation([True, False], []))
    assert [need.quality for need in needs.bottoms] == [Quality.NOTHING, Quality.BOUNDED]
    needs = two.needs(Propagation([False, True], []))
    assert [need.quality for need in needs.bottoms] == [Quality.BOUNDED, Quality.NOTHING]
    assert needs.bottoms[0].rule == BoundRule.PROPAGATED


def test_traits() -> None:
    factors = np.array([0.5, -3, 2], np.float32)
    layer = LayerUnderTest('type: "Scale"', [random_array(4, 3)], [factors]).core
    assert layer.traits().error_factor == 3
    assert layer.traits().batch_axis == BatchAxis.INDEPENDENT
    text = 'type: "Scale" scale_param { axis: 0 }'
    assert LayerUnderTest(text, [random_array(4, 3)]).core.traits().batch_axis == BatchAxis.COUPLED
    sliced = LayerUnderTest(text, [random_array(4, 3), random_array(4)]).core
    assert sliced.traits().batch_axis == BatchAxis.INDEPENDENT


def test_squeeze_and_excite_golden() -> None:
    """The Scale of a small net; the rest of that net is worked out here."""
    with np.load(GOLDEN / "squeeze_excite.npz") as file:
        f = {key: file[key] for key in file.files}
    hidden = f["in_x"].mean((2, 3)) @ f["param_f1_0"][:, :, 0, 0].T + f["param_f1_1"]
    hidden = hidden / (1 + np.exp(-hidden))
    gate = 1 / (1 + np.exp(-(hidden @ f["param_f2_0"][:, :, 0, 0].T + f["param_f2_1"])))
    layer = LayerUnderTest('type: "Scale" scale_param { axis: 0 }', [f["in_x"], gate])
    (y,) = layer.forward()
    np.testing.assert_allclose(y, f["out_y"], rtol=1e-4, atol=1e-5)
    _, dgate = layer.backward([f["diff_out_y"]])
    got = (dgate * gate * (1 - gate)).sum(0)
    np.testing.assert_allclose(got, f["diff_param_f2_1"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ("axis: 2", [[4, 3]], "axis 2 is out of range for 2 axes"),
        ("num_axes: 3", [[4, 3]], "axis 1 and num_axes 3 reach past the 2 axes"),
        ("num_axes: -2", [[4, 3]], "num_axes is -2"),
        ("", [[4, 3], [4]], "bottom 1 is 4, which does not match bottom 0, 4x3, from axis 1"),
        ("", [[4, 3], [3, 1]], "does not match"),
        ("", [[4, 3], [3], [3]], "has 3 bottoms, needs 1 to 2"),
    ],
)
def test_bad_shapes(options: str, shapes: list[list[int]], words: str) -> None:
    bottoms = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(f'type: "Scale" scale_param {{ {options} }}', bottoms)


def test_another_channel_count_is_refused() -> None:
    layer = LayerUnderTest('type: "Scale"', [random_array(4, 3)])
    with pytest.raises(ValueError, match="bottom 4x5 needs parameters of 5, but they are 3"):
        layer.core.reshape([[4, 5]])
