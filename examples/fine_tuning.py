"""Fine-tuning: what a net learned on eight classes helps to tell two others apart.

    caffe prepare fashion-mnist -out data/fashion_mnist
    python examples/fine_tuning.py -classes 2,4 -images 100

A net learns all classes but the two, and is saved. A second one has another last layer, of another
name, so that copy_from() takes all weights but that layer's. That layer learns at ten times the
rate of the others (lr_mult). It sees few images, as does the third net, which starts from nothing.
In Fashion-MNIST, 2 and 4 are pullovers and coats, which are easily mistaken.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fashion_arrays import read_both

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2 as pb

BATCH = 20


def classifier(
    shape: Sequence[int], last: str, classes: int, tuned: bool = False
) -> pb.NetParameter:
    """Return a net for images of a shape (channels, height, width), whose last layer is `last`."""
    xavier = dict(type="xavier")
    n = caffe.NetSpec()
    n.data, n.label = L.MemoryData(
        batch_size=BATCH, channels=shape[0], height=shape[1], width=shape[2], ntop=2
    )
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=16, weight_filler=xavier)
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.pool1 = L.Pooling(n.relu1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(n.pool1, kernel_size=3, num_output=32, weight_filler=xavier)
    n.relu2 = L.ReLU(n.conv2, in_place=True)
    n.pool2 = L.Pooling(n.relu2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.fc1 = L.InnerProduct(n.pool2, num_output=64, weight_filler=xavier)
    n.relu3 = L.ReLU(n.fc1, in_place=True)
    rate = 10 if tuned else 1
    n[last] = L.InnerProduct(
        n.relu3,
        num_output=classes,
        weight_filler=xavier,
        param=[dict(lr_mult=rate), dict(lr_mult=2 * rate)],
    )
    n.loss = L.SoftmaxWithLoss(n[last], n.label)
    n.accuracy = L.Accuracy(n[last], n.label, include=dict(phase=caffe.TEST))
    return n.to_proto()


def train(
    net: pb.NetParameter,
    images: np.ndarray,
    labels: np.ndarray,
    iterations: int,
    rate: float,
    weights: Path | None = None,
) -> caffe.SGDSolver:
    """Train on arrays; with `weights`, starting from those of the layers of the same names."""
    param = pb.SolverParameter(
        base_lr=rate,
        momentum=0.9,
        weight_decay=5e-4,
        lr_policy="fixed",
        snapshot_after_train=False,
        solver_mode=pb.SolverParameter.CPU,
        random_seed=1,
    )
    param.net_param.CopyFrom(net)
    param.compression_param.mode = pb.CompressionParameter.ADAPTIVE
    param.compression_param.display = 0
    solver = caffe.get_solver(param)
    if weights:
        solver.net.copy_from(weights)
    solver.net.set_input_arrays(*whole_batches(images, labels))
    solver.step(iterations)
    return solver


def whole_batches(images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what set_input_arrays() takes: a multiple of the batch size, the rest left out."""
    count = len(images) // BATCH * BATCH
    return np.ascontiguousarray(images[:count]), labels[:count]


def accuracy(
    solver: caffe.SGDSolver, net: pb.NetParameter, images: np.ndarray, labels: np.ndarray
) -> float:
    """Return the share of images that a trained net gets right."""
    test = caffe.Net(net, caffe.TEST)
    solver.share_weights(test)
    images, labels = whole_batches(images, labels)
    test.set_input_arrays(images, labels)
    return float(np.mean([float(test.forward()["accuracy"]) for _ in range(len(images) // BATCH)]))


def main(words: Sequence[str] | None = None) -> tuple[float, float]:
    """Train the three nets; returns the accuracies of the fine-tuned one and of the fresh one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-data", default="data/fashion_mnist", help="folder of the LMDBs")
    parser.add_argument("-classes", default="2,4", help="the two to tell apart")
    parser.add_argument("-images", type=int, default=100, help="of both together, to learn from")
    parser.add_argument("-iterations", type=int, default=1500, help="on the other classes")
    parser.add_argument("-tuning", type=int, default=60, help="iterations on the two")
    given = parser.parse_args(words)

    new = [int(label) for label in given.classes.split(",")]
    (images, labels), (test_images, test_labels) = read_both(given.data)
    old = sorted(set(labels.astype(int)) - set(new))

    def of(
        classes: list[int], images: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        chosen = np.isin(labels, classes)
        return images[chosen], np.searchsorted(classes, labels[chosen]).astype(np.float32)

    shape = images.shape[1:]
    first = classifier(shape, "score", len(old))
    solver = train(first, *of(old, images, labels), given.iterations, 0.01)
    known = accuracy(solver, first, *of(old, test_images, test_labels))
    print(f"{len(old)} classes: accuracy {known:.1%}")
    few = [array[: given.images] for array in of(sorted(new), images, labels)]
    test = of(sorted(new), test_images, test_labels)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "first.caffemodel"
        solver.net.save(weights)
        tuned_net = classifier(shape, "score_of_two", len(new), tuned=True)
        tuned = train(tuned_net, *few, given.tuning, 0.003, weights)
    fresh_net = classifier(shape, "score_of_two", len(new))
    fresh = train(fresh_net, *few, given.tuning, 0.01)
    results = accuracy(tuned, tuned_net, *test), accuracy(fresh, fresh_net, *test)
    print(
        f"classes {given.classes} from {len(few[0])} images: accuracy {results[0]:.1%} fine-tuned, "
        f"{results[1]:.1%} from nothing"
    )
    return results


if __name__ == "__main__":
    main()
