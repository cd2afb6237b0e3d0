"""train, test and time with a solver and a net that only record what is asked of them."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from caffe import mode
from caffe.cli import main as cli
from caffe.cli import test as cli_test
from caffe.cli import time as cli_time
from caffe.cli import train as cli_train
from caffe.proto import caffe_pb2


class FakeNet:
    def __init__(self, model="", phase=1, level=0, stages=()):
        self.arguments = (model, phase, level, list(stages))
        self.copied = []
        self.blob_loss_weights = {"acc": 0.0, "loss": 2.0}
        self.passes = 0

    def copy_from(self, path):
        self.copied.append(path)

    def forward(self):
        self.passes += 1
        return {"acc": np.array([0.25, 0.5]), "loss": np.float32(self.passes)}

    def backward(self):
        return {}

    def forward_timed(self):
        return [("data", 1.0), ("ip", 2.0)]

    def backward_timed(self):
        return [("ip", 4.0)]


class FakeSolver:
    made: ClassVar[list[FakeSolver]] = []
    raises: ClassVar[list[int]] = []

    def __init__(self, param):
        self.param = caffe_pb2.SolverParameter()
        self.param.CopyFrom(param)
        self.net = FakeNet()
        self.compression_log = None
        self.events = []
        FakeSolver.made.append(self)

    def request_stop(self):
        self.events.append("stop")

    def request_snapshot(self):
        self.events.append("snapshot")

    def solve(self, resume_file=None):
        self.events.append(f"solve {resume_file}")
        for number in FakeSolver.raises:
            os.kill(os.getpid(), number)

    def close(self):
        pass


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli_train, "get_solver", FakeSolver)
    monkeypatch.setattr(FakeSolver, "made", [])
    monkeypatch.setattr(FakeSolver, "raises", [])
    for name in ("a", "b", "c", "state"):
        (tmp_path / name).write_text("x")
    (tmp_path / "s").write_text('net: "n" weights: "a,b" train_state { stage: "old" }')

    def run(*words):
        assert cli.main(["train", "-solver", "s", *words]) == 0
        return FakeSolver.made[-1]

    return run


def test_train_passes_flags_on(train):
    solver = train("-level", "3", "-stage=x,y", "--compression_log", "log.json")
    assert solver.param.train_state.level == 3
    assert list(solver.param.train_state.stage) == ["x", "y"]
    assert solver.compression_log == "log.json"
    assert solver.events == ["solve None"]


def test_weights(train):
    assert train().net.copied == ["a", "b"]
    assert train("-weights", "c").net.copied == ["c"]
    solver = train("-snapshot", "state")
    assert (solver.net.copied, solver.events) == ([], ["solve state"])
    assert list(solver.param.train_state.stage) == ["old"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["stop", "snapshot"]),
        (["-sigint_effect", "snapshot", "-sighup_effect", "stop"], ["snapshot", "stop"]),
        (["-sigint_effect", "none", "-sighup_effect=none"], []),
    ],
)
def test_signals(train, monkeypatch, words, expected):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP)
    monkeypatch.setattr(FakeSolver, "raises", [signal.SIGINT, signal.SIGHUP])
    assert train(*words).events[1:] == expected
    assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGHUP))


@pytest.mark.parametrize(("text", "warnings"), [("", 1), ("solver_mode: CPU", 0)])
def test_gpu_as_solver_mode_warns(train, tmp_path, capsys, monkeypatch, text, warnings):
    monkeypatch.setattr(mode, "_warned", False)
    with (tmp_path / "s").open("a") as stream:
        stream.write(text)
    train()
    assert capsys.readouterr().err.count("computing on the CPU") == warnings


def messages(capsys):
    return [line.split("] ", 1)[1] for line in capsys.readouterr().err.splitlines()]


@pytest.fixture
def model(tmp_path, monkeypatch):
    for module in (cli_test, cli_time):
        monkeypatch.setattr(module, "Net", FakeNet)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net").write_text("x")
    (tmp_path / "w").write_text("x")


def test_test(model, capsys):
    assert cli.main(["test", "-model", "net", "-weights", "w", "-iterations", "2"]) == 0
    assert messages(capsys) == [
        "Running for 2 iterations.",
        "Batch 0, acc = 0.25",
        "Batch 0, acc = 0.5",
        "Batch 0, loss = 1",
        "Batch 1, acc = 0.25",
        "Batch 1, acc = 0.5",
        "Batch 1, loss = 2",
        "Loss: 3",
        "acc = 0.25",
        "acc = 0.5",
        "loss = 1.5 (* 2 = 3 loss)",
    ]


def test_time(model, capsys):
    assert cli.main(["time", "-model", "net", "-iterations", "3", "-phase", "TEST"]) == 0
    lines = messages(capsys)
    assert "      data\tforward: 1 ms." in lines
    assert "        ip\tbackward: 4 ms." in lines
    assert not any("data\tbackward" in line for line in lines)
    starts = [line.split(":")[0] for line in lines[-5:]]
    assert starts[:4] == [
        "Average Forward pass",
        "Average Backward pass",
        "Average Forward-Backward",
        "Total Time",
    ]


def test_prepare_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (5, 4), (1, 2, 3)).save("a.png")
    (tmp_path / "list").write_text("a.png 0\n")
    assert cli.main(["prepare", "images", "-root", ".", "-list", "list", "-out", "db"]) == 0
    assert cli.main(["prepare", "mean", "-source", "db", "-out", "m.binaryproto"]) == 0
    assert capsys.readouterr().out == "db: 1 images\nm.binaryproto\n"
    mean = caffe_pb2.BlobProto.FromString((tmp_path / "m.binaryproto").read_bytes())
    assert list(mean.data) == [3] * 20 + [2] * 20 + [1] * 20
