"""ResNet-18 (He and others, 2016)."""

from __future__ import annotations

from typing import Any

from resnet import basic, resnet

NAME = "ResNet-18"
CROP = 224
TRAIN_BATCH = 64
VAL_BATCH = 25


def body(n: Any, data: Any, label: Any) -> Any:
    """Add the layers; returns the scores of 1000 classes."""
    return resnet(n, data, basic, expansion=1, blocks=[2, 2, 2, 2])
