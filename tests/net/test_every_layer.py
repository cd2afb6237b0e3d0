"""Every layer type in some small net, trained in every mode.

LOSSLESS must equal NONE to the bit, ADAPTIVE must run and start from the same loss: what a layer
does not declare, its backward pass does not get. A type without a net fails.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from nets import make_solver, parameters

import caffe
from caffe.data.lmdb_writer import LmdbWriter
from caffe.layer_types.parameters import parameter_fillers
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net
from caffe.solver import Solver

BATCH, CHANNELS, SIDE, CLASSES = 16, 6, 8, 5
STEPS = 4
WEIGHTS = 'weight_filler { type: "xavier" }'


class Doubled(caffe.Layer):
    """A user's layer, for type Python."""

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = 2 * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = 2 * top[0].diff


def source(name: str, *dims: int) -> str:
    shape = " ".join(f"dim: {size}" for size in dims)
    return (
        f'layer {{ name: "{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ {shape} }} }} }}\n"
    )


INPUTS = source("data", BATCH, CHANNELS, SIDE, SIDE) + source("label", BATCH)
FIRST = (
    'layer { name: "first" type: "Convolution" bottom: "data" top: "x" convolution_param '
    f"{{ num_output: {CHANNELS} kernel_size: 3 pad: 1 {WEIGHTS} }} }}\n"
)


def scores(bottom: str, count: int = CLASSES) -> str:
    return (
        f'layer {{ name: "scores" type: "InnerProduct" bottom: "{bottom}" top: "scores" '
        f"inner_product_param {{ num_output: {count} {WEIGHTS} }} }}\n"
    )


LOSS = (
    'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }\n'
)


def between(layers: str, top: str = "y") -> str:
    """A net around layers that make blob `top` of blob x, both with a layer that learns around."""
    return INPUTS + FIRST + layers + scores(top) + LOSS


def unary(kind: str, options: str = "", in_place: bool = False) -> str:
    top = "x" if in_place else "y"
    return between(
        f'layer {{ name: "m" type: "{kind}" bottom: "x" top: "{top}" {options} }}\n', top
    )


def loss_of(
    kind: str, options: str = "", bottoms: str = 'bottom: "label"', count: int = CLASSES
) -> str:
    return (
        INPUTS
        + FIRST
        + scores("x", count)
        + f'layer {{ name: "loss" type: "{kind}" bottom: "scores" {bottoms} top: "loss" '
        f"{options} }}\n"
    )


SEQUENCE = f"""
{source("steps", 6, 4, 10)}{source("cont", 6, 4)}{source("target", 6, 4, 7)}
layer {{ name: "in" type: "InnerProduct" bottom: "steps" top: "x"
  inner_product_param {{ num_output: 12 axis: 2 {WEIGHTS} }} }}
layer {{ name: "m" type: "KIND" bottom: "x" bottom: "cont" top: "h"
  recurrent_param {{ num_output: 9 {WEIGHTS} }} }}
layer {{ name: "out" type: "InnerProduct" bottom: "h" top: "y"
  inner_product_param {{ num_output: 7 axis: 2 {WEIGHTS} }} }}
layer {{ name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "target" top: "loss" }}
"""

LSTM_UNIT = f"""
{source("steps", 1, 32, 10)}{source("cont", 1, 32)}{source("target", 1, 32, 9)}
layer {{ name: "x" type: "InnerProduct" bottom: "steps" top: "x"
  inner_product_param {{ num_output: 36 axis: 2 {WEIGHTS} }} }}
layer {{ name: "c" type: "InnerProduct" bottom: "steps" top: "c"
  inner_product_param {{ num_output: 9 axis: 2 {WEIGHTS} }} }}
layer {{ name: "m" type: "LSTMUnit" bottom: "c" bottom: "x" bottom: "cont" top: "c1" top: "h" }}
layer {{ name: "m2" type: "LSTMUnit" bottom: "c1" bottom: "x" bottom: "cont" top: "c2" top: "h2" }}
layer {{ name: "s" type: "Silence" bottom: "c2" }}
layer {{ name: "sum" type: "Eltwise" bottom: "h" bottom: "h2" top: "y" }}
layer {{ name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "target" top: "loss" }}
"""

