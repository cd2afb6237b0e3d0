"""VGG-16, configuration D of Simonyan and Zisserman (2015), with the names of their Caffe model."""

from __future__ import annotations

from typing import Any

from caffe import layers as L
from caffe import params as P

NAME = "VGG16"
CROP = 224
TRAIN_BATCH = 64
VAL_BATCH = 25

PIXEL_STD = 58  # of photographs, from 0 to 255: the first layer's weights bring them to about 1

LEARN = [{"lr_mult": 1, "decay_mult": 1}, {"lr_mult": 2, "decay_mult": 0}]
#: What msra gives 27 inputs, over the pixels' spread.
FIRST = {"type": "gaussian", "std": round((2 / 27) ** 0.5 / PIXEL_STD, 4)}
#: Channels of the convolutions of each stage; a stage ends with pooling.
STAGES = [[64, 64], [128, 128], [256, 256, 256], [512, 512, 512], [512, 512, 512]]


def body(n: Any, data: Any, label: Any) -> Any:
    """Add the layers; returns the scores of 1000 classes."""
    top = data
    for stage, channels in enumerate(STAGES, 1):
        for i, outputs in enumerate(channels, 1):
            top = L.Convolution(
                top,
                param=LEARN,
                num_output=outputs,
                kernel_size=3,
                pad=1,
                weight_filler=FIRST if top is data else {"type": "msra"},
            )
            n[f"conv{stage}_{i}"] = top
            n[f"relu{stage}_{i}"] = L.ReLU(top, in_place=True)
        top = L.Pooling(top, pool=P.Pooling.MAX, kernel_size=2, stride=2)
        n[f"pool{stage}"] = top
    for i in (6, 7):
        top = dense(top, 4096)
        n[f"fc{i}"] = top
        n[f"relu{i}"] = L.ReLU(top, in_place=True)
        n[f"drop{i}"] = L.Dropout(top, in_place=True, dropout_ratio=0.5)
    n.fc8 = dense(top, 1000)
    return n.fc8


def dense(bottom: Any, outputs: int) -> Any:
    """Return a fully connected layer."""
    return L.InnerProduct(
        bottom,
        param=LEARN,
        num_output=outputs,
        weight_filler={"type": "gaussian", "std": 0.01},
    )
