"""Backward of a whole batch that restores what it reads slice by slice: same bits, less memory."""

from __future__ import annotations

import numpy as np
import pytest
from nets import batches, make_solver, parameters, train

from caffe import batch_runs, kept_values
from caffe._core import memory
from caffe.buffers import Buffers
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net
from caffe.solver import Solver

SIZES = {"SMALL": (12, 3, 20, 20), "LARGE": (32, 3, 128, 128)}
FILLER = 'weight_filler { type: "xavier" }'


def block(name: str, bottom: str, channels: int = 16) -> str:
    """A convolution with its normalisation and ReLU."""
    return f"""
      layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"
        convolution_param {{ num_output: {channels} kernel_size: 3 pad: 1 bias_term: false {FILLER} }} }}
      layer {{ name: "{name}_bn" type: "BatchNorm" bottom: "{name}" top: "{name}" }}
      layer {{ name: "{name}_scale" type: "Scale" bottom: "{name}" top: "{name}"
        scale_param {{ bias_term: true filler {{ type: "uniform" min: -1 max: 1.5 }} }} }}
      layer {{ name: "{name}_relu" type: "ReLU" bottom: "{name}" top: "{name}" }}
    """  # noqa: E501


def net_of(body: str, top: str, shape: tuple[int, ...]) -> pb.NetParameter:
    dims = " ".join(f"dim: {size}" for size in shape)
    return parse_net(f"""
      layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ {dims} }} }} }}
      layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: {shape[0]} }} }} }}
      {body}
      layer {{ name: "pool_all" type: "Pooling" bottom: "{top}" top: "pool_all"
        pooling_param {{ pool: AVE global_pooling: true }} }}
      layer {{ name: "fc" type: "InnerProduct" bottom: "pool_all" top: "fc"
        inner_product_param {{ num_output: 10 {FILLER} }} }}
      layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }}
    """)  # noqa: E501


POOL = """
  layer { name: "pool" type: "Pooling" bottom: "a" top: "pool"
    pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
"""
RESIDUAL = (
    block("a", "data")
    + POOL
    + block("b", "pool")
    + block("c", "b")
    + """
  layer { name: "sum" type: "Eltwise" bottom: "pool" bottom: "c" top: "sum" }
  layer { name: "norm" type: "LRN" bottom: "sum" top: "norm" }
"""
    + block("d", "norm")
    + block("e", "norm")
    + block("f", "norm")
    + """
  layer { name: "all" type: "Concat" bottom: "d" bottom: "e" bottom: "f" top: "all" }
"""
)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[batch_runs.BackwardRun]:
    """Everything counts as large and nothing fits as a whole; the runs that backward then took."""
    monkeypatch.setattr(batch_runs, "SLICE_BYTES", 4096)
    monkeypatch.setattr(kept_values, "_SMALL_BYTES", 0)
    monkeypatch.setattr(Buffers, "room", lambda self: 0)
    taken: list[batch_runs.BackwardRun] = []
    enter = batch_runs.BackwardRuns.enter

    def note(self: batch_runs.BackwardRuns, last: int, lowest: int) -> batch_runs.BackwardRun:
        taken.append(enter(self, last, lowest))
        return taken[-1]

    monkeypatch.setattr(batch_runs.BackwardRuns, "enter", note)
    return taken


def in_slices(runs: list[batch_runs.BackwardRun], solver: Solver) -> set[str]:
    names = [node.name for node in solver.net.graph.nodes]
    return {names[i] for run in runs if run.parts for i in range(run.first, run.last + 1)}


def after_training(mode: str, net: pb.NetParameter, shape: tuple[int, ...]) -> Solver:
    solver = make_solver(net, compression=f"mode: {mode}")
    train(solver, batches(shape, 3))
    return solver


def test_the_bits_are_those_of_the_whole_batch(runs: list[batch_runs.BackwardRun]) -> None:
    shape = SIZES["SMALL"]
    net = net_of(RESIDUAL, "all", shape)
    plain = after_training("NONE", net, shape)
    assert not any(run.parts for run in runs)
    lossless = after_training("LOSSLESS", net, shape)
    assert {"a_scale", "a_bn"} <= in_slices(runs, lossless)
    for ours, theirs in zip(parameters(lossless), parameters(plain)):
        np.testing.assert_array_equal(ours, theirs)


