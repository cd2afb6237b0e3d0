"""The loss layers besides SoftmaxWithLoss: golden vectors, gradients, PyTorch, ignored labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness import (
    Array,
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    random_array,
)

from caffe import _core
from caffe.proto import caffe_pb2 as pb

ONE = np.ones((), np.float32)


def labels(*shape: int, classes: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).integers(0, classes, shape).astype(np.float32)


def probabilities(*shape: int) -> Array:
    p = np.exp(random_array(*shape))
    return p / p.sum(1, keepdims=True)


def loss(layer: LayerUnderTest) -> float:
    top = layer.forward()[0]
    assert top.shape == ()
    return float(top)


@pytest.mark.parametrize("name", ["euclidean", "hinge_l1", "contrastive", "sigmoidce"])
def test_golden(name: str) -> None:
    check_golden(name)


# -- EuclideanLoss ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4, 5)])
def test_euclidean(shape: tuple[int, ...]) -> None:
    a, b = random_array(*shape), random_array(*shape, seed=1)
    layer = LayerUnderTest('type: "EuclideanLoss"', [a, b])
    np.testing.assert_allclose(loss(layer), np.sum((a - b) ** 2) / 2 / shape[0], rtol=1e-5)
    check_gradients(layer)
    da, db = layer.backward([ONE])
    np.testing.assert_array_equal(da, -db)


def test_euclidean_of_other_shapes() -> None:
    layer = LayerUnderTest('type: "EuclideanLoss"', [random_array(3, 4), random_array(3, 2, 2)])
    layer.forward()
    da, db = layer.backward([ONE])
    assert (da.shape, db.shape) == ((3, 4), (3, 2, 2))


# -- HingeLoss -------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_hinge(norm: str) -> None:
    x, y = 2 * random_array(6, 5), labels(6, classes=5)
    text = f'type: "HingeLoss" hinge_loss_param {{ norm: {norm} }}'
    layer = LayerUnderTest(text, [x, y], propagate=[True, False])
    total = 0.0
    for row, label in zip(x, y):
        for c, score in enumerate(row):
            margin = max(0, 1 - score if c == label else 1 + score)
            total += margin if norm == "L1" else margin**2
    np.testing.assert_allclose(loss(layer), total / 6, rtol=1e-5)
    check_gradients(layer)


def test_hinge_against_pytorch() -> None:
    """PyTorch's multi-label margin for scores of -x, one-hot labels and a margin of 1."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, y = random_array(6, 5), labels(6, classes=5)
    ours = LayerUnderTest('type: "HingeLoss"', [x, y], propagate=[True, False])
    theirs = torch.tensor(x, requires_grad=True)
    sign = torch.ones(6, 5)
    sign[torch.arange(6), torch.tensor(y).long()] = -1
    expected = torch.relu(1 + sign * theirs).sum() / 6
    expected.backward()
    np.testing.assert_allclose(loss(ours), expected.item(), rtol=1e-5)
    np.testing.assert_allclose(ours.backward([ONE])[0], theirs.grad, rtol=1e-5)


# -- ContrastiveLoss -------------------------------------------------------------------------------


@pytest.mark.parametrize("legacy", ["false", "true"])
def test_contrastive(legacy: str) -> None:
    a, b = random_array(8, 4), random_array(8, 4, seed=1)
    alike = np.float32([1, 0, 0, 1, 0, 0, 1, 0])
    text = (
        f'type: "ContrastiveLoss" contrastive_loss_param {{ margin: 3 legacy_version: {legacy} }}'
    )
    layer = LayerUnderTest(text, [a, b, alike], propagate=[True, True, False])
    total = 0.0
    for p, q, same in zip(a, b, alike):
        d = np.linalg.norm(p - q)
        if same:
            total += d**2
        else:
            total += max(0, 3 - d**2) if legacy == "true" else max(0, 3 - d) ** 2
    np.testing.assert_allclose(loss(layer), total / 16, rtol=1e-5)
    check_gradients(layer)


def test_contrastive_of_equal_pairs_is_finite() -> None:
    a = random_array(3, 4)
    layer = LayerUnderTest(
        'type: "ContrastiveLoss"', [a, a, np.zeros(3)], propagate=[True] * 2 + [False]
    )
    assert loss(layer) == pytest.approx(0.5)
    np.testing.assert_array_equal(layer.backward([ONE])[0], np.zeros_like(a))


