"""Concat, Eltwise, Split, Flatten and Reshape."""

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
    golden_names,
    random_array,
)

from caffe import _core

BatchAxis = _core.layers.BatchAxis


@pytest.mark.parametrize("name", golden_names("concat", "eltwise_", "split", "flatten", "reshape"))
def test_golden(name: str) -> None:
    check_golden(name)


@pytest.mark.parametrize(
    ("options", "axis"),
    [("axis: 0", 0), ("axis: 1", 1), ("axis: -1", 2), ("concat_dim: 2", 2), ("", 1)],
)
def test_concat(options: str, axis: int) -> None:
    shape = [3, 4, 5]
    bottoms = []
    for k, length in enumerate((2, 7, 1)):
        shape[axis] = length
        bottoms.append(random_array(*shape, seed=k))
    layer = LayerUnderTest(f'type: "Concat" concat_param {{ {options} }}', bottoms)
    (y,) = layer.forward()
    np.testing.assert_array_equal(y, np.concatenate(bottoms, axis))
    for dx, bottom in zip(layer.backward([y]), bottoms):
        np.testing.assert_array_equal(dx, bottom)
    coupled = layer.core.traits().batch_axis == BatchAxis.COUPLED
    assert coupled == (axis == 0)


def test_concat_of_large_bottoms_and_partial_gradients() -> None:
    bottoms = [random_array(3, k, 60, 50, seed=k) for k in (3, 8)]
    layer = LayerUnderTest('type: "Concat"', bottoms, propagate=[False, True])
    (y,) = layer.forward()
    np.testing.assert_array_equal(y, np.concatenate(bottoms, 1))
    first, second = layer.backward([y])
    assert first is None
    np.testing.assert_array_equal(second, bottoms[1])


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ("", [(2, 3, 4), (2, 3, 5)], "bottom 1 is 2x3x5, which differs from bottom 0, 2x3x4"),
        ("", [(2, 3, 4), (2, 3)], "bottom 1 is 2x3, which differs"),
        ("axis: 3", [(2, 3, 4)], "axis 3 is out of range for 3 axes"),
        ("axis: 1 concat_dim: 1", [(2, 3)], "both axis and its older name concat_dim"),
        ("", [], "has no bottoms"),
    ],
)
def test_bad_concat(options: str, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(
            f'type: "Concat" concat_param {{ {options} }}',
            [np.zeros(shape, np.float32) for shape in shapes],
        )


ELTWISE = [
    ("", 2),
    ("coeff: [1, -0.5, 2]", 3),
    ("operation: PROD", 2),
    ("operation: PROD", 4),
    ("operation: PROD stable_prod_grad: false", 3),
    ("operation: MAX", 2),
    ("operation: MAX", 5),
]


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 50, 60)])
@pytest.mark.parametrize(("options", "bottoms"), ELTWISE)
def test_eltwise(options: str, bottoms: int, shape: tuple[int, ...]) -> None:
    values = distinct_array(bottoms, *shape)
    values /= np.abs(values).max() / 2 if "MAX" not in options else 1
    layer = LayerUnderTest(f'type: "Eltwise" eltwise_param {{ {options} }}', list(values))
    (y,) = layer.forward()
    if "PROD" in options:
        expected = values.prod(0)
    elif "MAX" in options:
        expected = values.max(0)
    else:
        factors = np.array([1, -0.5, 2] if "coeff" in options else [1] * bottoms)
        expected = np.tensordot(factors, values, 1)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    check_gradients(layer, samples=40)
    check_in_place(layer)


def test_eltwise_of_a_value_with_itself_in_place() -> None:
    """Split's tops are one buffer: a chunk must be read whole before it is written."""
    layer = LayerUnderTest('type: "Eltwise"', [random_array(3, 999)] * 4).core
    x = _core.Tensor([3, 999], _core.MemoryKind.RAW_ACTIVATIONS)
    x.numpy()[...] = random_array(3, 999)
    before = x.numpy().copy()
    layer.forward([x] * 4, [x], _core.layers.ForwardContext(train=True))
    np.testing.assert_allclose(x.numpy(), 4 * before, rtol=1e-6)


def test_product_with_zeros() -> None:
    x = np.array([[0, 0, 2], [0, 3, 4], [5, 6, 7]], np.float32)
    text = 'type: "Eltwise" eltwise_param { operation: PROD stable_prod_grad: false }'
    layer = LayerUnderTest(text, list(x))
    layer.forward()
    gradients = np.stack(layer.backward([np.ones(3, np.float32)]))
    np.testing.assert_array_equal(gradients, [[0, 18, 28], [0, 0, 14], [0, 0, 8]])


def test_maximum_of_equal_values() -> None:
    """As BVLC Caffe: bottom 1 before bottom 0, a later one only if it is larger."""
    x = np.zeros((3, 4), np.float32)
    layer = LayerUnderTest('type: "Eltwise" eltwise_param { operation: MAX }', list(x))
    layer.forward()
    dy = np.ones(4, np.float32)
    np.testing.assert_array_equal(np.stack(layer.backward([dy])), [dy * 0, dy, dy * 0])


