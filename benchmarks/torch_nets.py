"""The benchmarks' nets in PyTorch, layer for layer as in models/. Needs torch."""

from __future__ import annotations

from torch import nn


def caffenet() -> nn.Module:
    """Return CaffeNet without softmax."""

    def norm() -> nn.Module:
        return nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1)

    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        norm(),
        nn.Conv2d(96, 256, 5, padding=2, groups=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        norm(),
        nn.Conv2d(256, 384, 3, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(384, 384, 3, padding=1, groups=2),
        nn.ReLU(inplace=True),
        nn.Conv2d(384, 256, 3, padding=1, groups=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        nn.Flatten(),
        nn.Linear(256 * 6 * 6, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(4096, 4096),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(4096, 1000),
    )


def fashion_cnn() -> nn.Module:
    """Return FashionCNN without softmax."""
    layers: list[nn.Module] = []
    channels = 1
    for outputs, pool in (
        (16, False),
        (16, True),
        (32, False),
        (32, True),
        (64, False),
        (64, False),
    ):
        layers += [
            nn.Conv2d(channels, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ]
        if pool:
            layers.append(nn.MaxPool2d(2, 2))
        channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


NETS = {"bvlc_reference_caffenet": caffenet, "fashion_cnn": fashion_cnn}
