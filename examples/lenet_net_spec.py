"""LeNet described in Python, trained in a loop of one's own.

    caffe prepare fashion-mnist -out data/fashion_mnist
    python examples/lenet_net_spec.py -iterations 500

Every `-every` iterations the loop tests the net, and shows what the activations kept for backward
were compressed to.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2 as pb


def lenet(database: str, batch_size: int) -> pb.NetParameter:
    """Return LeNet on the images of an LMDB."""
    xavier = dict(type="xavier")
    n = caffe.NetSpec()
    n.data, n.label = L.Data(
        source=database,
        backend=P.Data.LMDB,
        batch_size=batch_size,
        transform_param=dict(scale=1 / 256),
        ntop=2,
    )
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=xavier)
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(n.pool1, kernel_size=5, num_output=50, weight_filler=xavier)
    n.pool2 = L.Pooling(n.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.fc1 = L.InnerProduct(n.pool2, num_output=500, weight_filler=xavier)
    n.relu1 = L.ReLU(n.fc1, in_place=True)
    n.score = L.InnerProduct(n.relu1, num_output=10, weight_filler=xavier)
    n.loss = L.SoftmaxWithLoss(n.score, n.label)
    n.accuracy = L.Accuracy(n.score, n.label, include=dict(phase=caffe.TEST))
    return n.to_proto()


def solver_of(train: str, test: str, batch_size: int) -> pb.SolverParameter:
    """Return a solver of LeNet, which compresses what backward reads."""
    param = pb.SolverParameter(
        base_lr=0.01,
        momentum=0.9,
        weight_decay=5e-4,
        lr_policy="inv",
        gamma=1e-4,
        power=0.75,
        test_iter=[1],
        test_interval=10**6,  # the loop tests
        snapshot_after_train=False,
        solver_mode=pb.SolverParameter.CPU,
        random_seed=1,
    )
    param.train_net_param.CopyFrom(lenet(train, batch_size))
    param.test_net_param.add().CopyFrom(lenet(test, 100))
    param.compression_param.mode = pb.CompressionParameter.ADAPTIVE
    param.compression_param.display = 0
    param.test_initialization = False
    return param


def main(words: Sequence[str] | None = None) -> float:
    """Train; returns the last accuracy on test images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-data", default="data/fashion_mnist", help="folder of the LMDBs")
    parser.add_argument("-iterations", type=int, default=500)
    parser.add_argument("-every", type=int, default=100, help="iterations between tests")
    parser.add_argument("-batch_size", type=int, default=64)
    parser.add_argument("-test_batches", type=int, default=10, help="of 100 images")
    parser.add_argument("-out", help=".caffemodel to write")
    given = parser.parse_args(words)

    train, test = (
        next(Path(given.data).glob(f"*_{part}_lmdb"), None) for part in ("train", "test")
    )
    if train is None or test is None:
        parser.error(f"no LMDBs in '{given.data}'; caffe prepare fashion-mnist makes some")
    solver = caffe.get_solver(solver_of(str(train), str(test), given.batch_size))
    accuracy = 0.0
    while solver.iter < given.iterations:
        solver.step(min(given.every, given.iterations - solver.iter))
        test_net = solver.test_nets[0]
        # float(): what forward() returns is the blob's own array, which the next pass overwrites.
        hits = [float(test_net.forward()["accuracy"]) for _ in range(given.test_batches)]
        accuracy = sum(hits) / given.test_batches
        print(f"iteration {solver.iter}: loss {solver.net.loss():.3f}, accuracy {accuracy:.1%}")
        for name, value in solver.compression.items():
            print(f"  {name:<8} {value.form:<8} {value.ratio:6.1f}x  bound {value.error_bound:.1e}")
    if given.out:
        solver.net.save(given.out)
    solver.close()
    return accuracy


if __name__ == "__main__":
    main()
