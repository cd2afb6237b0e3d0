"""`caffe test`: scores of a trained net on its test data."""

from __future__ import annotations

import numpy as np

from caffe import log
from caffe.cli.common import (
    GPU,
    ITERATIONS,
    LEVEL,
    MODEL,
    STAGE,
    WEIGHTS,
    no_arguments,
    positive,
    required,
    warn_about_gpu,
)
from caffe.cli.flags import Flags, UsageError
from caffe.file_kind import require_file
from caffe.net import Net
from caffe.proto import caffe_pb2

FLAGS = (MODEL, WEIGHTS, GPU, ITERATIONS, LEVEL, STAGE)
USAGE = "caffe test -model FILE -weights FILES [-iterations N] FLAGS"


def run(flags: Flags) -> int:
    """Score the net.

    Raises:
        UsageError: flags that are missing.
        ValueError, FileNotFoundError, caffe.Error: whatever is wrong with the files or the run.
    """
    no_arguments(flags)
    model = required(flags, "model", "the net prototxt to score")
    iterations = positive(flags, "iterations")
    if not flags.words("weights"):
        raise UsageError("flag -weights is needed: the .caffemodel to score")
    for weights in flags.words("weights"):
        require_file(weights, "weights")
    warn_about_gpu(flags)

    net = Net(model, caffe_pb2.TEST, level=flags.number("level"), stages=flags.words("stage"))
    for weights in flags.words("weights"):
        net.copy_from(weights)
    log.info(f"Running for {iterations} iterations.")
    sums: dict[str, np.ndarray] = {}
    for batch in range(iterations):
        for name, values in net.forward().items():
            flat = np.array(values, dtype=np.float64).ravel()
            sums[name] = sums[name] + flat if name in sums else flat
            for value in flat:
                log.info(f"Batch {batch}, {name} = {value:g}")
    weights_of = net.blob_loss_weights
    loss = sum(weights_of.get(name, 0) * total.sum() for name, total in sums.items())
    log.info(f"Loss: {loss / iterations:g}")
    for name, total in sums.items():
        for value in total / iterations:
            log.info(f"{name} = {value:g}{loss_note(weights_of.get(name, 0), value)}")
    return 0


def loss_note(weight: float, value: float) -> str:
    """Return what Caffe writes behind an output that counts in the loss."""
    return f" (* {weight:g} = {weight * value:g} loss)" if weight else ""
