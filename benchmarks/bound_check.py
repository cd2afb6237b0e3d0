"""What bounds do to the gradients of a trained net: caffe.check_bounds() over widths of the bound.

    python benchmarks/bound_check.py                       # FashionCNN; three minutes
    python benchmarks/bound_check.py -solver FILE -train 2000 -batches 8

Trains in mode NONE, then measures in mode FIXED, plain and dithered, on several batches. `dW ratio`
is the measured error of a weight gradient over that of the formula; `carried` is that error with
what reaches the layer from above, over the gradient itself; `dx` is the relative error of the
gradient at the lowest layer that computes one. All are root mean squares over the batches.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

import numpy as np

import caffe
from caffe import prototxt
from caffe.bound_check import BoundRow
from caffe.proto import caffe_pb2 as pb
from common import ROOT, heading, markdown

BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)  # in standard deviations of the non-zeros


def main() -> None:
    """Train, measure, print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-solver", default=str(ROOT / "models/fashion_cnn/solver.prototxt"))
    parser.add_argument("-train", type=int, default=938, help="iterations before measuring")
    parser.add_argument("-batches", type=int, default=4, help="batches to measure on")
    given = parser.parse_args()
    param = prototxt.read_solver(given.solver)
    for name in ("test_iter", "test_interval", "snapshot", "test_net", "test_net_param"):
        param.ClearField(name)
    param.snapshot_after_train = False
    param.random_seed = 1
    param.max_iter = given.train
    param.display = 0
    param.compression_param.CopyFrom(pb.CompressionParameter(display=0))
    trained = caffe.get_solver(param)
    trained.step(given.train)
    widths = [(dither, bound) for dither in (False, True) for bound in BOUNDS]
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "trained.caffemodel")
        trained.net.save(weights)
        trained.close()
        columns = [measure(param, weights, given.batches, *width) for width in widths]
    names = [f"{bound:g}{' dithered' if dither else ''}" for dither, bound in widths]
    ratios = [["dW ratio, bound in std", *names]]
    for index, first in enumerate(columns[0]):
        if not math.isnan(first.ratio):
            cells = [f"{rows[index].ratio:.2f}" for rows in columns]
            ratios.append([first.layer, *cells])
    lowest = next(i for i, row in enumerate(columns[0]) if not math.isnan(row.data_carried))
    whole = [["bound in std", "dW ratio", "carried / dW", "dx"]]
    for name, rows in zip(names, columns):
        predicted = [row for row in rows if not math.isnan(row.ratio)]
        middle = math.exp(np.mean([math.log(row.ratio) for row in predicted]))
        most = max(row.carried / row.weight_gradient for row in predicted)
        error = rows[lowest].data_carried
        whole.append([name, f"{middle:.2f}", f"{most:.1%}", f"{error:.1%}"])
    print(*heading(), *markdown(ratios), "", sep="\n")
    print("Geometric mean of the ratios, worst layer's carried error, dx error:", "", sep="\n")
    print(*markdown(whole), sep="\n")


def measure(
    param: pb.SolverParameter, weights: Path, batches: int, dither: bool, bound: float
) -> list[BoundRow]:
    """Return the layers' rows at one bound, figures the root mean square over batches."""
    settings = pb.SolverParameter()
    settings.CopyFrom(param)
    compression = settings.compression_param
    compression.mode = pb.CompressionParameter.FIXED
    compression.error_bound = bound
    compression.dither = dither
    solver = caffe.get_solver(settings)
    solver.net.copy_from(weights)
    checks = []
    for _ in range(batches):
        checks.append(caffe.check_bounds(solver))
        solver.net.forward()  # on to the next batch
    solver.close()
    return [_mean(rows) for rows in zip(*checks)]


def _mean(rows: tuple[BoundRow, ...]) -> BoundRow:
    figures = {}
    for name, value in vars(rows[0]).items():
        if isinstance(value, float):
            figures[name] = math.sqrt(np.mean([getattr(row, name) ** 2 for row in rows]))
    return BoundRow(rows[0].layer, rows[0].type, **figures)


if __name__ == "__main__":
    main()