# -- MultinomialLogisticLoss -----------------------------------------------------------------------


def test_multinomial() -> None:
    p, y = probabilities(6, 5), labels(6, classes=5)
    layer = LayerUnderTest('type: "MultinomialLogisticLoss"', [p, y], propagate=[True, False])
    expected = -np.mean(np.log(p[np.arange(6), y.astype(int)]))
    np.testing.assert_allclose(loss(layer), expected, rtol=1e-5)
    check_gradients(layer, step=1e-3)


def test_multinomial_of_no_probability() -> None:
    p = np.float32([[0, 1]])
    layer = LayerUnderTest('type: "MultinomialLogisticLoss"', [p, [0]], propagate=[True, False])
    np.testing.assert_allclose(loss(layer), -np.log(1e-20), rtol=1e-5)
    np.testing.assert_allclose(layer.backward([ONE])[0], [[-1e20, 0]], rtol=1e-5)


# -- SigmoidCrossEntropyLoss -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "divisor"),
    [
        ("", 4),
        ("normalization: FULL", 24),
        ("normalization: VALID", 24),
        ("normalization: BATCH_SIZE", 4),
        ("normalization: NONE", 1),
        ("normalize: true", 24),
        ("normalize: false", 4),
    ],
)
def test_sigmoid_cross_entropy(options: str, divisor: int) -> None:
    x = 3 * random_array(4, 2, 3)
    t = np.random.default_rng(2).random((4, 2, 3)).astype(np.float32)
    text = f'type: "SigmoidCrossEntropyLoss" loss_param {{ {options} }}'
    layer = LayerUnderTest(text, [x, t], propagate=[True, False])
    s = 1 / (1 + np.exp(-x.astype(np.float64)))
    total = -np.sum(t * np.log(s) + (1 - t) * np.log(1 - s))
    np.testing.assert_allclose(loss(layer), total / divisor, rtol=1e-5)
    check_gradients(layer)


@pytest.mark.parametrize(("normalization", "divisor"), [("VALID", 8), ("FULL", 12), ("NONE", 1)])
def test_sigmoid_cross_entropy_with_ignored_targets(normalization: str, divisor: int) -> None:
    x, t = random_array(4, 3), labels(4, 3, classes=2)
    t[0] = -1
    t[2, 1] = -1
    text = (
        'type: "SigmoidCrossEntropyLoss" '
        f"loss_param {{ ignore_label: -1 normalization: {normalization} }}"
    )
    layer = LayerUnderTest(text, [x, t], propagate=[True, False])
    s = 1 / (1 + np.exp(-x.astype(np.float64)))
    each = -np.where(t == -1, 0, t * np.log(s) + (1 - t) * np.log(1 - s))
    np.testing.assert_allclose(loss(layer), each.sum() / divisor, rtol=1e-5)
    (dx, _) = layer.backward([ONE])
    np.testing.assert_array_equal(dx[t == -1], 0)
    check_gradients(layer)


def test_sigmoid_cross_entropy_of_large_scores() -> None:
    x, t = np.float32([[1e30, -1e30, 1e30]]), np.float32([[1, 0, 0]])
    layer = LayerUnderTest('type: "SigmoidCrossEntropyLoss"', [x, t], propagate=[True, False])
    assert loss(layer) == pytest.approx(1e30, rel=1e-6)
    np.testing.assert_array_equal(layer.backward([ONE])[0], [[0, 0, 1]])


def test_sigmoid_cross_entropy_against_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x, t = random_array(4, 3), labels(4, 3, classes=2)
    ours = LayerUnderTest('type: "SigmoidCrossEntropyLoss"', [x, t], propagate=[True, False])
    theirs = torch.tensor(x, requires_grad=True)
    out = torch.nn.functional.binary_cross_entropy_with_logits(
        theirs, torch.tensor(t), reduction="sum"
    )
    (out / 4).backward()
    np.testing.assert_allclose(loss(ours), out.item() / 4, rtol=1e-5)
    np.testing.assert_allclose(ours.backward([ONE])[0], theirs.grad, rtol=1e-5, atol=1e-7)


