"""Random nets, and nets that are hard to plan for: LOSSLESS equals NONE, slices to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from nets import make_solver, parameters
from random_plans import CLASSES, XAVIER, RandomNet

from caffe import batch_runs
from caffe.buffers import Buffers
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net
from caffe.solver import Solver

SEEDS = range(25)
STEPS = 2
EXACT = "bound_type: ABS error_bound: 1e-6"  # as good as exact


@pytest.fixture(autouse=True)
def small_values_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever may go in slices does, in backward and where slices are asked for."""
    monkeypatch.setattr(batch_runs, "SLICE_BYTES", 256)
    monkeypatch.setattr(batch_runs, "_slices_pay", lambda *_: True)
    monkeypatch.setattr(Buffers, "room", lambda self: 0)


def layer(kind: str, bottoms: str, top: str, options: str = "") -> str:
    edges = " ".join(f'bottom: "{bottom}"' for bottom in bottoms.split())
    return f'layer {{ name: "{top}" type: "{kind}" {edges} top: "{top}" {options} }}\n'


def convolution(bottom: str, top: str) -> str:
    options = f"convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 {XAVIER} }}"
    return layer("Convolution", bottom, top, options)


INPUTS = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 3 dim: 24 dim: 24 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
""" + convolution("data", "x")
END = f"""
layer {{ name: "fc" type: "InnerProduct" bottom: "y" top: "fc"
  inner_product_param {{ num_output: {CLASSES} {XAVIER} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }}
"""
SCALE = """layer { name: "s" type: "Scale" bottom: "x" top: "v"
  scale_param { bias_term: true filler { type: "uniform" min: -1 max: 1 } } }
"""
BENT = "relu_param { negative_slope: -0.5 }"  # reads the signs of its bottom
PRODUCT = "eltwise_param { operation: PROD }"
FOLD = "reshape_param { shape { dim: -1 dim: 2 dim: 24 dim: 24 } }"
FLAT = "reshape_param { shape { dim: 0 dim: -1 } }"
UNFOLD = "reshape_param { shape { dim: 4 dim: -1 dim: 24 dim: 24 } }"


#: What random nets seldom have. Name -> layers that make y of x.
HARD = {
    "signs behind a Scale": SCALE
    + convolution("v", "c")
    + layer("ReLU", "v", "w", BENT)
    + layer("Eltwise", "w c", "y"),
    "two follow from one": layer("Dropout", "x", "v")
    + layer("Dropout", "x", "w")
    + layer("Eltwise", "v w", "y", PRODUCT),
    "two follow from one that follows": layer("Dropout", "x", "r")
    + layer("Dropout", "r", "v")
    + layer("Dropout", "r", "w")
    + layer("Eltwise", "v w", "y", PRODUCT),
    "one and what follows from it": layer("Dropout", "x", "r")
    + layer("Dropout", "r", "v")
    + layer("Eltwise", "v r", "y", PRODUCT),
    "a Scale behind a Reshape": layer("Reshape", "x", "f", FLAT)
    + layer("Scale", "f", "y", 'scale_param { filler { type: "uniform" min: 0.5 max: 2 } }'),
    "a folded batch": layer("Reshape", "x", "f", FOLD)
    + layer("Scale", "f", "s", 'scale_param { filler { type: "uniform" min: 0.5 max: 2 } }')
    + convolution("s", "c")
    + layer("Reshape", "c", "y", "reshape_param { shape { dim: 4 dim: -1 } }"),
    "signs of a whole and of its slices": layer("ReLU", "x", "r", BENT)
    + layer("Reshape", "x", "f", FOLD)
    + layer("ReLU", "f", "p", BENT)
    + layer("Reshape", "p", "g", UNFOLD)
    + layer("Eltwise", "r g", "y"),
    "a joined batch": layer("Concat", "x x", "b", "concat_param { axis: 0 }")
    + convolution("b", "c")
    + layer("Eltwise", "b b", "p", PRODUCT)
    + layer("Eltwise", "c p", "e")
    + 'layer { name: "cut" type: "Slice" bottom: "e" top: "y" top: "z" slice_param { axis: 0 } }\n',
    "a whole between slices": layer("Scale", "x x", "v", "scale_param { axis: 0 }")
    + layer("Eltwise", "v x", "m", "eltwise_param { operation: MAX }")
    + layer("Scale", "x m", "y", "scale_param { axis: 0 }"),
    "Clip worked out again": convolution("x", "a")
    + layer("Clip", "x", "v", "clip_param { min: -0.6 max: 0.7 }")
    + layer("TanH", "x", "t")
    + layer("Eltwise", "v t", "p", PRODUCT)
    + layer("Eltwise", "a p", "y"),
}  # fmt: skip


def train(
    net: pb.NetParameter, image: tuple[int, ...], mode: str
) -> tuple[Solver, list[np.ndarray]]:
    """A solver after some steps, and the gradients of the first."""
    solver = make_solver(net, "base_lr: 0.002", f"mode: {mode}")
    rng = np.random.default_rng(5)
    gradients = []
    for step in range(STEPS):
        solver.net.blobs["data"].data[...] = rng.standard_normal(image)
        solver.net.blobs["label"].data[...] = rng.integers(0, CLASSES, image[0])
        solver.step(1)
        if step == 0:
            learned = [blob for blob in solver.net.learned if blob.spec.lr_mult]
            gradients = [blob.parameter.gradient.numpy().copy() for blob in learned]
    return solver, gradients


def distance(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest error of a gradient, in its own norm or a share of all gradients' together."""
    norms = [float(np.linalg.norm(gradient)) for gradient in theirs]
    least = 3e-3 * float(np.linalg.norm(norms)) + 1e-12
    errors = [float(np.linalg.norm(a - b)) for a, b in zip(ours, theirs)]
    return max((error / max(norm, least) for error, norm in zip(errors, norms)), default=0.0)


def check(net: pb.NetParameter, image: tuple[int, ...]) -> None:
    plain, reference = train(net, image, "NONE")
    assert plain.memory_estimate().plain_peak > 0
    assert np.isfinite(list(plain.loss_window)).all()
    for mode in ("LOSSLESS", "LOSSLESS slice: 100"):
        lossless, _ = train(net, image, mode)
        assert lossless.memory_estimate().planned_peak > 0
        for ours, theirs in zip(parameters(lossless), parameters(plain)):
            np.testing.assert_array_equal(ours, theirs, err_msg=mode)
    for mode in ("LOSSLESS slice: 1", "LOSSLESS slice: 3"):
        assert distance(train(net, image, mode)[1], reference) < 2e-3, mode
    # Scales keep what their weak channels read in 8 bits.
    for mode in (f"FIXED {EXACT}", f"FIXED {EXACT} slice: 2"):
        assert distance(train(net, image, mode)[1], reference) < 0.03, mode


@pytest.mark.parametrize("seed", SEEDS)
def test_random_nets(seed: int) -> None:
    net = RandomNet(seed)
    check(net.param, net.image)


@pytest.mark.parametrize("name", HARD)
def test_hard_nets(name: str) -> None:
    check(parse_net(INPUTS + HARD[name] + END), (4, 3, 24, 24))


@pytest.mark.parametrize("mode", ["LOSSLESS", "LOSSLESS slice: 1"])
def test_values_that_are_asked_for_are_not_written_over(mode: str) -> None:
    body = layer("BatchNorm", "x", "b") + layer("ReLU", "b", "r") + layer("Bias", "r", "y")
    wanted = {}
    for way in ("NONE", mode):
        solver = make_solver(parse_net(INPUTS + body + END), compression=f"mode: {way}")
        solver.net.blobs["data"].data[...] = np.random.default_rng(1).normal(size=(4, 3, 24, 24))
        found = solver.net.forward(blobs=["x", "b", "r"])
        wanted[way] = {name: found[name].copy() for name in ("x", "b", "r")}
    for name, theirs in wanted["NONE"].items():
        np.testing.assert_allclose(wanted[mode][name], theirs, rtol=1e-4, atol=1e-5)


def test_slices_of_batches_that_change() -> None:
    """Of inputs that are reshaped between steps, and of a Filter, which follows its data."""
    chosen = (
        'layer { name: "by" type: "Input" top: "by" input_param { shape { dim: 4 } } }'
        + layer("Filter", "x by", "y")
    )
    for body in (layer("BatchNorm", "x", "y"), chosen):
        losses = []
        for mode in ("NONE", "LOSSLESS slice: 2"):
            text = INPUTS + body + convolution("y", "c") + END.replace('"y"', '"c"')
            if body is chosen:
                text = text.replace('bottom: "label" top: "loss"', 'bottom: "kept" top: "loss"')
                text = text.replace(
                    'bottom: "by" top: "y"', 'bottom: "label" bottom: "by" top: "y" top: "kept"'
                )
            solver = make_solver(parse_net(text), compression=f"mode: {mode}")
            rng = np.random.default_rng(2)
            for batch in (4, 7, 1, 3, 4):
                for name in solver.net.inputs:
                    blob = solver.net.blobs[name]
                    blob.reshape(batch, *blob.shape[1:])
                solver.net.blobs["data"].data[...] = rng.normal(size=(batch, 3, 24, 24))
                solver.net.blobs["label"].data[...] = rng.integers(0, CLASSES, batch)
                if "by" in solver.net.blobs:
                    solver.net.blobs["by"].data[...] = np.arange(batch) % 3 != 1
                solver.step(1)
                losses.append(solver.loss_window[-1])
        half = len(losses) // 2
        np.testing.assert_allclose(losses[half:], losses[:half], rtol=1e-4)


def test_nothing_is_passed_on_without_a_loss() -> None:
    """Gradients of a view that nobody gives one are zeros in slices, too."""
    body = layer("Flatten", "x", "f")
    for mode in ("NONE", "LOSSLESS slice: 3"):
        net = parse_net("force_backward: true\n" + INPUTS + body)
        _, gradients = train(net, (4, 3, 24, 24), mode)
        assert not any(gradient.any() for gradient in gradients)
