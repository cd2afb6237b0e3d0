"""Which activations benchmarks/sz_activations.py writes."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import caffe
import sz_activations
from common import fed_net
from resnet18 import resnet18


def test_every_value_of_resnet18_is_a_blob() -> None:
    net = sz_activations.without_in_place(fed_net(resnet18(), "RandomBatch", "2 3 64 64"))
    tops = [top for layer in net.layer for top in layer.top]
    assert len(tops) == len(set(tops))
    kinds = Counter(kind for *_, kind in sz_activations.kept_blobs(net))
    # 17 convolutions in blocks and before, 3 shortcuts that read what another one reads; the
    # first one reads the image.
    assert kinds == {"bn_output": 20, "conv_input": 16, "ip_input": 1}


def test_blobs_are_those_that_layers_read() -> None:
    net = sz_activations.without_in_place(fed_net(resnet18(), "RandomBatch", "2 3 64 64"))
    blobs = {(layer, kind): blob for blob, layer, kind in sz_activations.kept_blobs(net)}
    shown = caffe.Net(net, phase=caffe.TRAIN)
    shown.forward()
    normalised = shown.blobs[blobs["scale_block2_1_conv1", "bn_output"]].data
    read = shown.blobs[blobs["block2_1_conv2", "conv_input"]].data
    assert normalised.min() < 0
    assert np.array_equal(np.maximum(normalised, 0), read)
    assert abs(normalised.mean()) < 1e-3  # the Scale still multiplies by 1
    assert abs(normalised.std() - 1) < 1e-2


def test_large_layers_are_cut() -> None:
    each = np.zeros((1 << 20,), np.float32)  # 4 MiB
    assert len(sz_activations.clipped(np.broadcast_to(each, (20, 1 << 20)))) == 8
    assert sz_activations.as_images(np.ones((3, 7), np.float32)).shape == (3, 1, 1, 7)
