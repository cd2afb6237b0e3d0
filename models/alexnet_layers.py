"""The layers of AlexNet and CaffeNet, for the net.py files of such nets."""

from __future__ import annotations

from typing import Any

from caffe import layers as L
from caffe import params as P

#: Max pooling of 3x3 at every second place.
POOL = {"pool": P.Pooling.MAX, "kernel_size": 3, "stride": 2}
#: Weights, then biases: twice the rate, no decay.
LEARN = [{"lr_mult": 1, "decay_mult": 1}, {"lr_mult": 2, "decay_mult": 0}]


def conv(bottom: Any, bias: float, **options: Any) -> Any:
    """Return a convolution with AlexNet's fillers."""
    return L.Convolution(
        bottom,
        param=LEARN,
        weight_filler={"type": "gaussian", "std": 0.01},
        bias_filler={"type": "constant", "value": bias},
        **options,
    )


def dense(bottom: Any, outputs: int, std: float, bias: float) -> Any:
    """Return a fully connected layer with AlexNet's fillers."""
    return L.InnerProduct(
        bottom,
        param=LEARN,
        num_output=outputs,
        weight_filler={"type": "gaussian", "std": std},
        bias_filler={"type": "constant", "value": bias},
    )


def norm(bottom: Any) -> Any:
    """Return the local response normalisation of AlexNet."""
    return L.LRN(bottom, local_size=5, alpha=1e-4, beta=0.75)
