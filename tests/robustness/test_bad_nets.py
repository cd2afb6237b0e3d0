"""Nets that cannot be: one error that names layer, type, shapes and what would do."""

from __future__ import annotations

import numpy as np
import pytest
from small import SHAPE, fill, net_text

import caffe
from caffe.prototxt import parse_net

CASES = {
    'type: "Convolutoin"': r"layer 'm' \(Convolutoin\): unknown .* did you mean 'Convolution'",
    "": r"layer 'm' \(no type\): has no type",
    'type: "Input"': r"layer 'm' \(Input\): takes no bottoms, has 1",
    'type: "Convolution" convolution_param { num_output: 2 kernel_size: 9 }': (
        r"layer 'm' \(Convolution\): the kernel reaches over 9 positions, but bottom 0 \(4x8x8x8\)"
    ),
    'type: "Convolution" convolution_param { num_output: 2 kernel_size: 3 pad: 4294967295 }': (
        r"layer 'm' \(Convolution\): blob 'm' cannot have shape .*more than 2\^62 values"
    ),
    'type: "Pooling" pooling_param { kernel_size: 9 }': r"layer 'm' \(Pooling\): a kernel height",
    'type: "BatchNorm" batch_norm_param { moving_average_fraction: nan }': (
        r"layer 'm' \(BatchNorm\): moving_average_fraction is nan, needs to be from 0 to 1"
    ),
    'type: "ReLU" propagate_down: true propagate_down: true': (
        r"layer 'm' \(ReLU\): has 2 propagate_down, needs one for each of its 1 bottoms"
    ),
    'type: "Python" python_param { layer: "A" }': r"layer 'm' \(Python\): python_param needs",
}


@pytest.mark.parametrize("middle", CASES)
def test_bad_layer(middle: str) -> None:
    with pytest.raises(ValueError, match=CASES[middle]):
        caffe.Net(parse_net(net_text(middle)), caffe.TRAIN)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ('module: "no_such_module" layer: "A"', ImportError, "cannot import module"),
        ('module: "small" layer: "Fil"', AttributeError, "has no class 'Fil'; .* 'fill'"),
    ],
)
def test_python_layer_that_is_not_there(options: str, error: type, message: str) -> None:
    text = net_text(f'type: "Python" python_param {{ {options} }}')
    with pytest.raises(error, match=rf"layer 'm' \(Python\): .*{message}"):
        caffe.Net(parse_net(text), caffe.TRAIN)


def test_database_that_is_not_there_names_the_layer() -> None:
    text = (
        'layer { name: "d" type: "Data" top: "d" '
        'data_param { source: "/no/such" batch_size: 1 backend: LMDB } }'
    )
    with pytest.raises(FileNotFoundError, match=r"layer 'd' \(Data\): LMDB '/no/such'"):
        caffe.Net(parse_net(text), caffe.TRAIN)


def test_two_layers_of_one_name_that_learn() -> None:
    text = net_text().replace('name: "c2"', 'name: "c1"')
    with pytest.raises(ValueError, match=r"layer 'c1' \(Convolution\): an earlier layer"):
        caffe.Net(parse_net(text), caffe.TRAIN)


@pytest.mark.parametrize(
    ("dims", "line"),
    [
        ("dim: -1", r"cannot reshape to \(-1,\): sizes must not be negative"),
        ("dim: 4294967296 dim: 4294967296", "blob 'x' cannot have shape"),
    ],
)
def test_input_shape_that_cannot_be(dims: str, line: str) -> None:
    text = f'layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ {dims} }} }} }}'
    with pytest.raises(ValueError, match=r"layer 'x' \(Input\): " + line):
        caffe.Net(parse_net(text), caffe.TRAIN)


def test_more_than_the_machine_has_is_an_error_that_names_the_layer() -> None:
    text = (
        'layer { name: "d" type: "DummyData" top: "d" '
        "dummy_data_param { shape { dim: 1000000 dim: 1000000 } } }"
    )
    net = caffe.Net(parse_net(text), caffe.TRAIN)
    with pytest.raises(caffe.Error, match=r"layer 'd' \(DummyData\): out of memory: wanted 4000"):
        net.forward()


@pytest.mark.parametrize("phase", [7, -1])
def test_unknown_phase(phase: int) -> None:
    with pytest.raises(ValueError, match=r"needs to be caffe\.TRAIN or caffe\.TEST"):
        caffe.Net(parse_net(net_text()), phase)


def test_reshape_is_for_inputs() -> None:
    net = caffe.Net(parse_net(net_text()), caffe.TRAIN)
    with pytest.raises(ValueError, match=r"blob 'm' .*follows from layer 'm' \(ReLU\)"):
        net.blobs["m"].reshape(1, 2)
    with pytest.raises(ValueError, match="a size is negative"):
        net.blobs["data"].reshape(-1, 8, 8, 8)
    net.blobs["data"].reshape(SHAPE)
    fill(net)
    assert np.isfinite(net.forward()["loss"])


@pytest.mark.parametrize("mode", ["LOSSLESS", "FIXED", "ADAPTIVE"])
@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_users_net_holds_every_blob_whatever_its_layers_say(mode: str, phase: int) -> None:
    net = caffe.Net(parse_net(net_text(options=f"compression_param {{ mode: {mode} }}")), phase)
    fill(net)
    net.forward()
    net.backward()
    assert net.blobs["m"].data.any()
    assert net.blobs["m"].diff.any()
