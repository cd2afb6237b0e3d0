"""What a layer's param and the like say: shared blobs, rates, loss weights, where gradients go."""

from __future__ import annotations

import numpy as np
import pytest
from nets import make_solver

import caffe
from caffe.prototxt import parse_net

HEAD = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
"""


def inner(name: str, bottom: str, options: str = "", outputs: int = 3) -> str:
    return (
        f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{name}" {options} '
        f"inner_product_param {{ num_output: {outputs} bias_term: false "
        'weight_filler { type: "xavier" } } }\n'
    )


def net_of(*layers: str, head: str = "") -> caffe.Net:
    """With weights near the identity, so that no ReLU is dead."""
    net = caffe.Net(parse_net(head + HEAD + "".join(layers)), caffe.TRAIN)
    rng = np.random.default_rng(2)
    for blob in net.learned:
        shape = tuple(blob.parameter.data.shape)
        blob.parameter.data.numpy()[...] = np.eye(*shape) + 0.1 * rng.standard_normal(shape)
    return net


def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


# -- shared blobs ------------------------------------------------------------------------------


def test_shared_blobs_are_one_and_gather_all_gradients() -> None:
    shared = 'param { name: "w" }'
    layers = inner("a", "data", shared), inner("b", "a", shared), inner("c", "b")
    net = net_of(*layers, head="force_backward: true ")
    assert [len(net.learned), net.learned[0].sharers] == [2, 2]
    net.params["a"][0].data[...] = np.eye(3) * 2
    np.testing.assert_array_equal(net.params["b"][0].data, np.eye(3) * 2)
    net.forward(data=x())
    np.testing.assert_allclose(net.blobs["b"].data, 4 * x(), rtol=1e-6)
    net.clear_param_diffs()
    dy = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
    net.backward(c=dy)
    db = dy @ net.params["c"][0].data
    expected = db.T @ (2 * x()) + (2 * db).T @ x()
    np.testing.assert_allclose(net.params["a"][0].diff, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(net.params["a"][0].diff, net.params["b"][0].diff)


def test_strict_wants_the_shape_and_permissive_the_count() -> None:
    first = inner("a", "data", 'param { name: "w" }')
    flat = 'layer { name: "f" type: "Reshape" bottom: "data" top: "f" reshape_param { shape {'
    wide = HEAD.replace("dim: 2 dim: 3", "dim: 3 dim: 3") + first + flat + " dim: 1 dim: 9 } } }"

    def make(options: str, outputs: int = 1) -> caffe.Net:
        return caffe.Net(parse_net(wide + inner("b", "f", options, outputs)), caffe.TRAIN)

    message = (
        r"layer 'b' \(InnerProduct\): shares 'w' of layer 'a', but its shape is \(1, 9\) and "
        r"theirs \(3, 3\); share_mode: PERMISSIVE compares the number of values only"
    )
    with pytest.raises(ValueError, match=message):
        make('param { name: "w" }')
    net = make('param { name: "w" share_mode: PERMISSIVE }')
    assert [net.params[name][0].shape for name in "ab"] == [(3, 3), (1, 9)]
    net.params["b"][0].data[...] = np.arange(9)
    np.testing.assert_array_equal(net.params["a"][0].data.ravel(), np.arange(9))
    net.forward(data=np.ones((3, 3)))
    np.testing.assert_array_equal(net.blobs["b"].data, [[36]])
    with pytest.raises(ValueError, match=r"layer 'b' .* has 18 values and they have 9"):
        make('param { name: "w" share_mode: PERMISSIVE }', 2)


def test_rates_of_shared_blobs_are_said_once_or_alike() -> None:
    def spec(text: str) -> str:
        return f'param {{ name: "w" {text} }}'

    net = net_of(inner("a", "data", spec("")), inner("b", "a", spec("lr_mult: 3 decay_mult: 2")))
    assert (net.learned[0].spec.lr_mult, net.learned[0].spec.decay_mult) == (3, 2)
    net_of(inner("a", "data", spec("lr_mult: 3")), inner("b", "a", spec("lr_mult: 3")))
    for name in ("lr_mult", "decay_mult"):
        with pytest.raises(ValueError, match=rf"another {name}: 2, theirs is 3"):
            net_of(
                inner("a", "data", spec(f"{name}: 3")),
                inner("b", "a", spec(f"{name}: 2")),
            )


# -- rates -------------------------------------------------------------------------------------


def test_lr_mult_and_decay_mult() -> None:
    text = HEAD + inner("a", "data", "param { lr_mult: 3 decay_mult: 0.5 }", 1)
    loss = (
        text
        + 'layer { name: "l" type: "Reshape" bottom: "a" top: "l" loss_weight: 1 '
        + ("reshape_param { shape { dim: -1 } } }")
    )
    solver = make_solver(parse_net(loss), "base_lr: 0.1 momentum: 0 weight_decay: 0.2")
    weights = solver.net.params["a"][0].data
    before = weights.copy()
    solver.net.blobs["data"].data[...] = x()
    solver.step(1)
    expected = before - 0.1 * 3 * (x().sum(0) + 0.2 * 0.5 * before)
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


# -- losses ------------------------------------------------------------------------------------


def test_loss_weights_scale_the_loss_and_its_gradients() -> None:
    def make(weight: str) -> caffe.Net:
        return net_of(
            'layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 2 } } }',
            inner("a", "data"),
            'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "a" bottom: "label" '
            f'top: "loss" {weight} }}',
            'layer { name: "relu" type: "ReLU" bottom: "a" top: "r" loss_weight: 2 }',
        )

    results = {}
    for weight, factor in (("", 1), ("loss_weight: 0", 0), ("loss_weight: 0.5", 0.5)):
        net = make(weight)
        net.params["a"][0].data[...] = np.eye(3)
        net.forward(data=x(), label=np.array([0, 2]))
        assert net.blob_loss_weights["loss"] == factor
        assert net.blob_loss_weights["r"] == 2
        rest = 2 * np.maximum(x(), 0).sum()
        np.testing.assert_allclose(
            net.loss(), factor * net.blobs["loss"].data.item() + rest, rtol=1e-5
        )
        net.clear_param_diffs()
        net.backward()
        results[factor] = net.params["a"][0].diff.copy()
    np.testing.assert_allclose(results[0], 2 * (x() > 0).T.astype(np.float32) @ x(), rtol=1e-5)
    np.testing.assert_allclose(results[0.5], (results[0] + results[1]) / 2, rtol=1e-4, atol=1e-6)


# -- where gradients go ------------------------------------------------------------------------

CHAIN = (inner("a", "data"), inner("b", "a"), inner("c", "b"))
LOSS = 'layer { name: "l" type: "ReLU" bottom: "c" top: "l" loss_weight: 1 }'


def runs(net: caffe.Net) -> dict[str, bool]:
    return {layer.node.name: layer.facts.runs_backward for layer in net.executor.layers}


def test_propagate_down_false_ends_the_backward_pass() -> None:
    stopped = inner("b", "a", "propagate_down: false")
    net = net_of(CHAIN[0], stopped, CHAIN[2], LOSS)
    assert runs(net) == {"data": False, "a": False, "b": True, "c": True, "l": True}
    net.forward(data=x())
    net.clear_param_diffs()
    net.backward()
    assert net.params["b"][0].diff.any()
    assert not net.params["a"][0].diff.any()


def test_propagate_down_true_reaches_an_input() -> None:
    net = net_of(inner("a", "data", "propagate_down: true"), *CHAIN[1:], LOSS)
    net.forward(data=x())
    gradient = net.backward()["data"]
    weights = [net.params[name][0].data for name in "abc"]
    expected = (net.blobs["c"].data > 0).astype(np.float32) @ weights[2] @ weights[1] @ weights[0]
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)


def test_force_backward_reaches_everything() -> None:
    frozen = "param { lr_mult: 0 }"
    layers = [inner("a", "data", frozen), inner("b", "a", frozen), inner("c", "b", frozen), LOSS]
    assert not any(runs(net_of(*layers)).values())
    forced = net_of(*layers, head="force_backward: true ")
    assert runs(forced) == {"data": False, "a": True, "b": True, "c": True, "l": True}
    forced.forward(data=x())
    assert forced.backward()["data"].any()
    assert not forced.params["a"][0].diff.any()


def test_nothing_runs_backward_beside_the_way_to_the_loss() -> None:
    net = net_of(*CHAIN, LOSS, inner("aside", "data"))
    assert not runs(net)["aside"]
    assert runs(net)["a"]


# -- weights in the net's own message ----------------------------------------------------------


def test_blobs_that_a_layer_carries_are_its_weights() -> None:
    blob = "blobs { shape { dim: 2 dim: 3 } data: [1, 2, 3, 4, 5, 6] }"
    old = "blobs { num: 1 channels: 1 height: 2 width: 3 double_data: [1, 2, 3, 4, 5, 6] }"
    for text in (blob, old):
        net = caffe.Net(parse_net(HEAD + inner("a", "data", text, 2)), caffe.TRAIN)
        np.testing.assert_array_equal(net.params["a"][0].data, [[1, 2, 3], [4, 5, 6]])
    for text, message in (
        (blob + blob, r"layer 'a' \(InnerProduct\): carries 2 blobs, has 1"),
        ("blobs { shape { dim: 1 } data: 1 }", r"carries blob 0 of shape \(1,\), needs \(2, 3\)"),
        ("blobs { shape { dim: 2 } data: 1 }", r"layer 'a' .* a blob has 1 values, its shape"),
    ):
        with pytest.raises(ValueError, match=message):
            caffe.Net(parse_net(HEAD + inner("a", "data", text, 2)), caffe.TRAIN)
