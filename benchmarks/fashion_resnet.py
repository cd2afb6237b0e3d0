"""A ResNet of 20 layers for Fashion-MNIST, narrow enough to train in minutes (He and others, 2016).

A convolution, nine blocks of two in three stages of 8, 16 and 32 channels, and an InnerProduct. The
shortcut into a stage with other sides is a 1x1 convolution, normalised like all others.
"""

from __future__ import annotations

from typing import Any

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2 as pb

STAGES = (8, 16, 32)  # channels; each stage but the first halves the sides
BLOCKS = 3  # in each stage
TRAIN_BATCH = 64
TEST_BATCH = 100


def train_val() -> pb.NetParameter:
    """Return the net for training and testing on the databases of `caffe prepare`."""
    n = caffe.NetSpec()
    n.data, n.label = _data("train", TRAIN_BATCH, pb.TRAIN)
    top = _relu(n, "conv1", _normalised(n, "conv1", n.data, STAGES[0], 3, 1))
    inputs = STAGES[0]
    for stage, channels in enumerate(STAGES, 1):
        for block in range(1, BLOCKS + 1):
            name = f"res{stage}_{block}"
            stride = 2 if stage > 1 and block == 1 else 1
            shortcut = top
            if stride > 1 or inputs != channels:
                shortcut = _normalised(n, f"{name}_shortcut", top, channels, 1, stride)
            branch = _normalised(n, f"{name}_a", top, channels, 3, stride)
            branch = _normalised(n, f"{name}_b", _relu(n, f"{name}_a", branch), channels, 3, 1)
            n[name] = L.Eltwise(shortcut, branch)
            top = _relu(n, name, n[name])
            inputs = channels
    n.pool = L.Pooling(top, pool=P.Pooling.AVE, global_pooling=True)
    n.fc = L.InnerProduct(n.pool, num_output=10, weight_filler={"type": "xavier"})
    n.loss = L.SoftmaxWithLoss(n.fc, n.label)
    n.accuracy = L.Accuracy(n.fc, n.label, include={"phase": pb.TEST})
    net = n.to_proto()
    test = caffe.NetSpec()
    test.data, test.label = _data("test", TEST_BATCH, pb.TEST)
    net.layer.insert(1, test.to_proto().layer[0])
    net.name = "FashionResNet"
    return net


def _normalised(n: Any, name: str, bottom: Any, outputs: int, size: int, stride: int) -> Any:
    """Add a convolution with its normalisation and scale."""
    n[name] = L.Convolution(
        bottom,
        num_output=outputs,
        kernel_size=size,
        pad=size // 2,
        stride=stride,
        bias_term=False,
        weight_filler={"type": "msra"},
    )
    n[f"{name}_bn"] = L.BatchNorm(n[name], in_place=True, moving_average_fraction=0.95)
    n[f"{name}_scale"] = L.Scale(n[name], in_place=True, bias_term=True)
    return n[name]


def _relu(n: Any, name: str, bottom: Any) -> Any:
    n[f"{name}_relu"] = L.ReLU(bottom, in_place=True)
    return bottom


def _data(split: str, batch: int, phase: int) -> Any:
    return L.Data(
        ntop=2,
        include={"phase": phase},
        transform_param={"scale": 1 / 256, "mirror": phase == pb.TRAIN},
        source=f"data/fashion_mnist/fashion_mnist_{split}_lmdb",
        batch_size=batch,
        backend=P.Data.LMDB,
    )