def test_a_bound_of_nearly_nothing_gives_nearly_the_same(
    runs: list[batch_runs.BackwardRun],
) -> None:
    shape = SIZES["SMALL"]
    net = net_of(RESIDUAL, "all", shape)
    plain = after_training("NONE", net, shape)
    kept = after_training("FIXED bound_type: ABS error_bound: 1e-6 dither: false", net, shape)
    assert {"a_relu", "a_scale", "a_bn", "c_scale", "c_bn"} <= in_slices(runs, kept)
    assert any(run.last - run.first == 2 for run in runs if run.parts)
    for ours, theirs in zip(parameters(kept), parameters(plain)):
        scale = np.abs(theirs).max() + 1e-6
        np.testing.assert_allclose(ours / scale, theirs / scale, atol=2e-3)


def peak_of_backward(solver: Solver, shape: tuple[int, ...]) -> int:
    """Bytes at the peak of backward alone, less parameters and their gradients."""
    data = batches(shape, 2)
    train(solver, data[:1])
    images, labels = data[1]
    solver.net.blobs["data"].data[...] = images
    solver.net.blobs["label"].data[...] = labels
    solver.net.forward()
    memory.reset_peak()
    solver.net.backward()
    kinds = dict(memory.peak()["by_kind"])
    return sum(kinds[kind] for kind in ("raw_activations", "gradients", "stored_activations"))


def test_normalisation_goes_back_with_one_large_buffer() -> None:
    """The gradient of the whole is there once; what it is multiplied with comes in slices."""
    shape = SIZES["LARGE"]
    net = net_of(block("a", "data") + POOL, "pool", shape)
    largest = 4 * 16 * shape[0] * shape[2] * shape[3]
    assert largest == 32 * 2**20
    compressed = peak_of_backward(make_solver(net, compression="mode: ADAPTIVE"), shape)
    plain = peak_of_backward(make_solver(net), shape)
    # Beside the gradient: a quarter of it in pool's, slices of 8 MiB of x and y, what is stored.
    assert compressed < 2.6 * largest
    assert plain > 3.5 * largest


def test_gradients_of_a_split_are_added_up_as_readers_go_back() -> None:
    """Three readers of one large value: not three gradients of its size at once."""
    shape = SIZES["LARGE"]
    readers = "".join(
        f"""
      layer {{ name: "{name}" type: "Convolution" bottom: "a" top: "{name}"
        convolution_param {{ num_output: 2 kernel_size: 1 {FILLER} }} }}
    """
        for name in ("x", "y", "z")
    )
    body = (
        block("a", "data")
        + readers
        + """
      layer { name: "all" type: "Concat" bottom: "x" bottom: "y" bottom: "z" top: "all" }
    """
    )
    largest = 4 * 16 * shape[0] * shape[2] * shape[3]
    solver = make_solver(net_of(body, "all", shape), compression="mode: ADAPTIVE")
    assert peak_of_backward(solver, shape) < 2.6 * largest


def peak_of_a_step(net: pb.NetParameter, shape: tuple[int, ...], mode: str) -> int:
    solver = make_solver(net, compression=f"mode: {mode}")
    before = sum(memory.live().values())
    memory.reset_peak()
    train(solver, batches(shape, 1))
    return int(memory.peak()["total"]) - before


@pytest.mark.parametrize("size", [1, 3])
def test_slices_are_left_alone_where_they_save_nothing(size: int) -> None:
    """Between two BatchNorms everything crosses the ends of a run."""
    shape = SIZES["SMALL"]
    net = net_of(RESIDUAL, "all", shape)
    sliced = peak_of_a_step(net, shape, f"LOSSLESS slice: {size}")
    assert sliced <= 1.01 * peak_of_a_step(net, shape, "LOSSLESS")


def test_a_value_that_is_there_as_a_whole_does_not_bring_others() -> None:
    """What pooling gives is at hand for LRN; the signs in front of it still come in slices."""
    shape = SIZES["LARGE"]
    body = f"""
      layer {{ name: "a" type: "Convolution" bottom: "data" top: "a"
        convolution_param {{ num_output: 16 kernel_size: 3 pad: 1 {FILLER} }} }}
      layer {{ name: "relu" type: "ReLU" bottom: "a" top: "a" }}
      {POOL}
      layer {{ name: "norm" type: "LRN" bottom: "pool" top: "norm" }}
      layer {{ name: "b" type: "Convolution" bottom: "norm" top: "b"
        convolution_param {{ num_output: 4 kernel_size: 3 pad: 1 {FILLER} }} }}
    """
    largest = 4 * 16 * shape[0] * shape[2] * shape[3]
    solver = make_solver(net_of(body, "b", shape), compression="mode: ADAPTIVE")
    assert peak_of_backward(solver, shape) < 2 * largest