#: Name of a case -> net. The types that a net is there for are those it is the first to have.
NETS = {
    "ReLU": unary("ReLU", in_place=True),
    "AbsVal": unary("AbsVal"),
    "BNLL": unary("BNLL", in_place=True),
    "BatchNorm": unary("BatchNorm"),
    "Bias": unary("Bias"),
    "Clip": unary("Clip", "clip_param { min: -0.3 max: 0.4 }", in_place=True),
    "Deconvolution": unary(
        "Deconvolution",
        f"convolution_param {{ num_output: 4 kernel_size: 4 stride: 2 pad: 1 {WEIGHTS} }}",
    ),
    "Dropout": unary("Dropout", in_place=True),
    "ELU": unary("ELU", "elu_param { alpha: 0.6 }", in_place=True),
    "ELU of negative alpha": unary("ELU", "elu_param { alpha: -0.6 }", in_place=True),
    "Exp": unary("Exp", "exp_param { base: 2 scale: 0.5 }", in_place=True),
    "Flatten": unary("Flatten"),
    "LRN": unary("LRN", "lrn_param { local_size: 3 alpha: 0.5 }"),
    "Log": between(
        'layer { name: "s" type: "Sigmoid" bottom: "x" top: "x" }'
        'layer { name: "m" type: "Log" bottom: "x" top: "y" log_param { shift: 0.1 } }'
    ),
    "MVN": unary("MVN", in_place=True),
    "MVN across channels": unary("MVN", "mvn_param { across_channels: true }", in_place=True),
    "PReLU": unary("PReLU", in_place=True),
    "PReLU, shared and frozen": unary(
        "PReLU", "prelu_param { channel_shared: true } param { lr_mult: 0 }", in_place=True
    ),
    "Pooling": unary("Pooling", "pooling_param { kernel_size: 2 stride: 2 }"),
    "Pooling STOCHASTIC": between(
        'layer { name: "r" type: "ReLU" bottom: "x" top: "x" }'
        'layer { name: "m" type: "Pooling" bottom: "x" top: "y" '
        "pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }"
    ),
    "Power": unary("Power", "power_param { power: 3 shift: 0.2 }", in_place=True),
    "Python": unary("Python", f'python_param {{ module: "{__name__}" layer: "Doubled" }}'),
    "Reduction": unary("Reduction", "reduction_param { axis: 2 operation: SUMSQ }"),
    "Reduction ASUM": unary("Reduction", "reduction_param { axis: 3 operation: ASUM }"),
    "Reshape": unary("Reshape", "reshape_param { shape { dim: 0 dim: -1 } }"),
    "SPP": unary("SPP", "spp_param { pyramid_height: 3 }"),
    "Scale": unary("Scale", "scale_param { bias_term: true }", in_place=True),
    "Sigmoid": unary("Sigmoid", in_place=True),
    "Softmax": unary("Softmax"),
    "Swish": unary("Swish", in_place=True),
    "TanH": unary("TanH", in_place=True),
    "Tile": unary("Tile", "tile_param { tiles: 2 }"),
    "Im2col": unary("Im2col", "convolution_param { kernel_size: 3 stride: 2 }"),
    "Concat, Slice, Eltwise": between(
        'layer { name: "cut" type: "Slice" bottom: "x" top: "a" top: "b" }'
        'layer { name: "product" type: "Eltwise" bottom: "a" bottom: "b" top: "c" '
        "eltwise_param { operation: PROD } }"
        'layer { name: "join" type: "Concat" bottom: "a" bottom: "c" top: "y" }'
    ),
    "Split": between(
        'layer { name: "m" type: "Split" bottom: "x" top: "a" top: "b" }'
        'layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "y" }'
    ),
    "Crop": between(
        'layer { name: "small" type: "Pooling" bottom: "data" top: "small" '
        "pooling_param { kernel_size: 2 stride: 2 } }"
        'layer { name: "m" type: "Crop" bottom: "x" bottom: "small" top: "y" '
        "crop_param { offset: 3 } }"
    ),
    "BatchReindex": source("index", BATCH)
    + between('layer { name: "m" type: "BatchReindex" bottom: "x" bottom: "index" top: "y" }'),
    "Filter": source("select", BATCH)
    + INPUTS
    + FIRST
    + 'layer { name: "m" type: "Filter" bottom: "x" bottom: "label" bottom: "select" '
    'top: "y" top: "kept" }' + scores("y") + LOSS.replace('"label"', '"kept"'),
    "Embed": source("index", BATCH, 3)
    + source("label", BATCH)
    + 'layer { name: "m" type: "Embed" bottom: "index" top: "y" '
    f"embed_param {{ num_output: 8 input_dim: {BATCH} {WEIGHTS} }} }}" + scores("y") + LOSS,
    "Parameter": between(
        f'layer {{ name: "w" type: "Parameter" top: "w" parameter_param {{ shape {{ dim: {CHANNELS}'
        " } } }"
        'layer { name: "m" type: "Bias" bottom: "x" bottom: "w" top: "y" }'
    ),
    "ArgMax, Accuracy, Threshold, Silence": between(
        'layer { name: "t" type: "Threshold" bottom: "x" top: "over" }'
        'layer { name: "y" type: "Eltwise" bottom: "x" bottom: "over" top: "y" '
        "eltwise_param { operation: PROD } }"
    )
    + 'layer { name: "best" type: "ArgMax" bottom: "scores" top: "best" }'
    'layer { name: "a" type: "Accuracy" bottom: "scores" bottom: "label" top: "a" top: "each" }'
    'layer { name: "s" type: "Silence" bottom: "best" bottom: "a" bottom: "each" }',
    "DummyData": INPUTS.replace(source("label", BATCH), "")
    + FIRST
    + scores("x", 4)
    + 'layer { name: "noise" type: "DummyData" top: "noise" dummy_data_param '
    f'{{ shape {{ dim: {BATCH} dim: 4 }} data_filler {{ type: "gaussian" }} }} }}'
    'layer { name: "loss" type: "EuclideanLoss" bottom: "scores" bottom: "noise" top: "loss" }',
    "HingeLoss": loss_of("HingeLoss", "hinge_loss_param { norm: L2 }"),
    "InfogainLoss": source("matrix", CLASSES, CLASSES)
    + loss_of("InfogainLoss", bottoms='bottom: "label" bottom: "matrix"'),
    "MultinomialLogisticLoss": INPUTS
    + FIRST
    + scores("x")
    + 'layer { name: "p" type: "Softmax" bottom: "scores" top: "p" }'
    'layer { name: "loss" type: "MultinomialLogisticLoss" bottom: "p" bottom: "label" '
    'top: "loss" }',
    "SigmoidCrossEntropyLoss": source("share", BATCH, CLASSES)
    + loss_of("SigmoidCrossEntropyLoss", bottoms='bottom: "share"'),
    "ContrastiveLoss": source("alike", BATCH)
    + INPUTS
    + FIRST
    + scores("x")
    + 'layer { name: "z" type: "InnerProduct" bottom: "data" top: "z" '
    f"inner_product_param {{ num_output: {CLASSES} {WEIGHTS} }} }}"
    'layer { name: "loss" type: "ContrastiveLoss" bottom: "scores" bottom: "z" bottom: "alike" '
    'top: "loss" contrastive_loss_param { margin: 4 } }',
    "LSTM": SEQUENCE.replace("KIND", "LSTM"),
    "RNN": SEQUENCE.replace("KIND", "RNN"),
    "LSTMUnit": LSTM_UNIT,
}
#: Types whose nets need files: they have tests of their own below.
WITH_FILES = {"Data", "HDF5Output"}

