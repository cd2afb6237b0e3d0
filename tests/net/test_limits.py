"""Sizes at which Caffe fails: more than 2^31 elements, and a last pooling window without values."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import caffe


def make_net(tmp_path: Path, text: str) -> caffe.Net:
    path = tmp_path / "net.prototxt"
    path.write_text(text)
    return caffe.Net(str(path), caffe.TEST)


def source(*dims: int) -> str:
    shape = " ".join(f"dim: {size}" for size in dims)
    return f'layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ {shape} }} }} }}\n'


def test_more_than_2_to_the_31_elements_are_counted(tmp_path: Path) -> None:
    flatten = 'layer { name: "f" type: "Flatten" bottom: "x" top: "y" }\n'
    net = make_net(tmp_path, source(3, 2**16, 2**15) + flatten)
    assert net.blobs["x"].count == 3 * 2**31
    assert net.blobs["y"].shape == (3, 2**31)


@pytest.mark.parametrize("method", ["MAX", "AVE"])
def test_no_pooling_window_is_empty(tmp_path: Path, method: str) -> None:
    tried = 0
    for size, kernel, stride, pad in product((5, 6, 7), (1, 2, 3), (2, 3, 4), (0, 1)):
        if pad >= kernel:
            continue
        tried += 1
        pooling = (
            'layer { name: "p" type: "Pooling" bottom: "x" top: "y" pooling_param { '
            f"pool: {method} kernel_size: {kernel} stride: {stride} pad: {pad} }} }}\n"
        )
        net = make_net(tmp_path, source(1, 2, size, size) + pooling)
        net.blobs["x"].data[...] = -3
        values = net.forward()["y"]
        # A window over padding alone would give -FLT_MAX or NaN; AVE counts padding as zeros.
        assert np.all((values >= -3) & (values < 0))
        assert method == "AVE" or np.all(values == -3)
    assert tried == 45
