"""A small net for the tests of this folder, with room for one layer in its middle."""

from __future__ import annotations

import numpy as np

SHAPE = (4, 8, 8, 8)
_CONVOLUTION = (
    'convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } }'
)


def net_text(middle: str = 'type: "ReLU"', options: str = "") -> str:
    """data, c1, m (the layer `middle`), c2 (with `options`), ip, loss."""
    return f"""
layer {{ name: "data" type: "Input" top: "data"
  input_param {{ shape {{ dim: 4 dim: 8 dim: 8 dim: 8 }} }} }}
layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: 4 }} }} }}
layer {{ name: "c1" type: "Convolution" bottom: "data" top: "c1" {_CONVOLUTION} }}
layer {{ name: "m" bottom: "c1" top: "m" {middle} }}
layer {{ name: "c2" type: "Convolution" bottom: "m" top: "c2" {_CONVOLUTION} {options} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "c2" top: "ip"
  inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""


def fill(net, batch: int = 4) -> None:
    """Give the inputs a batch of this size."""
    rng = np.random.default_rng(batch)
    net.blobs["data"].reshape(batch, *SHAPE[1:])
    net.blobs["label"].reshape(batch)
    net.blobs["data"].data[...] = rng.standard_normal((batch, *SHAPE[1:]))
    net.blobs["label"].data[...] = rng.integers(0, 10, batch)