# -- InfogainLoss ----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [1, -1, 2])
@pytest.mark.parametrize("normalization", ["VALID", "FULL", "BATCH_SIZE", "NONE"])
def test_infogain(normalization: str, axis: int) -> None:
    x = random_array(3, 4, 5)
    at = axis % 3
    classes = x.shape[at]
    outside = [size for i, size in enumerate(x.shape) if i != at]
    y = labels(*outside, classes=classes)
    y.flat[1] = 2
    h = np.random.default_rng(0).random((classes, classes)).astype(np.float32)
    text = (
        f'type: "InfogainLoss" top: "loss" top: "p" infogain_loss_param {{ axis: {axis} }} '
        f"loss_param {{ ignore_label: 2 normalization: {normalization} }}"
    )
    layer = LayerUnderTest(text, [x, y, h], propagate=[True, False, False])
    top, p = layer.forward()
    exact = np.exp(x.astype(np.float64))
    exact /= exact.sum(at, keepdims=True)
    np.testing.assert_allclose(p, exact, rtol=1e-5)
    total, valid = 0.0, 0
    for index, label in np.ndenumerate(y):
        if label == 2:
            continue
        valid += 1
        row = np.moveaxis(exact, at, -1)[index]
        total -= np.sum(h[int(label)] * np.log(row))
    batch = int(np.prod(x.shape[:at]))
    divisor = {"VALID": valid, "FULL": y.size, "BATCH_SIZE": batch, "NONE": 1}[normalization]
    np.testing.assert_allclose(top, total / divisor, rtol=1e-5)
    check_gradients(layer, tops=[0])


def test_infogain_of_the_unit_matrix_is_softmax_with_loss() -> None:
    x, y = random_array(6, 5), labels(6, classes=5)
    infogain = LayerUnderTest(
        'type: "InfogainLoss"', [x, y, np.eye(5)], propagate=[True, False, False]
    )
    softmax = LayerUnderTest('type: "SoftmaxWithLoss"', [x, y], propagate=[True, False])
    np.testing.assert_allclose(loss(infogain), loss(softmax), rtol=1e-6)
    np.testing.assert_allclose(
        infogain.backward([ONE])[0], softmax.backward([ONE])[0], rtol=1e-5, atol=1e-7
    )


def test_infogain_matrix_from_a_file(tmp_path: Path) -> None:
    x, y = random_array(6, 3), labels(6, classes=3)
    h = np.random.default_rng(0).random((3, 3)).astype(np.float32)
    blob = pb.BlobProto(num=1, channels=1, height=3, width=3, data=h.ravel().tolist())
    file = tmp_path / "h.binaryproto"
    file.write_bytes(blob.SerializeToString())
    text = f'type: "InfogainLoss" infogain_loss_param {{ source: "{file}" }}'
    from_file = LayerUnderTest(text, [x, y], propagate=[True, False])
    from_bottom = LayerUnderTest('type: "InfogainLoss"', [x, y, h], propagate=[True, False, False])
    assert loss(from_file) == loss(from_bottom)
    np.testing.assert_array_equal(from_file.backward([ONE])[0], from_bottom.backward([ONE])[0])
    with pytest.raises(ValueError, match="one of them"):
        LayerUnderTest(text, [x, y, h])
    with pytest.raises(ValueError, match="has 9 values, needs 4 x 4 for the 4 classes of axis 1"):
        LayerUnderTest(text, [random_array(6, 4), y])
    missing = 'type: "InfogainLoss" infogain_loss_param { source: "/nowhere.binaryproto" }'
    with pytest.raises(FileNotFoundError, match="nowhere"):
        LayerUnderTest(missing, [x, y])


def test_infogain_keeps_its_probabilities() -> None:
    layer = LayerUnderTest(
        'type: "InfogainLoss"', [random_array(6, 5), labels(6, classes=5), np.eye(5)]
    )
    layer.forward()
    assert layer.core.saved_bytes() == 6 * 5 * 4
    layer.core.drop_saved()
    assert layer.core.saved_bytes() == 0
    layer.context = _core.layers.ForwardContext(train=True, save_for_backward=False)
    layer.forward()
    assert layer.core.saved_bytes() == 0


