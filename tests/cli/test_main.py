"""The command `caffe`: help, errors in one line, exit status."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from caffe import mode
from caffe.cli import device_query
from caffe.cli import main as cli
from caffe.proto import caffe_pb2


def run(capsys, *words):
    status = cli.main(list(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_help_lists_commands(capsys):
    status, out, err = run(capsys, "help")
    assert (status, err) == (0, "")
    assert all(name in out for name in cli.COMMANDS)
    assert run(capsys)[0] == 1


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_each_command(capsys, command):
    for words in (["help", command], [command, "--help"]):
        status, out, err = run(capsys, *words)
        assert (status, err) == (0, "")
        assert out.startswith(f"usage: caffe {command}")


STATE = caffe_pb2.SolverState(iter=3, history=[caffe_pb2.BlobProto(data=[1])])
FILES = {
    "solver.prototxt": 'net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 1',
    "typo.prototxt": 'net: "net.prototxt"\nbase_rl: 0.1',
    "net.prototxt": 'layer { name: "x" type: "Input" top: "x" }',
    "broken.prototxt": "layer {\n  name: 3 }",
    "w.caffemodel": STATE.SerializeToString(),
    "empty": "",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trian", "unknown command 'trian'; did you mean 'train'?"),
        ("help tset", "unknown command 'tset'; did you mean 'test'?"),
        ("train", "flag -solver is needed: the solver prototxt to train with"),
        ("train -solvr x", "unknown flag '-solvr'; did you mean '-solver'?"),
        ("train -solver none", "solver file 'none' does not exist (working directory {folder})"),
        ("train -solver empty", "solver file 'empty' is empty"),
        ("train -solver .", "solver file expected, but '.' is a folder"),
        (
            "train -solver typo.prototxt",
            "typo.prototxt:2:1: SolverParameter has no field 'base_rl'; did you mean 'base_lr'?",
        ),
        (
            "train -solver net.prototxt",
            "net.prototxt:1:1: 'layer' is a field of a net prototxt, but a solver prototxt was "
            "expected; give the solver whose 'net:' field names this file",
        ),
        (
            "train -solver solver.prototxt -weights a -snapshot b",
            "-snapshot (resume) and -weights (start from) exclude each other",
        ),
        (
            "train -solver solver.prototxt -snapshot none",
            "solver state file 'none' does not exist (working directory {folder})",
        ),
        (
            "train -solver solver.prototxt -weights none",
            "weights file 'none' does not exist (working directory {folder})",
        ),
        ("train solver.prototxt", "unexpected argument 'solver.prototxt'; flags start with a dash"),
        (
            "train -solver solver.prototxt -sigint_effect halt",
            "flag -sigint_effect is 'halt', but must be one of stop, snapshot, none",
        ),
        ("test", "flag -model is needed: the net prototxt to score"),
        ("test -model net.prototxt", "flag -weights is needed: the .caffemodel to score"),
        (
            "test -model net.prototxt -weights w.caffemodel -iterations 0",
            "flag -iterations is 0, needs to be 1 or more",
        ),
        (
            "test -model broken.prototxt -weights w.caffemodel",
            "broken.prototxt:2:9: 'name': expected string but found: '3'",
        ),
        (
            "test -model net.prototxt -weights w.caffemodel",
            "'w.caffemodel' is a .solverstate, but a .caffemodel (weights) was expected; give the "
            ".caffemodel that was written with it",
        ),
        ("time", "flag -model is needed: the net prototxt to measure"),
        (
            "time -model net.prototxt -phase train",
            "flag -phase is 'train', but must be one of TRAIN, TEST",
        ),
        ("prepare", "what shall be prepared? One of dogs, imagenet, folder, cifar10"),
        ("prepare fasion-mnist", "cannot prepare 'fasion-mnist'; did you mean 'fashion-mnist'?"),
        ("prepare mean -source x", "flag -out is needed (caffe help prepare)"),
        (
            "prepare images -root . -list net.prototxt -out db -resize_height 3",
            "give both -resize_height and -resize_width, or neither",
        ),
        (
            "prepare idx -source . -out out",
            "no file 'train-images-idx3-ubyte' or 'train-images-idx3",
        ),
    ],
)
def test_errors_are_one_line_and_status_1(capsys, folder, line, message):
    status, out, err = run(capsys, *line.split())
    assert (status, out) == (1, "")
    lines = [line for line in err.splitlines() if line.startswith("caffe: error: ")]
    assert len(lines) == 1
    assert "Traceback" not in err
    assert lines[0].startswith("caffe: error: " + message.format(folder=folder))


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_traceback_on_demand(capsys, monkeypatch, how):
    words = ["train", "-solver", "none"]
    if how == "flag":
        words.append("--verbose")
    else:
        monkeypatch.setenv("CAFFE_TRACEBACK", "1")
    status, _, err = run(capsys, *words)
    assert status == 1
    assert err.startswith("Traceback")
    assert "caffe: error: solver file 'none'" in err


def test_device_query(capsys):
    status, out, _ = run(capsys, "device_query")
    assert status == 0
    assert set(device_query.describe_machine()) == {line.split(":")[0] for line in out.splitlines()}
    assert "oneDNN" in out


def test_gpu_flag_warns_once_and_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(mode, "_warned", False)
    for warnings in (1, 0):
        status, out, err = run(capsys, "device_query", "-gpu", "all")
        assert (status, err.count("computing on the CPU")) == (0, warnings)
        assert out


def test_as_a_module_and_with_a_closed_pipe():
    command = [sys.executable, "-m", "caffe", "help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: caffe COMMAND")
    read, write = os.pipe()
    os.close(read)
    # Output that Python buffers, as it does for users, fails only when it is flushed.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, env=buffered
    )
    os.close(write)
    assert "Exception" not in done.stderr
