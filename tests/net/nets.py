"""Nets of the models folder with inputs of a test's own, and small solvers around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from google.protobuf import text_format

from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_net
from caffe.solver import Solver
from caffe.solver_types import get_solver

MODELS = Path(__file__).resolve().parents[2] / "models"
CLASSES = 10


def with_input(net: pb.NetParameter, shape: tuple[int, ...]) -> pb.NetParameter:
    """The net with Input layers `data` and `label` in place of its data layers, and no Accuracy."""
    result = pb.NetParameter(name=net.name)
    for name, dims in (("data", shape), ("label", shape[:1])):
        layer = result.layer.add(name=name, type="Input", top=[name])
        layer.input_param.shape.add(dim=dims)
    for layer in net.layer:
        if layer.type not in ("Data", "Accuracy"):
            result.layer.add().CopyFrom(layer)
    return result


def model(name: str, shape: tuple[int, ...]) -> pb.NetParameter:
    return with_input(read_net(MODELS / name / "train_val.prototxt"), shape)


def small_models() -> dict[str, tuple[pb.NetParameter, tuple[int, ...]]]:
    """Every model with a small batch; CaffeNet with the smallest image that fits it."""
    shapes = {
        "lenet": (8, 1, 28, 28),
        "fashion_cnn": (8, 1, 28, 28),
        "bvlc_reference_caffenet": (4, 3, 67, 67),
    }
    return {name: (model(name, shape), shape) for name, shape in shapes.items()}


def make_solver(net: pb.NetParameter, text: str = "", compression: str = "mode: NONE") -> Solver:
    """An SGD solver of `net` that is quiet and writes nothing; `text` overrides its fields."""
    param = pb.SolverParameter(
        base_lr=0.01,
        lr_policy="fixed",
        momentum=0.9,
        max_iter=100,
        random_seed=7,
        snapshot_after_train=False,
        solver_mode=pb.SolverParameter.CPU,
    )
    param.net_param.CopyFrom(net)
    text_format.Merge(f"compression_param {{ display: 0 {compression} }}", param)
    text_format.Merge(text, param)
    return get_solver(param)


def batches(
    shape: tuple[int, ...], count: int, seed: int = 0, classes: int = CLASSES
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images of smooth noise and labels."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        images = rng.standard_normal(shape).astype(np.float32)
        images = (images + np.roll(images, 1, -1) + np.roll(images, 1, -2)) / 3
        result.append((images, rng.integers(0, classes, shape[0]).astype(np.float32)))
    return result


def train(solver: Solver, data: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """One step a batch; returns the losses."""
    losses = []
    for images, labels in data:
        solver.net.blobs["data"].data[...] = images
        solver.net.blobs["label"].data[...] = labels
        solver.step(1)
        losses.append(solver.loss_window[-1])
    return losses


def parameters(solver: Solver) -> list[np.ndarray]:
    return [blob.parameter.data.numpy().copy() for blob in solver.net.learned]
