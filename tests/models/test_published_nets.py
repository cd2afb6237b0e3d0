"""The nets in models/: written by their scripts, as large as published, and able to train."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import caffe
from caffe import prototxt
from caffe.proto import caffe_pb2 as pb

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"

# Parameters that learn, from the papers' models (BatchNorm's statistics are not among them), and
# the shape of a blob in the middle for a batch of 10. caffenet_dogs has 880 classes fewer.
PUBLISHED = {
    "bvlc_alexnet": (60_965_224, "pool5", (10, 256, 6, 6)),
    "bvlc_reference_caffenet": (60_965_224, "pool5", (10, 256, 6, 6)),
    "caffenet_dogs": (57_359_864, "pool5", (10, 256, 6, 6)),
    "vgg16": (138_357_544, "pool5", (10, 512, 7, 7)),
    "bvlc_googlenet": (6_998_552, "inception_5b/output", (10, 1024, 7, 7)),
    "resnet18": (11_689_512, "res5b", (10, 512, 7, 7)),
    "resnet50": (25_557_032, "res5c", (10, 2048, 7, 7)),
    "efficientnet_b0": (5_288_548, "head", (10, 1280, 7, 7)),
}


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("models_generate", MODELS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(MODELS))  # where net.py files find resnet.py
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(MODELS))


def test_the_scripts_write_what_is_there(generate: ModuleType) -> None:
    assert len(generate.described()) == 7
    for name in generate.described():
        net = generate.load(name)
        assert (MODELS / name / "train_val.prototxt").read_text() == generate.train_val(net)
        assert (MODELS / name / "deploy.prototxt").read_text() == generate.deploy(net)


@pytest.mark.parametrize("name", PUBLISHED)
def test_size_as_published(name: str) -> None:
    net = caffe.Net(str(MODELS / name / "deploy.prototxt"), caffe.TEST)
    parameters, blob, shape = PUBLISHED[name]
    statistics = {
        layer.name
        for layer in prototxt.read_net(MODELS / name / "deploy.prototxt").layer
        if layer.type == "BatchNorm"
    }
    learning = [b for key, blobs in net.params.items() if key not in statistics for b in blobs]
    assert sum(int(np.prod(b.shape)) for b in learning) == parameters
    assert net.blobs[blob].shape == shape
    assert net.blobs["prob"].shape == (10, 120 if name == "caffenet_dogs" else 1000)


def made_up_data(net: pb.NetParameter, batch: int) -> None:
    """Replace the databases by random images, of which the nets read any number."""
    for layer in net.layer:
        if layer.type != "Data":
            continue
        crop = layer.transform_param.crop_size
        layer.type = "DummyData"
        layer.ClearField("data_param")
        layer.ClearField("transform_param")
        for dims, filler in (([batch, 3, crop, crop], "gaussian"), ([batch], "constant")):
            layer.dummy_data_param.shape.add().dim.extend(dims)
            layer.dummy_data_param.data_filler.add(type=filler, std=50, value=7)


@pytest.mark.parametrize("name", PUBLISHED)
def test_trains(name: str, tmp_path: Path) -> None:
    solver = prototxt.read_solver(MODELS / name / "solver.prototxt")
    net = prototxt.read_net(MODELS / name / "train_val.prototxt")
    made_up_data(net, batch=2)
    del net.layer[1]  # validation's data
    for layer in net.layer:
        layer.ClearField("include")
    solver.ClearField("net")
    solver.net_param.CopyFrom(net)
    for field in ("test_iter", "test_interval", "test_initialization"):
        solver.ClearField(field)
    solver.snapshot_prefix = str(tmp_path / "snapshot")
    solver.random_seed = 1
    path = tmp_path / "solver.prototxt"
    path.write_text(str(solver))
    trained = caffe.get_solver(str(path))
    first = next(iter(trained.net.params.values()))[0]
    before = first.data.copy()
    trained.step(1)
    assert np.isfinite(first.data).all()
    assert not np.array_equal(first.data, before)
    stored = trained.net.compression_report()
    assert stored and all(row.stored_bytes <= row.raw_bytes for row in stored)
