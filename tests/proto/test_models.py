"""The nets that ship: readable, consistent with their solvers and with what they claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from caffe import prototxt
from caffe.proto import caffe_pb2

MODELS = Path(__file__).parents[2] / "models"
NAMES = sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir())


def learned(net):
    """The layers that learn, but for GoogLeNet's two classifiers that only training has."""
    return [
        layer
        for layer in net.layer
        if layer.type in ("Convolution", "InnerProduct")
        and not layer.name.startswith(("loss1/", "loss2/"))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_solver_compresses_and_names_its_own_net(name):
    solver = prototxt.read_solver(MODELS / name / "solver.prototxt")
    assert solver.compression_param.mode == caffe_pb2.CompressionParameter.ADAPTIVE
    assert solver.net == f"models/{name}/train_val.prototxt"
    assert solver.solver_mode == caffe_pb2.SolverParameter.CPU


@pytest.mark.parametrize("name", NAMES)
def test_deploy_has_the_layers_of_training(name):
    training = prototxt.read_net(MODELS / name / "train_val.prototxt")
    deploy = prototxt.read_net(MODELS / name / "deploy.prototxt")
    assert learned(training) == learned(deploy)
    assert deploy.layer[-1].type == "Softmax"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", ["train_val", "deploy"])
def test_every_bottom_has_been_made(name, file):
    made = set()
    for layer in prototxt.read_net(MODELS / name / f"{file}.prototxt").layer:
        assert set(layer.bottom) <= made, layer.name
        made |= set(layer.top)


def test_caffenet_convolutions():
    net = prototxt.read_net(MODELS / "bvlc_reference_caffenet" / "train_val.prototxt")
    shapes = {
        layer.name: (
            layer.convolution_param.num_output,
            layer.convolution_param.kernel_size[0],
            layer.convolution_param.group,
        )
        for layer in net.layer
        if layer.type == "Convolution"
    }
    assert shapes == {
        "conv1": (96, 11, 1),
        "conv2": (256, 5, 2),
        "conv3": (384, 3, 1),
        "conv4": (384, 3, 2),
        "conv5": (256, 3, 2),
    }
