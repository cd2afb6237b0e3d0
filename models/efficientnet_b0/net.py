"""EfficientNet-B0 (Tan and Le, 2019): depthwise convolutions, Swish, squeeze and excitation.

Padding is the same on both sides, as Caffe has it. Stochastic depth, which drops whole branches at
random, is left out.
"""

from __future__ import annotations

from typing import Any

from caffe import layers as L
from caffe import params as P

NAME = "EfficientNet-B0"
CROP = 224
TRAIN_BATCH = 32
VAL_BATCH = 25

STEM, HEAD = 32, 1280
#: Of each stage: expansion, kernel, stride of the first block, output channels, blocks.
STAGES = [
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
]


def conv(n: Any, name: str, bottom: Any, outputs: int, size: int, **options: Any) -> Any:
    """Add a convolution with its normalisation and scale."""
    n[name] = L.Convolution(
        bottom,
        num_output=outputs,
        kernel_size=size,
        pad=size // 2,
        bias_term=False,
        weight_filler={"type": "msra", "variance_norm": P.Filler.FAN_OUT},
        **options,
    )
    n[f"{name}_bn"] = L.BatchNorm(n[name], in_place=True)
    n[f"{name}_scale"] = L.Scale(n[name], in_place=True, bias_term=True)
    return n[name]


def swish(n: Any, name: str, bottom: Any) -> Any:
    """Add a Swish."""
    n[name] = L.Swish(bottom, in_place=True)
    return bottom


def excite(n: Any, name: str, bottom: Any, channels: int, squeezed: int) -> Any:
    """Scale each channel by what its mean and those of the others say (Hu and others, 2018)."""
    fill = {"weight_filler": {"type": "xavier"}}
    pool = n[f"{name}_pool"] = L.Pooling(bottom, pool=P.Pooling.AVE, global_pooling=True)
    reduce = n[f"{name}_reduce"] = L.InnerProduct(pool, num_output=squeezed, **fill)
    swish(n, f"{name}_swish", reduce)
    expand = n[f"{name}_expand"] = L.InnerProduct(reduce, num_output=channels, **fill)
    n[f"{name}_sigmoid"] = L.Sigmoid(expand, in_place=True)
    n[name] = L.Scale(bottom, expand, axis=0)
    return n[name]


def block(
    n: Any,
    name: str,
    bottom: Any,
    inputs: int,
    outputs: int,
    expansion: int,
    size: int,
    stride: int,
) -> Any:
    """Add an inverted residual block."""
    channels = inputs * expansion
    top = bottom
    if expansion > 1:
        top = swish(n, f"{name}_expand_swish", conv(n, f"{name}_expand", top, channels, 1))
    top = conv(n, f"{name}_depthwise", top, channels, size, stride=stride, group=channels)
    top = swish(n, f"{name}_depthwise_swish", top)
    top = excite(n, f"{name}_excite", top, channels, max(inputs // 4, 1))
    top = conv(n, f"{name}_project", top, outputs, 1)
    if stride > 1 or inputs != outputs:
        return top
    n[f"{name}_sum"] = L.Eltwise(bottom, top)
    return n[f"{name}_sum"]


def body(n: Any, data: Any, label: Any) -> Any:
    """Add the layers; returns the scores of 1000 classes."""
    top = swish(n, "stem_swish", conv(n, "stem", data, STEM, 3, stride=2))
    inputs = STEM
    for stage, (expansion, size, stride, outputs, blocks) in enumerate(STAGES, 1):
        for i in range(blocks):
            first = i == 0
            name = f"block{stage}_{i + 1}"
            top = block(n, name, top, inputs, outputs, expansion, size, stride if first else 1)
            inputs = outputs
    top = swish(n, "head_swish", conv(n, "head", top, HEAD, 1))
    n.pool = L.Pooling(top, pool=P.Pooling.AVE, global_pooling=True)
    n.drop = L.Dropout(n.pool, in_place=True, dropout_ratio=0.2)
    n.fc = L.InnerProduct(n.pool, num_output=1000, weight_filler={"type": "xavier"})
    return n.fc
