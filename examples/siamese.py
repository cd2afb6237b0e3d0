"""A siamese net: images of one class come to lie close together, others apart.

    caffe prepare fashion-mnist -out data/fashion_mnist
    python examples/siamese.py -iterations 1000

Both images of a pair go through the same layers: each parameter has a name, and layers whose
parameters have the same name share one blob. ContrastiveLoss pulls the features of a pair of one
class together, and pushes others at least a margin apart. The pairs come through a MemoryData layer
as images with twice the channels, which Slice takes apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from fashion_arrays import read_both

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2 as pb

BATCH = 100
MARGIN = 1.0


def branch(n: caffe.NetSpec, image: L.Layer, suffix: str, features: int) -> L.Layer:
    """Add the layers of one image, named with a suffix; returns their features."""
    xavier = dict(type="xavier")

    def shared(name: str) -> list[dict[str, str]]:
        return [dict(name=f"{name}_w"), dict(name=f"{name}_b")]

    top = image
    for name, outputs in (("conv1", 16), ("conv2", 32)):
        top = n[name + suffix] = L.Convolution(
            top, kernel_size=5, num_output=outputs, weight_filler=xavier, param=shared(name)
        )
        top = n[f"relu_{name}{suffix}"] = L.ReLU(top, in_place=True)
        top = n[f"pool_{name}{suffix}"] = L.Pooling(
            top, kernel_size=2, stride=2, pool=P.Pooling.MAX
        )
    for name, outputs in (("fc", 64), ("feature", features)):
        top = n[name + suffix] = L.InnerProduct(
            top, num_output=outputs, weight_filler=xavier, param=shared(name)
        )
        if name == "fc":
            top = n[f"relu_{name}{suffix}"] = L.ReLU(top, in_place=True)
    return top


def siamese(shape: Sequence[int], features: int) -> pb.NetParameter:
    """Return the net of pairs of images of a shape (channels, height, width)."""
    channels, height, width = shape
    n = caffe.NetSpec()
    n.pair, n.alike = L.MemoryData(
        batch_size=BATCH, channels=2 * channels, height=height, width=width, ntop=2
    )
    n.first, n.second = L.Slice(n.pair, axis=1, ntop=2)
    n.loss = L.ContrastiveLoss(
        branch(n, n.first, "", features),
        branch(n, n.second, "_second", features),
        n.alike,
        margin=MARGIN,
    )
    return n.to_proto()


def pairs(
    images: np.ndarray, labels: np.ndarray, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs, half of them of one class; returns the images, and 1 for pairs of one class."""
    rng = np.random.default_rng(seed)
    places = {label: np.flatnonzero(labels == label) for label in np.unique(labels)}
    first = rng.integers(0, len(images), count)
    second = rng.integers(0, len(images), count)
    for number in range(0, count, 2):
        second[number] = rng.choice(places[labels[first[number]]])
    alike = (labels[first] == labels[second]).astype(np.float32)
    return np.concatenate([images[first], images[second]], axis=1), alike


def distances(net: caffe.Net, count: int) -> np.ndarray:
    """Return the distances between the features of the first `count` pairs that `net` holds."""
    result = []
    for _ in range(count // BATCH):
        net.forward()
        apart = net.blobs["feature"].data - net.blobs["feature_second"].data
        result.append(np.sqrt((apart**2).sum(axis=1)))
    return np.concatenate(result)


def main(words: Sequence[str] | None = None) -> float:
    """Train; returns the share of unseen pairs that half the margin tells apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-data", default="data/fashion_mnist", help="folder of the LMDBs")
    parser.add_argument("-iterations", type=int, default=1000)
    parser.add_argument("-pairs", type=int, default=20000, help="pairs to learn from")
    parser.add_argument("-features", type=int, default=8, help="numbers that describe an image")
    given = parser.parse_args(words)

    train, test = read_both(given.data)
    param = pb.SolverParameter(
        base_lr=0.01,
        momentum=0.9,
        lr_policy="fixed",
        snapshot_after_train=False,
        solver_mode=pb.SolverParameter.CPU,
        random_seed=1,
    )
    param.net_param.CopyFrom(siamese(train[0].shape[1:], given.features))
    param.compression_param.mode = pb.CompressionParameter.ADAPTIVE
    param.compression_param.display = 0
    solver = caffe.get_solver(param)
    count = -(-given.pairs // BATCH) * BATCH
    solver.net.set_input_arrays(*pairs(*train, count, seed=1))
    solver.step(given.iterations)

    net = caffe.Net(param.net_param, caffe.TEST)
    solver.share_weights(net)
    images, alike = pairs(*test, 2000, seed=2)
    net.set_input_arrays(images, alike)
    apart = distances(net, len(alike))
    right = float(np.mean((apart < MARGIN / 2) == (alike == 1)))
    print(f"mean distance: {apart[alike == 1].mean():.2f} within a class, ", end="")
    print(f"{apart[alike == 0].mean():.2f} between classes")
    print(f"told apart by a distance of {MARGIN / 2:g}: {right:.1%} of {len(alike)} pairs")
    return right


if __name__ == "__main__":
    main()
