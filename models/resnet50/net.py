"""ResNet-50 (He and others, 2016)."""

from __future__ import annotations

from typing import Any

from resnet import bottleneck, resnet

NAME = "ResNet-50"
CROP = 224
TRAIN_BATCH = 32
VAL_BATCH = 25


def body(n: Any, data: Any, label: Any) -> Any:
    """Add the layers; returns the scores of 1000 classes."""
    return resnet(n, data, bottleneck, expansion=4, blocks=[3, 4, 6, 3])