# -- all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bottoms"),
    [
        (
            'type: "SigmoidCrossEntropyLoss" loss_param { ignore_label: 1 normalization: VALID }',
            [random_array(2, 3), np.ones((2, 3))],
        ),
        (
            'type: "InfogainLoss" loss_param { ignore_label: 1 }',
            [random_array(2, 3), np.ones(2), np.eye(3)],
        ),
        (
            'type: "SoftmaxWithLoss" loss_param { ignore_label: 1 }',
            [random_array(2, 3), np.ones(2)],
        ),
    ],
)
def test_all_labels_ignored(text: str, bottoms: list[Array]) -> None:
    layer = LayerUnderTest(text, bottoms, propagate=[True] + [False] * (len(bottoms) - 1))
    assert loss(layer) == 0
    np.testing.assert_array_equal(layer.backward([ONE])[0], 0)


LABELLED = {
    "HingeLoss": [],
    "MultinomialLogisticLoss": [],
    "InfogainLoss": [np.eye(3)],
}


@pytest.mark.parametrize("label", [-1, 3, 1e9, np.nan])
@pytest.mark.parametrize("kind", LABELLED)
def test_labels_out_of_range(kind: str, label: float) -> None:
    bottoms = [random_array(2, 3), np.float32([0, label]), *LABELLED[kind]]
    layer = LayerUnderTest(f'type: "{kind}"', bottoms)
    with pytest.raises(ValueError, match=r"of sample 1 is not one of the 3 classes \(0 to 2\)"):
        layer.forward()


EXACT, NOTHING = Quality.EXACT, Quality.NOTHING


@pytest.mark.parametrize(
    ("kind", "bottoms", "qualities"),
    [
        ("EuclideanLoss", [(2, 3), (2, 3)], [EXACT, EXACT]),
        ("HingeLoss", [(2, 3), (2,)], [EXACT, EXACT]),
        ("ContrastiveLoss", [(2, 3), (2, 3), (2,)], [EXACT, EXACT, EXACT]),
        ("MultinomialLogisticLoss", [(2, 3), (2,)], [EXACT, EXACT]),
        ("SigmoidCrossEntropyLoss", [(2, 3), (2, 3)], [EXACT, EXACT]),
        ("InfogainLoss", [(2, 3), (2,), (3, 3)], [NOTHING, EXACT, EXACT]),
    ],
)
def test_needs(kind: str, bottoms: list[tuple[int, ...]], qualities: list[Quality]) -> None:
    layer = LayerUnderTest(f'type: "{kind}"', [np.zeros(shape) for shape in bottoms])
    needs = layer.core.needs(layer.propagation)
    assert [need.quality for need in needs.bottoms] == qualities
    assert [need.quality for need in needs.tops] == [NOTHING]
    labelled = 2 if kind == "ContrastiveLoss" else 1
    if kind != "EuclideanLoss":
        assert layer.core.traits().differentiable_bottoms == labelled


@pytest.mark.parametrize(
    ("kind", "shapes", "words"),
    [
        ("EuclideanLoss", [(2, 3)], "has 1 bottoms, needs 2"),
        ("EuclideanLoss", [(2, 3), (3, 2)], "a first axis of one length, the batch"),
        ("EuclideanLoss", [(2, 3), (2, 4)], "samples of different sizes"),
        ("EuclideanLoss", [(), ()], "a first axis"),
        ("HingeLoss", [(2, 3), (2, 3)], "needs one for each of the 2 samples"),
        ("HingeLoss", [(2, 3), (2,), (2,)], "has 3 bottoms, needs 2"),
        ("ContrastiveLoss", [(2, 3), (2, 3)], "has 2 bottoms, needs 3"),
        ("ContrastiveLoss", [(2, 3), (2, 4), (2,)], "samples of different sizes"),
        ("MultinomialLogisticLoss", [(2, 3), (3,)], "a first axis of one length"),
        ("SigmoidCrossEntropyLoss", [(2, 3), (2, 2)], "one target a score is needed"),
        ("InfogainLoss", [(2, 3), (2,)], "from infogain_loss_param's source or from a third"),
        ("InfogainLoss", [(2, 3), (3,), (3, 3)], "one label a position is needed"),
        ("InfogainLoss", [(2, 3), (2,), (2, 3)], "has 6 values, needs 3 x 3"),
    ],
)
def test_bad_shapes(kind: str, shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(f'type: "{kind}"', [np.zeros(shape) for shape in shapes])