#: Inputs that are not standard normal: name -> values of that shape.
RULES: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "label": lambda rng, shape: rng.integers(0, CLASSES, shape),
    "index": lambda rng, shape: rng.integers(0, BATCH, shape),
    "select": lambda rng, shape: rng.integers(0, 2, shape),
    "alike": lambda rng, shape: rng.integers(0, 2, shape),
    "share": lambda rng, shape: rng.random(shape),
    "matrix": lambda rng, shape: rng.random(shape),
    "cont": lambda rng, shape: rng.random(shape) < 0.8,
}


def train(text: str, mode: str) -> tuple[list[float], Solver]:
    """A few steps on random batches, the same for every mode."""
    solver = make_solver(parse_net(text), "base_lr: 0.02", f"mode: {mode}")
    rng = np.random.default_rng(5)
    losses = []
    for _ in range(STEPS):
        for name in solver.net.inputs:
            blob = solver.net.blobs[name]
            rule = RULES.get(name)
            blob.data[...] = rule(rng, blob.shape) if rule else rng.standard_normal(blob.shape)
        solver.step(1)
        losses.append(solver.loss_window[-1])
    return losses, solver


@pytest.mark.parametrize("name", NETS)
def test_modes_agree(name: str) -> None:
    plain, reference = train(NETS[name], "NONE")
    assert np.isfinite(plain).all()
    started = parameters(make_solver(parse_net(NETS[name])))
    moved = [not np.array_equal(a, b) for a, b in zip(started, parameters(reference))]
    assert sum(moved) > len(moved) / 2, "the net hardly learns: there is nothing to compare"
    lossless, same = train(NETS[name], "LOSSLESS")
    assert lossless == plain
    for ours, theirs in zip(parameters(same), parameters(reference)):
        np.testing.assert_array_equal(ours, theirs)
    adaptive, _ = train(NETS[name], "ADAPTIVE")
    assert adaptive[0] == plain[0]
    np.testing.assert_allclose(adaptive, plain, rtol=0.05)


