"""Softmax and SoftmaxWithLoss: golden vectors, gradients, hostile labels."""

from __future__ import annotations

import numpy as np
import pytest
from harness import (
    Array,
    LayerUnderTest,
    check_golden,
    check_gradients,
    check_in_place,
    golden_names,
    random_array,
)

from caffe import _core

LOSS = 'type: "SoftmaxWithLoss" top: "loss"'
MODES = ["FULL", "VALID", "BATCH_SIZE", "NONE"]


def _softmax(x: Array, axis: int = 1) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _labels(*shape: int, classes: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).integers(0, classes, shape).astype(np.float32)


def _loss(options: str, x: Array, labels: Array) -> LayerUnderTest:
    return LayerUnderTest(f"{LOSS} {options}", [x, labels], propagate=[True, False])


@pytest.mark.parametrize("name", golden_names("softmax"))
def test_golden(name: str) -> None:
    check_golden(name)


SHAPES = [((5, 7), 1), ((3, 4, 5, 2), 1), ((3, 4, 70), -2), ((3, 4, 5), 2), ((6, 3), 0), ((9,), 0)]


@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((50, 1000), 1), ((2, 21, 40, 50), 1)])
def test_against_numpy(shape: tuple[int, ...], axis: int) -> None:
    x = 10 * random_array(*shape)
    layer = LayerUnderTest(f'type: "Softmax" softmax_param {{ axis: {axis} }}', [x])
    (y,) = layer.forward()
    np.testing.assert_allclose(y, _softmax(x, axis), rtol=5e-6, atol=1e-30)
    check_in_place(layer)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_gradients(shape: tuple[int, ...], axis: int) -> None:
    text = f'type: "Softmax" softmax_param {{ axis: {axis} }}'
    check_gradients(LayerUnderTest(text, [random_array(*shape)]))


@pytest.mark.parametrize("inner", [(), (3,)])
def test_extreme_scores(inner: tuple[int, ...]) -> None:
    x = np.array([[1e30, 0, -1e30], [-1e30, -1e30, -1e30], [1000, 999, -1000]], np.float32)
    x = np.broadcast_to(x.reshape(3, 3, *(1,) * len(inner)), (3, 3, *inner))
    (y,) = LayerUnderTest('type: "Softmax"', [x]).forward()
    np.testing.assert_allclose(y, _softmax(x), rtol=1e-6)
    assert y.flat[-1] == 0


def test_nan_is_not_hidden() -> None:
    x = random_array(2, 4)
    x[1, 2] = np.nan
    (y,) = LayerUnderTest('type: "Softmax"', [x]).forward()
    assert np.isfinite(y[0]).all()
    assert np.isnan(y[1]).all()
    assert np.isnan(_loss("", x, np.zeros(2)).forward()[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(6, 5), (3, 5, 4, 2)])
def test_loss_and_gradients(mode: str, shape: tuple[int, ...]) -> None:
    x, labels = random_array(*shape), _labels(shape[0], *shape[2:], classes=shape[1])
    options = f"loss_param {{ ignore_label: 2 normalization: {mode} }}"
    layer = _loss(options, x, labels)
    valid = labels != 2
    p = np.take_along_axis(_softmax(x), np.expand_dims(labels.astype(int), 1), 1)[:, 0]
    counts = {
        "FULL": labels.size,
        "VALID": valid.sum(),
        "BATCH_SIZE": shape[0],
        "NONE": 1,
    }
    expected = -np.log(p[valid]).sum() / counts[mode]
    np.testing.assert_allclose(layer.forward()[0], expected, rtol=1e-5)
    check_gradients(layer)
    layer.forward()
    (dx, _) = layer.backward([np.ones((), np.float32)])
    assert (np.moveaxis(dx, 1, -1)[~valid] == 0).all()


def test_loss_on_another_axis() -> None:
    x, labels = random_array(2, 3, 5), _labels(2, 3, classes=5)
    check_gradients(_loss("softmax_param { axis: -1 }", x, labels))


