"""The benchmarks' PyTorch nets against ours: same loss and gradients from the same weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from nets import model

import caffe
from caffe.proto import caffe_pb2 as pb

torch = pytest.importorskip("torch", reason="torch is not installed")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from torch_net import TorchNet  # noqa: E402 - the folder of the benchmarks is no package

SHAPES = {
    "fashion_cnn": (4, 1, 28, 28),
    "bvlc_reference_caffenet": (2, 3, 67, 67),
    "vgg16": (2, 3, 64, 64),
    "bvlc_googlenet": (2, 3, 224, 224),
    "resnet18": (4, 3, 64, 64),
    "resnet50": (8, 3, 96, 96),
    "efficientnet_b0": (4, 3, 64, 64),
}


def without_dropout(param: pb.NetParameter) -> pb.NetParameter:
    for layer in param.layer:
        if layer.type == "Dropout":
            layer.dropout_param.dropout_ratio = 0
    return param


@pytest.mark.parametrize("name", SHAPES)
def test_loss_and_gradients_are_ours(name: str) -> None:
    shape = SHAPES[name]
    param = without_dropout(model(name, shape))
    caffe.set_random_seed(1)  # rounding grows in deep fresh nets, with some weights beyond 3%
    ours = caffe.Net(param, caffe.TRAIN)
    caffe.set_random_seed(-1)
    theirs = TorchNet(param, shape[1:])
    theirs.load({name: [blob.data for blob in blobs] for name, blobs in ours.params.items()})
    rng = np.random.default_rng(0)
    images = rng.standard_normal(shape).astype(np.float32)
    labels = rng.integers(0, 10, shape[0])
    ours.forward(data=images, label=labels)
    ours.backward()
    for run in (theirs.forward, theirs.forward_checkpointed):
        theirs.zero_grad()
        loss = run(torch.from_numpy(images), torch.from_numpy(labels))
        loss.backward()
        assert loss.item() == pytest.approx(ours.loss(), rel=1e-4)
        compared = 0
        for step in theirs.steps:
            weight = getattr(step.run, "weight", None)
            if weight is None:
                continue
            expected = ours.params[step.name][0].diff
            got = weight.grad.numpy().reshape(expected.shape)
            error = np.sqrt(np.mean((got - expected) ** 2))
            assert error < 3e-2 * np.sqrt(np.mean(expected**2)) + 1e-7, step.name
            compared += 1
        assert compared >= 7


def test_checkpoints_divide_the_net() -> None:
    for name in ("resnet18", "bvlc_googlenet", "efficientnet_b0"):
        shape = SHAPES[name]
        net = TorchNet(model(name, shape), shape[1:])
        assert 3 <= len(net.cuts) < len(net.steps) / 3


def test_layers_that_cannot_be_translated_are_named() -> None:
    param = model("lenet", (2, 1, 28, 28))
    param.layer.add(name="odd", type="TanH", bottom=["ip2"], top=["odd"])
    with pytest.raises(ValueError, match="'odd': type TanH has no PyTorch module"):
        TorchNet(param, (1, 28, 28))
