"""ResNets (He and others, 2016) for the net.py of each depth, with the names of Caffe models."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any, Callable

from caffe import layers as L
from caffe import params as P

CHANNELS = [64, 128, 256, 512]
Branch = Callable[[Any, str, Any, int, int], Any]


def conv(n: Any, name: str, bottom: Any, outputs: int, size: int, stride: int = 1) -> Any:
    """Add a convolution, its normalisation and its scale; `name` is "2a_branch1" or "conv1"."""
    first = name == "conv1"
    layer = name if first else f"res{name}"
    suffix = f"_{name}" if first else name
    n[layer] = L.Convolution(
        bottom,
        num_output=outputs,
        kernel_size=size,
        pad=size // 2,
        stride=stride,
        bias_term=False,
        weight_filler={"type": "msra"},
    )
    n[f"bn{suffix}"] = L.BatchNorm(n[layer], in_place=True)
    n[f"scale{suffix}"] = L.Scale(n[layer], in_place=True, bias_term=True)
    return n[layer]


def basic(n: Any, name: str, bottom: Any, channels: int, stride: int) -> Any:
    """Two 3x3 convolutions."""
    top = conv(n, f"{name}_branch2a", bottom, channels, 3, stride)
    n[f"res{name}_branch2a_relu"] = L.ReLU(top, in_place=True)
    return conv(n, f"{name}_branch2b", top, channels, 3)


def bottleneck(n: Any, name: str, bottom: Any, channels: int, stride: int) -> Any:
    """A 3x3 convolution between a reduction and an expansion by 4."""
    top = conv(n, f"{name}_branch2a", bottom, channels, 1, stride)
    n[f"res{name}_branch2a_relu"] = L.ReLU(top, in_place=True)
    top = conv(n, f"{name}_branch2b", top, channels, 3)
    n[f"res{name}_branch2b_relu"] = L.ReLU(top, in_place=True)
    return conv(n, f"{name}_branch2c", top, 4 * channels, 1)


def resnet(n: Any, data: Any, branch: Branch, expansion: int, blocks: list[int]) -> Any:
    """Add a ResNet; returns the scores of 1000 classes.

    Args:
        n: the NetSpec.
        data: images.
        branch: `basic` or `bottleneck`.
        expansion: output channels of a branch over its inner ones.
        blocks: how many blocks each of the four stages has.
    """
    top = conv(n, "conv1", data, 64, 7, 2)
    n.conv1_relu = L.ReLU(top, in_place=True)
    n.pool1 = L.Pooling(top, pool=P.Pooling.MAX, kernel_size=3, stride=2)
    top, inputs = n.pool1, 64
    for stage, (channels, count) in enumerate(zip(CHANNELS, blocks)):
        for block in range(count):
            name = f"{stage + 2}{ascii_lowercase[block]}"
            stride = 2 if stage > 0 and block == 0 else 1
            shortcut = top
            if block == 0 and (stride > 1 or inputs != expansion * channels):
                shortcut = conv(n, f"{name}_branch1", top, expansion * channels, 1, stride)
            inputs = expansion * channels
            n[f"res{name}"] = L.Eltwise(shortcut, branch(n, name, top, channels, stride))
            top = n[f"res{name}"]
            n[f"res{name}_relu"] = L.ReLU(top, in_place=True)
    n.pool5 = L.Pooling(top, pool=P.Pooling.AVE, global_pooling=True)
    n.fc1000 = L.InnerProduct(n.pool5, num_output=1000, weight_filler={"type": "xavier"})
    return n.fc1000
