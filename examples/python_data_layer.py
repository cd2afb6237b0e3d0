"""A data layer in Python: images of discs and rings, drawn as they are needed.

    python examples/python_data_layer.py -iterations 200

The layer has no bottoms and two tops, data and label. Its options come as `param_str`, its random
numbers from `random_seed`, so that a run with a seed can be repeated. To read files instead, load
them in forward().
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import caffe
from caffe import layers as L
from caffe.proto import caffe_pb2 as pb

CLASSES = ("disc", "ring")


class Shapes(caffe.Layer):
    """Gray images with one shape of random size and place; its index in CLASSES is the label."""

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the options; ValueError for bottoms, or tops that are not two."""
        if bottom or len(top) != 2:
            raise ValueError("takes no bottoms, and has the tops data and label")
        options = json.loads(self.param_str)
        self.batch, self.side = options["batch_size"], options["side"]
        self.rng = np.random.default_rng(self.random_seed)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Say how large a batch is; runs before each forward()."""
        top[0].reshape(self.batch, 1, self.side, self.side)
        top[1].reshape(self.batch)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Draw a batch."""
        labels = self.rng.integers(0, len(CLASSES), self.batch)
        for image, label in zip(top[0].data, labels):
            image[0] = self._draw(label)
        top[1].data[...] = labels

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""

    def _draw(self, label: int) -> np.ndarray:
        radius = self.rng.uniform(3, self.side / 3)
        y, x = self.rng.uniform(radius, self.side - radius, 2)
        places = np.arange(self.side)
        distance = np.hypot(places[:, np.newaxis] - y, places - x)
        inner = radius / 2 * label
        noise = self.rng.normal(0, 0.1, distance.shape)
        return ((inner <= distance) & (distance <= radius)) + noise


def net(batch_size: int, side: int) -> pb.NetParameter:
    """Return a small classifier of the shapes."""
    xavier = dict(type="xavier")
    n = caffe.NetSpec()
    n.data, n.label = L.Python(
        module=Shapes.__module__,
        layer=Shapes.__name__,
        param_str=json.dumps(dict(batch_size=batch_size, side=side)),
        ntop=2,
    )
    n.conv1 = L.Convolution(n.data, num_output=8, kernel_size=5, stride=2, weight_filler=xavier)
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.conv2 = L.Convolution(n.relu1, num_output=16, kernel_size=3, stride=2, weight_filler=xavier)
    n.relu2 = L.ReLU(n.conv2, in_place=True)
    n.score = L.InnerProduct(n.relu2, num_output=len(CLASSES), weight_filler=xavier)
    n.loss = L.SoftmaxWithLoss(n.score, n.label)
    n.accuracy = L.Accuracy(n.score, n.label)
    return n.to_proto()


def main(words: Sequence[str] | None = None) -> float:
    """Train; returns the accuracy on shapes that training has not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-iterations", type=int, default=200)
    parser.add_argument("-batch_size", type=int, default=32)
    parser.add_argument("-side", type=int, default=24, help="height and width of the images")
    given = parser.parse_args(words)

    param = pb.SolverParameter(
        type="Adam",
        base_lr=2e-3,
        momentum=0.9,
        lr_policy="fixed",
        snapshot_after_train=False,
        solver_mode=pb.SolverParameter.CPU,
        random_seed=1,
    )
    param.net_param.CopyFrom(net(given.batch_size, given.side))
    solver = caffe.get_solver(param)
    solver.step(given.iterations)

    test = caffe.Net(net(100, given.side), caffe.TEST)
    solver.share_weights(test)
    accuracy = float(np.mean([float(test.forward()["accuracy"]) for _ in range(5)]))
    print(f"accuracy after {solver.iter} iterations: {accuracy:.1%}")
    return accuracy


if __name__ == "__main__":
    main()