@pytest.mark.parametrize(("bottoms", "bits"), [(2, 1), (3, 2), (5, 3)])
def test_maximum_keeps_few_bits(bottoms: int, bits: int) -> None:
    text = 'type: "Eltwise" eltwise_param { operation: MAX }'
    layer = LayerUnderTest(text, list(random_array(bottoms, 4096)))
    layer.forward()
    assert layer.core.saved_bytes() == 4096 * bits // 8
    assert all(need.quality == Quality.NOTHING for need in layer.core.needs(layer.propagation).tops)
    layer.core.drop_saved()
    with pytest.raises(_core.Error, match="without a forward pass that saved"):
        layer.backward([random_array(4096)])


def test_needs_of_eltwise() -> None:
    def qualities(options: str, wanted: list[bool]) -> list[bool]:
        text = f'type: "Eltwise" eltwise_param {{ {options} }}'
        layer = LayerUnderTest(text, list(random_array(3, 4)), propagate=wanted)
        needs = layer.core.needs(layer.propagation)
        return [need.quality == Quality.BOUNDED for need in needs.bottoms]

    assert qualities("operation: SUM", [True] * 3) == [False] * 3
    assert qualities("operation: MAX", [True] * 3) == [False] * 3
    assert qualities("operation: PROD", [True] * 3) == [True] * 3
    assert qualities("operation: PROD", [True, False, False]) == [False, True, True]
    assert qualities("operation: PROD", [False] * 3) == [False] * 3


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ("", [(2, 3)], "has 1 bottoms, needs 2 to 256"),
        ("", [(2, 3), (3, 2)], "bottom 1 is 3x2, needs the shape of bottom 0, 2x3"),
        ("coeff: 1", [(2,), (2,)], "has 1 values of coeff, needs one for each of 2 bottoms"),
        ("operation: PROD coeff: [1, 1]", [(2,), (2,)], "coeff is for SUM"),
    ],
)
def test_bad_eltwise(options: str, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(
            f'type: "Eltwise" eltwise_param {{ {options} }}',
            [np.zeros(shape, np.float32) for shape in shapes],
        )


@pytest.mark.parametrize("tops", [1, 2, 3, 5])
@pytest.mark.parametrize("in_place", [False, True])
def test_split(tops: int, in_place: bool) -> None:
    x = random_array(3, 7000)
    text = 'type: "Split"' + "".join(f' top: "y{k}"' for k in range(tops))
    layer = LayerUnderTest(text, [x])
    assert layer.core.traits().alias
    for y in layer.forward():
        np.testing.assert_array_equal(y, x)
    diffs = [random_array(3, 7000, seed=k) for k in range(tops)]
    (dx,) = layer.backward(diffs, in_place=in_place)
    np.testing.assert_allclose(dx, np.sum(diffs, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "shape", "top"),
    [
        ('type: "Flatten"', (2, 3, 4), (2, 12)),
        ('type: "Flatten" flatten_param { axis: 0 end_axis: -2 }', (2, 3, 4), (6, 4)),
        ('type: "Flatten" flatten_param { axis: 2 end_axis: 2 }', (2, 3, 4), (2, 3, 4)),
        ('type: "Reshape" reshape_param { shape { dim: 0 dim: -1 } }', (2, 3, 4), (2, 12)),
        ('type: "Reshape" reshape_param { shape { dim: -1 } }', (2, 3, 4), (24,)),
        (
            'type: "Reshape" reshape_param { shape { dim: 2 dim: 2 } axis: -1 num_axes: 0 }',
            (6, 1),
            None,
        ),
        (
            'type: "Reshape" reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }',
            (6, 2),
            (6, 2, 1),
        ),
        (
            'type: "Reshape" reshape_param { shape { dim: 2 dim: 3 } axis: 1 num_axes: 1 }',
            (4, 6, 5),
            (4, 2, 3, 5),
        ),
        ('type: "Reshape" reshape_param { shape { } }', (1, 1), ()),
    ],
)
def test_shapes(text: str, shape: tuple[int, ...], top: tuple[int, ...] | None) -> None:
    if top is None:
        with pytest.raises(ValueError, match="the number of values differs"):
            LayerUnderTest(text, [random_array(*shape)])
        return
    x = random_array(*shape)
    layer = LayerUnderTest(text, [x])
    (y,) = layer.forward()
    np.testing.assert_array_equal(y, x.reshape(top))
    np.testing.assert_array_equal(layer.backward([y])[0], x)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('type: "Flatten" flatten_param { axis: 2 end_axis: 1 }', "comes after end_axis"),
        ('type: "Flatten" flatten_param { axis: 4 }', "axis 4 is out of range"),
        ('type: "Reshape" reshape_param { shape { dim: -1 dim: -1 } }', "more than one"),
        ('type: "Reshape" reshape_param { shape { dim: -2 } }', "dim 0 of the shape is -2"),
        ('type: "Reshape" reshape_param { shape { dim: 7 dim: -1 } }', "24 values do not divide"),
        ('type: "Reshape" reshape_param { shape { dim: 0 dim: 0 dim: 0 dim: 0 } }', "no axis 3"),
        ('type: "Reshape" reshape_param { axis: 9 }', "axis 9 is out of range"),
        ('type: "Reshape" reshape_param { num_axes: 9 }', "reach past the 3 axes"),
        ('type: "Reshape" reshape_param { shape { dim: 5 } }', "number of values differs"),
    ],
)
def test_bad_shapes(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(text, [random_array(2, 3, 4)])
