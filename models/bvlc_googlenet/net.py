"""GoogLeNet (Szegedy and others, 2015), with the names of BVLC's model."""

from __future__ import annotations

from typing import Any

from caffe import layers as L
from caffe import params as P

NAME = "GoogLeNet"
CROP = 224
TRAIN_BATCH = 32
VAL_BATCH = 50

LEARN = [{"lr_mult": 1, "decay_mult": 1}, {"lr_mult": 2, "decay_mult": 0}]
MAX = {"pool": P.Pooling.MAX, "kernel_size": 3}
#: Name: channels of 1x1; of 3x3 and 5x5, each after its reduction; of the projected pooling.
INCEPTIONS = {
    "3a": (64, (96, 128), (16, 32), 32),
    "3b": (128, (128, 192), (32, 96), 64),
    "4a": (192, (96, 208), (16, 48), 64),
    "4b": (160, (112, 224), (24, 64), 64),
    "4c": (128, (128, 256), (24, 64), 64),
    "4d": (112, (144, 288), (32, 64), 64),
    "4e": (256, (160, 320), (32, 128), 128),
    "5a": (256, (160, 320), (32, 128), 128),
    "5b": (384, (192, 384), (48, 128), 128),
}
#: Pooling before these; the losses of training after these.
POOLED = {"4a": "pool3/3x3_s2", "5a": "pool4/3x3_s2"}
AUXILIARY = {"4a": "loss1", "4d": "loss2"}


def conv(n: Any, name: str, bottom: Any, outputs: int, size: int, **options: Any) -> Any:
    """Add a convolution and its ReLU."""
    n[name] = L.Convolution(
        bottom,
        param=LEARN,
        num_output=outputs,
        kernel_size=size,
        weight_filler={"type": "xavier"},
        bias_filler={"type": "constant", "value": 0.2},
        **options,
    )
    head, _, tail = name.rpartition("/")
    n[f"{head}/relu_{tail}"] = L.ReLU(n[name], in_place=True)
    return n[name]


def inception(n: Any, name: str, bottom: Any) -> Any:
    """Add the four branches and join them."""
    one, (reduce3, three), (reduce5, five), projected = INCEPTIONS[name]
    at = f"inception_{name}"
    a = conv(n, f"{at}/1x1", bottom, one, 1)
    b = conv(n, f"{at}/3x3_reduce", bottom, reduce3, 1)
    b = conv(n, f"{at}/3x3", b, three, 3, pad=1)
    c = conv(n, f"{at}/5x5_reduce", bottom, reduce5, 1)
    c = conv(n, f"{at}/5x5", c, five, 5, pad=2)
    n[f"{at}/pool"] = L.Pooling(bottom, stride=1, pad=1, **MAX)
    d = conv(n, f"{at}/pool_proj", n[f"{at}/pool"], projected, 1)
    n[f"{at}/output"] = L.Concat(a, b, c, d)
    return n[f"{at}/output"]


def auxiliary(n: Any, name: str, bottom: Any, label: Any) -> None:
    """Add a classifier in the middle, which only training uses."""
    pool = L.Pooling(bottom, pool=P.Pooling.AVE, kernel_size=5, stride=3)
    n[f"{name}/ave_pool"] = pool
    top = conv(n, f"{name}/conv", pool, 128, 1)
    n[f"{name}/fc"] = dense(top, 1024, 0.2)
    n[f"{name}/relu_fc"] = L.ReLU(n[f"{name}/fc"], in_place=True)
    n[f"{name}/drop_fc"] = L.Dropout(n[f"{name}/fc"], in_place=True, dropout_ratio=0.7)
    n[f"{name}/classifier"] = dense(n[f"{name}/fc"], 1000, 0)
    n[f"{name}/loss"] = L.SoftmaxWithLoss(n[f"{name}/classifier"], label, loss_weight=0.3)


def dense(bottom: Any, outputs: int, bias: float) -> Any:
    """Return a fully connected layer."""
    return L.InnerProduct(
        bottom,
        param=LEARN,
        num_output=outputs,
        weight_filler={"type": "xavier"},
        bias_filler={"type": "constant", "value": bias},
    )


def body(n: Any, data: Any, label: Any) -> Any:
    """Add the layers; returns the scores of 1000 classes."""
    top = conv(n, "conv1/7x7_s2", data, 64, 7, pad=3, stride=2)
    n["pool1/3x3_s2"] = L.Pooling(top, stride=2, **MAX)
    n["pool1/norm1"] = L.LRN(n["pool1/3x3_s2"], local_size=5, alpha=1e-4, beta=0.75)
    top = conv(n, "conv2/3x3_reduce", n["pool1/norm1"], 64, 1)
    top = conv(n, "conv2/3x3", top, 192, 3, pad=1)
    n["conv2/norm2"] = L.LRN(top, local_size=5, alpha=1e-4, beta=0.75)
    top = n["pool2/3x3_s2"] = L.Pooling(n["conv2/norm2"], stride=2, **MAX)
    for name in INCEPTIONS:
        if name in POOLED:
            top = n[POOLED[name]] = L.Pooling(top, stride=2, **MAX)
        top = inception(n, name, top)
        if name in AUXILIARY and label is not None:
            auxiliary(n, AUXILIARY[name], top, label)
    n["pool5/7x7_s1"] = L.Pooling(top, pool=P.Pooling.AVE, kernel_size=7, stride=1)
    pooled = n["pool5/7x7_s1"]
    n["pool5/drop_7x7_s1"] = L.Dropout(pooled, in_place=True, dropout_ratio=0.4)
    n["loss3/classifier"] = dense(pooled, 1000, 0)
    return n["loss3/classifier"]