def test_output_to_a_file(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py, which HDF5Output needs, is not installed")
    file = tmp_path / "out.h5"
    text = unary("ReLU") + (
        'layer { name: "out" type: "HDF5Output" bottom: "y" bottom: "label" '
        f'hdf5_output_param {{ file_name: "{file}" }} }}'
    )
    kept = {}
    for mode in ("NONE", "LOSSLESS", "ADAPTIVE"):
        _, solver = train(text, mode)
        solver.net.close()
        with h5py.File(file) as found:
            assert found["data"].shape == (STEPS * BATCH, CHANNELS, SIDE, SIDE)
            kept[mode] = found["data"][:BATCH]
    np.testing.assert_array_equal(kept["NONE"], kept["LOSSLESS"])
    np.testing.assert_array_equal(kept["NONE"], kept["ADAPTIVE"])


def test_data_from_a_database(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with LmdbWriter(tmp_path / "images") as writer:
        for number in range(3 * BATCH):
            pixels = rng.integers(0, 256, CHANNELS * SIDE * SIDE, np.uint8)
            datum = pb.Datum(channels=CHANNELS, height=SIDE, width=SIDE, data=pixels.tobytes())
            datum.label = number % CLASSES
            writer.put(f"{number:04}", datum.SerializeToString())
    data = (
        'layer { name: "data" type: "Data" top: "data" top: "label" '
        f'data_param {{ source: "{tmp_path / "images"}" batch_size: {BATCH} backend: LMDB }} '
        "transform_param { scale: 0.01 mirror: true } }"
    )
    text = unary("ReLU").replace(INPUTS, data)
    plain, reference = train(text, "NONE")
    lossless, same = train(text, "LOSSLESS")
    adaptive, last = train(text, "ADAPTIVE")
    for solver in (reference, same, last):
        solver.net.close()
    assert lossless == plain
    assert adaptive[0] == plain[0]
    for ours, theirs in zip(parameters(same), parameters(reference)):
        np.testing.assert_array_equal(ours, theirs)


def test_every_type_is_in_some_net() -> None:
    found = {layer.type for text in NETS.values() for layer in parse_net(text).layer}
    assert sorted(found | WITH_FILES) == caffe.layer_type_list()


def test_every_blob_has_its_filler() -> None:
    static = source("fixed", 4, 3) + SEQUENCE.replace(
        'bottom: "cont" top: "h"', 'bottom: "cont" bottom: "fixed" top: "h"'
    )
    more = [static.replace("KIND", kind) for kind in ("LSTM", "RNN")]
    for text in [*NETS.values(), *more]:
        net = make_solver(parse_net(text)).net
        for node in net.graph.nodes:
            blobs = net.params.get(node.name, [])
            fillers = parameter_fillers(node.param)[: len(blobs)]
            # Parameter starts at zero, in Caffe as well.
            assert len(fillers) == (0 if node.type == "Parameter" else len(blobs)), node.type


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_blobs_of_recurrent_layers_go_through_the_store(kind: str) -> None:
    _, solver = train(SEQUENCE.replace("KIND", kind), "LOSSLESS")
    names = {row.saved.value.name for row in solver.net.compression_report()}
    assert {"x", "h"} <= names
