"""Writes the prototxt files of the nets that are described in Python.

    python models/generate.py [NAME ...]

A folder's net.py says of its net: NAME, CROP (side of the input in pixels), TRAIN_BATCH, VAL_BATCH,
and body(n, data, label), which adds the layers to a NetSpec and returns the scores of the classes;
label is None for deploy. SOURCE and MEAN_FILE name its databases and mean, unless it is ImageNet.
This file adds what all nets share: data, loss and accuracy.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from google.protobuf import text_format

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2 as pb

MODELS = Path(__file__).resolve().parent
DEPLOY_BATCH = 10
MEAN = [104, 117, 123]  # of ImageNet: blue, green, red
SOURCE = "examples/imagenet/ilsvrc12_{split}_lmdb"


def described() -> list[str]:
    """Return the names of the folders that have a net.py."""
    return sorted(path.parent.name for path in MODELS.glob("*/net.py"))


def load(name: str) -> ModuleType:
    """Return the module models/NAME/net.py."""
    spec = importlib.util.spec_from_file_location(f"models_{name}", MODELS / name / "net.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train_val(net: ModuleType) -> str:
    """Return the text of train_val.prototxt."""
    n = caffe.NetSpec()
    n.data, n.label = _data(net, "train", net.TRAIN_BATCH, mirror=True)
    scores = net.body(n, n.data, n.label)
    n.loss = L.SoftmaxWithLoss(scores, n.label)
    test = {"phase": pb.TEST}
    n.accuracy = L.Accuracy(scores, n.label, include=test)
    n.accuracy_top5 = L.Accuracy(scores, n.label, include=test, accuracy_param={"top_k": 5})
    message = n.to_proto()
    validation = caffe.NetSpec()
    validation.data, validation.label = _data(net, "val", net.VAL_BATCH)
    message.layer.insert(1, validation.to_proto().layer[0])
    return _text(net, message, f"{net.CROP}x{net.CROP} BGR crops of 256x256 images.")


def deploy(net: ModuleType) -> str:
    """Return the text of deploy.prototxt."""
    n = caffe.NetSpec()
    n.data = L.Input(shape={"dim": [DEPLOY_BATCH, 3, net.CROP, net.CROP]})
    scores = net.body(n, n.data, None)
    n.prob = L.Softmax(scores)
    comment = f"{DEPLOY_BATCH} {net.CROP}x{net.CROP} BGR images at a time, mean subtracted."
    return _text(net, n.to_proto(), comment)


def _data(net: ModuleType, split: str, batch: int, mirror: bool = False) -> Any:
    mean_file = getattr(net, "MEAN_FILE", "")
    mean = {"mean_file": mean_file} if mean_file else {"mean_value": MEAN}
    return L.Data(
        ntop=2,
        include={"phase": pb.TRAIN if split == "train" else pb.TEST},
        transform_param={"mirror": mirror, "crop_size": net.CROP, **mean},
        source=getattr(net, "SOURCE", SOURCE).format(split=split),
        batch_size=batch,
        backend=P.Data.LMDB,
    )


def _text(net: ModuleType, message: pb.NetParameter, comment: str) -> str:
    message.name = net.NAME
    head = f"# {net.NAME}: {comment}\n# Written by models/generate.py from net.py; change that.\n"
    return head + text_format.MessageToString(message)


def main() -> None:
    """Write the files of the named nets, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*described(), []], default=[])
    for name in parser.parse_args().names or described():
        net = load(name)
        (MODELS / name / "train_val.prototxt").write_text(train_val(net))
        (MODELS / name / "deploy.prototxt").write_text(deploy(net))
        print(MODELS / name)


if __name__ == "__main__":
    main()
