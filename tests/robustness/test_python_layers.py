"""Python layers that fail: the error stays the user's own, and names the layer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from nets import make_solver
from small import fill, net_text

import caffe
from caffe.cli.main import main
from caffe.prototxt import parse_net

PYTHON = f'type: "Python" python_param {{ module: "{__name__}" layer: "%s" }}'
MODES = ("NONE", "LOSSLESS", "FIXED", "ADAPTIVE")


class Copy(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff


class FailsInSetup(Copy):
    def setup(self, bottom, top):
        raise KeyError("option")


class FailsInReshape(Copy):
    def reshape(self, bottom, top):
        raise IndexError("list index out of range")


class FailsInForward(Copy):
    def forward(self, bottom, top):
        raise ZeroDivisionError


class FailsInBackward(Copy):
    def backward(self, top, propagate_down, bottom):
        raise RuntimeError("no gradient")


class ReshapesInForward(Copy):
    def forward(self, bottom, top):
        top[0].reshape(1, 2)


class Interrupted(Copy):
    passes = 0
    at = 0

    def backward(self, top, propagate_down, bottom):
        Interrupted.passes += 1
        if Interrupted.passes == Interrupted.at:
            raise KeyboardInterrupt
        Copy.backward(self, top, propagate_down, bottom)


FAILURES = {
    "FailsInSetup": (KeyError, "KeyError: 'option'"),
    "FailsInReshape": (IndexError, "IndexError: list index out of range"),
    "FailsInForward": (ZeroDivisionError, "ZeroDivisionError"),
    "FailsInBackward": (RuntimeError, "no gradient"),
    "ReshapesInForward": (ValueError, r"top 0 was reshaped to \(1, 2\) in forward"),
}


@pytest.mark.parametrize("mode", ["NONE", "FIXED"])
@pytest.mark.parametrize("name", FAILURES)
def test_error_is_the_users_own(name: str, mode: str) -> None:
    with pytest.raises(FAILURES[name][0]) as caught:
        solver = make_solver(parse_net(net_text(PYTHON % name)), compression=f"mode: {mode}")
        fill(solver.net)
        solver.step(1)
    assert caught.value.__notes__ == ["in layer 'm' (Python)"]


@pytest.mark.parametrize("name", FAILURES)
def test_command_says_layer_and_kind(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "net.prototxt"
    model.write_text(net_text(PYTHON % name))
    assert main(["time", "-model", str(model), "-iterations", "1"]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    expected = FAILURES[name][1].replace("\\", "")
    assert last.startswith(f"caffe: error: in layer 'm' (Python): {expected}")


@pytest.mark.parametrize("mode", MODES)
def test_interrupted_step_leaves_no_trace(mode: str) -> None:
    def run(at: int) -> list[np.ndarray]:
        Interrupted.passes, Interrupted.at = 0, at
        text = net_text(PYTHON % "Interrupted")
        solver = make_solver(parse_net(text), compression=f"mode: {mode}")
        fill(solver.net)
        while solver.iter < 4:
            try:
                solver.step(1)
            except KeyboardInterrupt:
                assert Interrupted.passes == at
        return [blob.data.copy() for blobs in solver.net.params.values() for blob in blobs]

    for ours, theirs in zip(run(at=2), run(at=0)):
        np.testing.assert_array_equal(ours, theirs)


def test_module_is_the_one_that_nets_import() -> None:
    assert sys.modules[__name__].Copy is Copy
