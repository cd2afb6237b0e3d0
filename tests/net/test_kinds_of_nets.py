"""Nets of other kinds than classifiers: they learn, and LOSSLESS equals NONE to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from nets import make_solver, parameters

from caffe import NetSpec
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2 as pb

XAVIER = {"type": "xavier"}
RNG = np.random.default_rng(3)
Inputs = dict[str, np.ndarray]


def fully_convolutional() -> tuple[pb.NetParameter, Inputs]:
    """Segmentation: down by 4, up by a Deconvolution, cropped to the input, one label a pixel."""
    n = NetSpec()
    n.data = L.Input(shape={"dim": [4, 3, 22, 26]})
    n.label = L.Input(shape={"dim": [4, 1, 22, 26]})
    n.conv1 = L.Convolution(
        n.data, num_output=8, kernel_size=3, stride=2, pad=2, weight_filler=XAVIER
    )
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.pool1 = L.Pooling(n.conv1, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.score = L.Convolution(n.pool1, num_output=2, kernel_size=1, weight_filler=XAVIER)
    n.up = L.Deconvolution(
        n.score,
        convolution_param={
            "num_output": 2,
            "kernel_size": 8,
            "stride": 4,
            "bias_term": False,
            "weight_filler": {"type": "bilinear"},
            "group": 2,
        },
    )
    n.cropped = L.Crop(n.up, n.data, axis=2, offset=[2])
    n.loss = L.SoftmaxWithLoss(n.cropped, n.label)
    data = RNG.normal(size=(4, 3, 22, 26)).astype(np.float32)
    data[:, :, :, 13:] += 2
    label = np.zeros((4, 1, 22, 26), np.float32)
    label[:, :, :, 13:] = 1
    return n.to_proto(), {"data": data, "label": label}


def siamese() -> tuple[pb.NetParameter, Inputs]:
    """Two towers with the same weights, by name, and a contrastive loss."""
    n = NetSpec()
    n.left = L.Input(shape={"dim": [16, 1, 8, 8]})
    n.right = L.Input(shape={"dim": [16, 1, 8, 8]})
    n.similar = L.Input(shape={"dim": [16]})
    features = []
    for side in ("left", "right"):
        conv = L.Convolution(
            n[side],
            num_output=6,
            kernel_size=3,
            weight_filler=XAVIER,
            param=[{"name": "conv_w"}, {"name": "conv_b"}],
        )
        n[f"conv_{side}"] = conv
        n[f"relu_{side}"] = L.ReLU(conv, in_place=True)
        n[f"feature_{side}"] = L.InnerProduct(
            conv,
            num_output=3,
            weight_filler=XAVIER,
            param=[{"name": "ip_w"}, {"name": "ip_b"}],
        )
        features.append(n[f"feature_{side}"])
    n.loss = L.ContrastiveLoss(*features, n.similar, margin=1)
    kinds = RNG.integers(0, 2, (2, 16))
    images = RNG.normal(size=(2, 16, 1, 8, 8)).astype(np.float32)
    images += 3 * kinds[:, :, None, None, None].astype(np.float32)
    similar = (kinds[0] == kinds[1]).astype(np.float32)
    return n.to_proto(), {"left": images[0], "right": images[1], "similar": similar}


def recurrent() -> tuple[pb.NetParameter, Inputs]:
    """An LSTM that is asked after each step for the first input of its sequence."""
    steps, batch, words = 6, 8, 4
    n = NetSpec()
    n.word = L.Input(shape={"dim": [steps, batch]})
    n.cont = L.Input(shape={"dim": [steps, batch]})
    n.label = L.Input(shape={"dim": [steps, batch]})
    n.embedded = L.Embed(n.word, input_dim=words, num_output=5, weight_filler=XAVIER)
    n.lstm = L.LSTM(n.embedded, n.cont, recurrent_param={"num_output": 12, "weight_filler": XAVIER})
    n.scores = L.InnerProduct(n.lstm, num_output=words, axis=2, weight_filler=XAVIER)
    n.loss = L.SoftmaxWithLoss(n.scores, n.label, softmax_param={"axis": 2})
    word = RNG.integers(0, words, (steps, batch)).astype(np.float32)
    cont = np.ones((steps, batch), np.float32)
    cont[0] = 0
    label = np.repeat(word[:1], steps, 0)
    return n.to_proto(), {"word": word, "cont": cont, "label": label}


def train(
    net: pb.NetParameter, inputs: Inputs, compression: str, steps: int
) -> tuple[list[float], list[np.ndarray]]:
    solver = make_solver(net, "base_lr: 0.1", compression)
    losses = []
    for _ in range(steps):
        for name, values in inputs.items():
            solver.net.blobs[name].data[...] = values
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data))
    return losses, parameters(solver)


@pytest.mark.parametrize("make", [fully_convolutional, siamese, recurrent])
def test_it_learns_in_every_mode(
    make: Callable[[], tuple[pb.NetParameter, Inputs]],
) -> None:
    net, inputs = make()
    plain, weights = train(net, inputs, "mode: NONE", 40)
    assert plain[-1] < 0.5 * plain[0]
    _, exact = train(net, inputs, "mode: LOSSLESS", 40)
    assert all(np.array_equal(a, b) for a, b in zip(weights, exact))
    adaptive, _ = train(net, inputs, "mode: ADAPTIVE", 40)
    assert adaptive[0] == plain[0]
    assert adaptive[-1] < 0.6 * adaptive[0]


def test_shared_weights_are_one() -> None:
    net, _ = siamese()
    solver = make_solver(net)
    left, right = solver.net.params["conv_left"][0], solver.net.params["conv_right"][0]
    left.data[...] = 3
    assert np.all(right.data == 3)
