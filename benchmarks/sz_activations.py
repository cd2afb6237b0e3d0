"""Trains this project's nets for a while and writes what a compressed training run would keep.

    python benchmarks/sz_activations.py -out DIR [-net lenet] [-force]

Files are NET__LAYER__KIND.npy, float32, N x C x H x W, KIND one of

    conv_input  what a Convolution reads, the image left out
    ip_input    what an InnerProduct reads; a matrix is kept as N x 1 x 1 x K, rows as they lie
    bn_output   what the plan keeps around BatchNorm: the Scale's output before its ReLU

LAYER is the layer that reads (the first of several), or for bn_output the one that writes. Nets
train on Fashion-MNIST, the large ones on its images enlarged, at a small batch; the activations
are those of one more forward pass in the phase TRAIN. Of a large layer only as many images are
written as make up 32 MiB. Nets already in DIR are left alone.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import caffe
from caffe.proto import caffe_pb2 as pb
from common import fed_net, training_solver
from resnet18 import resnet18

LEAST_BYTES = 32 << 20  # of a layer that has more; beyond most caches
LEARNED = 1.6  # loss; guessing ten classes costs log(10) = 2.3
DONE = "complete"  # the last line of a net's log


@dataclass(frozen=True)
class Recipe:
    """How a net is trained and what it is then shown."""

    source: str  # class in sources.py
    train: str  # its param_str in training
    show: str  # its param_str in the last forward pass
    iterations: int
    rate: float  # base_lr


RECIPES = {
    "lenet": Recipe("SmallFashion", "64", "1024", 300, 0.01),
    "fashion_cnn": Recipe("SmallFashion", "64", "256", 400, 0.05),
    "caffenet": Recipe("EnlargedFashion", "16 227", "128 227", 120, 0.001),
    "resnet18": Recipe("EnlargedFashion", "16 112", "44 224", 80, 0.02),
}
FOLDERS = {"caffenet": "bvlc_reference_caffenet"}  # in models/, where it has another name


def solver_of(net: str) -> pb.SolverParameter:
    """Return the solver that trains `net` by its recipe."""
    recipe = RECIPES[net]
    if net == "resnet18":
        solver = pb.SolverParameter(momentum=0.9, weight_decay=1e-4, lr_policy="poly", power=1)
        solver.net_param.CopyFrom(fed_net(resnet18(), recipe.source, recipe.train))
        solver.snapshot_after_train = False
    else:
        solver = training_solver(FOLDERS.get(net, net), recipe.source, recipe.train)
        if net == "caffenet":
            _start_sooner(solver.net_param)
    solver.base_lr = recipe.rate
    solver.max_iter = recipe.iterations
    solver.random_seed = 1
    solver.solver_mode = pb.SolverParameter.CPU
    solver.compression_param.mode = pb.CompressionParameter.NONE
    return solver


def _start_sooner(net: pb.NetParameter) -> None:
    """Fill CaffeNet so that it learns within 100 iterations; as published it takes thousands.

    Its biases of 1 and small weights let next to nothing of the image through at first.
    """
    for layer in net.layer:
        if layer.type == "Convolution":
            layer.convolution_param.bias_filler.value = 0
            if layer.name != "conv1":  # which sees values up to 182
                layer.convolution_param.weight_filler.CopyFrom(pb.FillerParameter(type="xavier"))
        elif layer.type == "InnerProduct":
            layer.inner_product_param.bias_filler.value = 0


def without_in_place(net: pb.NetParameter) -> pb.NetParameter:
    """Return `net` with a blob for each value: an in-place layer writes one named as itself."""
    result = pb.NetParameter()
    result.CopyFrom(net)
    current: dict[str, str] = {}
    for layer in result.layer:
        written_over = set(layer.top) & set(layer.bottom)
        layer.bottom[:] = [current.get(name, name) for name in layer.bottom]
        for index, top in enumerate(layer.top):
            current[top] = layer.name if top in written_over else top
            layer.top[index] = current[top]
    return result


def kept_blobs(net: pb.NetParameter) -> Iterator[tuple[str, str, str]]:
    """Give blob, layer and kind of each file to write, for a net without in-place layers."""
    makers = {top: layer for layer in net.layer for top in layer.top}
    given = set()
    for layer in net.layer:
        bottom = layer.bottom[0] if layer.bottom else ""
        source = makers[bottom].type if bottom else ""
        if layer.type in ("Convolution", "InnerProduct") and source != "Python":
            if bottom not in given:
                kind = "conv_input" if layer.type == "Convolution" else "ip_input"
                yield bottom, layer.name, kind
            given.add(bottom)
        elif layer.type == "Scale" and source == "BatchNorm":
            yield layer.top[0], layer.name, "bn_output"


def train(net: str, folder: Path) -> tuple[Path, str]:
    """Train `net`; return its weights, written into `folder`, and a line on how that went."""
    solver = caffe.get_solver(solver_of(net))
    iterations = RECIPES[net].iterations
    losses = []
    began = time.perf_counter()
    for iteration in range(iterations):
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data))
        if iteration % 10 == 0:
            print(f"{net}: iteration {iteration}, loss {losses[-1]:.3f}", flush=True)
    weights = folder / f"{net}.caffemodel"
    solver.net.save(weights)
    seconds = time.perf_counter() - began
    last = float(np.mean(losses[-10:]))
    line = f"{iterations} iterations in {seconds:.0f} s, loss {losses[0]:.3f} to {last:.3f}"
    if not last < LEARNED:
        raise RuntimeError(f"{net}: {line}; it has not learned, so its activations say nothing")
    return weights, line


def dump(net: str, weights: Path, out: Path) -> int:
    """Run one more forward pass and write the files of `net`; return their number."""
    recipe = RECIPES[net]
    trained = solver_of(net).net_param
    param = without_in_place(fed_net(_unfed(trained), recipe.source, recipe.show))
    shown = caffe.Net(param, phase=caffe.TRAIN, weights=weights)
    shown.forward()
    files = 0
    for blob, layer, kind in kept_blobs(param):
        np.save(out / f"{net}__{layer}__{kind}.npy", clipped(as_images(shown.blobs[blob].data)))
        files += 1
    return files


def as_images(values: np.ndarray) -> np.ndarray:
    """View an N x C x H x W array as it is and an N x K one as N x 1 x 1 x K."""
    return values if values.ndim == 4 else values.reshape(len(values), 1, 1, -1)


def clipped(values: np.ndarray) -> np.ndarray:
    """Leave away what the first images, LEAST_BYTES of them or little more, do without."""
    return values[: math.ceil(LEAST_BYTES / values[0].nbytes)]


def _unfed(net: pb.NetParameter) -> pb.NetParameter:
    result = pb.NetParameter(name=net.name)
    result.layer.extend(layer for layer in net.layer if layer.type != "Python")
    return result


def main() -> int:
    """Write the files of the nets that the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-out", type=Path, required=True, help="folder to write to")
    parser.add_argument("-net", choices=[*RECIPES, "all"], default="all")
    parser.add_argument("-force", action="store_true", help="nets that are there already as well")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for net in RECIPES if given.net == "all" else [given.net]:
        log = given.out / f"{net}.txt"
        if log.exists() and log.read_text(encoding="utf-8").endswith(DONE + "\n"):
            if not given.force:
                print(f"{net}: already in {given.out}")
                continue
            log.unlink()
        try:
            with tempfile.TemporaryDirectory() as folder:
                weights, line = train(net, Path(folder))
                files = dump(net, weights, given.out)
        except (RuntimeError, ValueError, OSError) as error:
            print(f"sz_activations.py: {error}", file=sys.stderr)
            return 1
        log.write_text(f"{line}\n{files} files\n{DONE}\n", encoding="utf-8")
        print(f"{net}: {line}; {files} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