@pytest.mark.parametrize(("normalize", "divisor"), [("true", 4), ("false", 2)])
def test_legacy_normalize(normalize: str, divisor: int) -> None:
    x, labels = np.zeros((2, 3, 4), np.float32), np.array([[0, 1, 1, 1], [0, 0, 2, 1]], np.float32)
    options = f"loss_param {{ ignore_label: 1 normalize: {normalize} }}"
    (loss,) = _loss(options, x, labels).forward()
    np.testing.assert_allclose(loss, 4 * np.log(3) / divisor, rtol=1e-6)


def test_second_top_is_the_probabilities() -> None:
    x = random_array(4, 5)
    layer = LayerUnderTest(f'{LOSS} top: "p"', [x, np.zeros(4)], propagate=[True, False])
    loss, p = layer.forward()
    np.testing.assert_allclose(p, _softmax(x), rtol=1e-5)
    np.testing.assert_allclose(loss, -np.log(p[:, 0]).mean(), rtol=1e-5)
    check_gradients(layer, tops=[0])


def test_loss_weight_scales_the_gradient() -> None:
    layer = _loss("", random_array(4, 5), _labels(4, classes=5))
    layer.forward()
    one, _ = layer.backward([np.float32(1).reshape(())])
    three, _ = layer.backward([np.float32(3).reshape(())])
    np.testing.assert_allclose(three, 3 * one, rtol=1e-5)


def test_certain_but_wrong_is_finite() -> None:
    (loss,) = _loss("", np.float32([[1000, -1000]]), np.ones(1)).forward()
    np.testing.assert_allclose(loss, -np.log(np.finfo(np.float32).tiny), rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_all_ignored(mode: str) -> None:
    options = f"loss_param {{ ignore_label: 255 normalization: {mode} }}"
    layer = _loss(options, random_array(4, 5), np.full(4, 255))
    (loss,) = layer.forward()
    dx, _ = layer.backward([np.ones((), np.float32)])
    assert loss == 0
    assert (dx == 0).all()


def test_a_negative_label_may_be_the_ignored_one() -> None:
    labels = np.array([-1, 2, -1, 0], np.float32)
    (loss,) = _loss("loss_param { ignore_label: -1 }", np.zeros((4, 3)), labels).forward()
    np.testing.assert_allclose(loss, np.log(3), rtol=1e-6)


@pytest.mark.parametrize("value", [5, -1, 1e20, -1e20, np.nan, np.inf, -np.inf, 255])
def test_label_out_of_range(value: float) -> None:
    labels = np.array([0, 4, value, 1], np.float32)
    layer = _loss("loss_param { ignore_label: 254 }", random_array(4, 5), labels)
    with pytest.raises(_core.Error, match=r"label of sample 2 is \S+, needs to be from 0 to 4"):
        layer.forward()


def test_label_out_of_range_in_an_image() -> None:
    labels = np.zeros((2, 6), np.float32)
    labels[1, 4] = 7
    with pytest.raises(_core.Error, match="label of sample 1, position 4 is 7"):
        _loss("", random_array(2, 3, 6), labels).forward()


def test_probabilities_are_kept_until_dropped() -> None:
    layer = _loss("", random_array(4, 5), np.zeros(4))
    layer.forward()
    assert layer.core.saved_bytes() == 4 * 5 * 4
    layer.core.drop_saved()
    assert layer.core.saved_bytes() == 0
    with pytest.raises(_core.Error, match="without a forward pass that saved"):
        layer.backward([np.ones((), np.float32)])
    layer.context = _core.layers.ForwardContext(train=False, save_for_backward=False)
    layer.forward()
    assert layer.core.saved_bytes() == 0


@pytest.mark.parametrize(
    ("text", "shapes", "words"),
    [
        (LOSS, [(4, 3), (3,)], "bottom 1 holds 3 labels, but bottom 0, 4x3, needs 4"),
        (LOSS, [(4, 3)], "has 1 bottoms, needs 2"),
        ('type: "SoftmaxWithLoss"', [(4, 3), (4,)], "has 0 tops, needs 1 to 2"),
        ('type: "Softmax"', [(4,)], "axis 1 is out of range for 1 axes"),
        ('type: "Softmax"', [(4, 0)], "no classes"),
    ],
)
def test_bad_shapes(text: str, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(text, [np.zeros(shape, np.float32) for shape in shapes], default_top=False)
