"""`caffe time`: how long each layer of a net takes, forward and backward."""

from __future__ import annotations

import time

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
from caffe.cli.flags import Flag, Flags
from caffe.file_kind import require_file
from caffe.net import Net
from caffe.proto import caffe_pb2

FLAGS = (
    MODEL,
    WEIGHTS,
    GPU,
    ITERATIONS,
    Flag("phase", "TRAIN", "phase of the net", ("TRAIN", "TEST")),
    LEVEL,
    STAGE,
)
USAGE = "caffe time -model FILE [-iterations N] [-phase TRAIN|TEST] FLAGS"


def run(flags: Flags) -> int:
    """Measure; the first pass, which allocates, does not count.

    Raises:
        UsageError: flags that are missing.
        ValueError, FileNotFoundError, caffe.Error: whatever is wrong with the files or the run.
    """
    no_arguments(flags)
    model = required(flags, "model", "the net prototxt to measure")
    iterations = positive(flags, "iterations")
    for weights in flags.words("weights"):
        require_file(weights, "weights")
    warn_about_gpu(flags)

    phase = caffe_pb2.Phase.Value(flags.text("phase"))
    net = Net(model, phase, level=flags.number("level"), stages=flags.words("stage"))
    for weights in flags.words("weights"):
        net.copy_from(weights)
    log.info("Performing Forward")
    outputs = net.forward()
    for name, weight in net.blob_loss_weights.items():
        if weight and name in outputs:
            log.info(f"Initial loss: {float(outputs[name].sum()) * weight:g}")
    log.info("Performing Backward")
    net.backward()
    log.info("*** Benchmark begins ***")
    log.info(f"Testing for {iterations} iterations.")
    measure(net, iterations)
    log.info("*** Benchmark ends ***")
    return 0


def measure(net: Net, iterations: int) -> None:
    """Run forward and backward `iterations` times and log the averages, in milliseconds.

    Args:
        net: the net.
        iterations: how often.
    """
    forward: dict[str, float] = {}
    backward: dict[str, float] = {}
    begin = time.perf_counter()
    forward_total = backward_total = 0.0
    for i in range(iterations):
        start = time.perf_counter()
        for name, milliseconds in net.forward_timed():
            forward[name] = forward.get(name, 0) + milliseconds
        middle = time.perf_counter()
        for name, milliseconds in net.backward_timed():
            backward[name] = backward.get(name, 0) + milliseconds
        end = time.perf_counter()
        forward_total += middle - start
        backward_total += end - middle
        log.info(f"Iteration: {i + 1} forward-backward time: {(end - start) * 1e3:g} ms.")
    total = time.perf_counter() - begin
    log.info("Average time per layer: ")
    for name, spent in forward.items():
        log.info(f"{name:>10}\tforward: {spent / iterations:g} ms.")
        if name in backward:
            log.info(f"{name:>10}\tbackward: {backward[name] / iterations:g} ms.")
    log.info(f"Average Forward pass: {forward_total / iterations * 1e3:g} ms.")
    log.info(f"Average Backward pass: {backward_total / iterations * 1e3:g} ms.")
    log.info(f"Average Forward-Backward: {total / iterations * 1e3:g} ms.")
    log.info(f"Total Time: {total * 1e3:g} ms.")
