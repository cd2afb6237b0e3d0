"""The commands as users run them, on a small database: log lines, files, signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from caffe.data.lmdb_writer import LmdbWriter
from caffe.proto import caffe_pb2 as pb

NET = """
name: "small"
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "records" backend: LMDB batch_size: 8 } transform_param { scale: 0.004 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "conv2" type: "Convolution" bottom: "conv" top: "conv2"
  convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv2" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 max_iter: 12 display: 4
test_iter: 3 test_interval: 6 snapshot: 6 snapshot_prefix: "small" random_seed: 1 solver_mode: CPU
compression_param { mode: ADAPTIVE }
"""
PREFIX = r"^[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \S+:\d+\] "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    with LmdbWriter(tmp_path / "records") as writer:
        for index in range(40):
            datum = pb.Datum(channels=1, height=16, width=16, label=index % 4)
            image = rng.integers(0, 60, (16, 16)) + 45 * (index % 4)
            datum.data = image.astype(np.uint8).tobytes()
            writer.put(f"{index:08d}".encode(), datum.SerializeToString())
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "caffe", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    assert result.returncode == 0, result.stderr
    return [re.sub(PREFIX, "", line) for line in result.stderr.splitlines()]


def test_train_logs_what_parsers_read(folder: Path) -> None:
    result = run(folder, "train", "--solver=solver.prototxt", "-compression_log", "log.jsonl")
    log = lines(result)
    assert all(re.match(PREFIX, line) for line in result.stderr.splitlines())
    number = r"[-+.e0-9]+"
    for iteration in (0, 4, 8):
        pattern = (
            rf"Iteration {iteration} \({number} iter/s, {number}s/{number} iters\), loss = {number}"
        )
        assert any(re.fullmatch(pattern, line) for line in log), pattern
        assert f"Iteration {iteration}, lr = 0.01" in log
    for iteration in (0, 6, 12):
        assert f"Iteration {iteration}, Testing net (#0)" in log
    pattern = rf"    Test net output #1: loss = {number} \(\* 1 = {number} loss\)"
    assert sum(bool(re.fullmatch(pattern, line)) for line in log) == 3
    assert any(re.fullmatch(rf"    Test net output #0: accuracy = {number}", line) for line in log)
    assert any(re.fullmatch(rf"    Train net output #0: loss = {number} .*", line) for line in log)
    assert sum("Compression: " in line for line in log) == 12
    assert any(line.startswith("layer ") and "non-zero" in line for line in log)
    assert log[-1] == "Optimization Done."
    assert {path.name for path in folder.glob("small_iter_*")} == {
        f"small_iter_{n}.{kind}" for n in (6, 12) for kind in ("caffemodel", "solverstate")
    }
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [record["iteration"] for record in records] == list(range(12))
    for record in records:
        assert record["stored_bytes"] < record["raw_bytes"]
        assert {"conv2", "ip"} <= {row["layer"] for row in record["layers"]}


def test_resume_weights_test_and_time(folder: Path) -> None:
    lines(run(folder, "train", "-solver", "solver.prototxt"))
    reference = (folder / "small_iter_12.caffemodel").read_bytes()
    (folder / "small_iter_12.caffemodel").unlink()
    log = lines(
        run(folder, "train", "-solver", "solver.prototxt", "-snapshot", "small_iter_6.solverstate")
    )
    assert any("small_iter_6.solverstate" in line for line in log)
    assert (folder / "small_iter_12.caffemodel").read_bytes() == reference

    log = lines(
        run(folder, "test", "-model", "net.prototxt", "-weights", "small_iter_12.caffemodel",
            "-iterations", "2")
    )  # fmt: skip
    assert any(re.fullmatch(r"Batch 1, accuracy = [.0-9]+", line) for line in log)
    log = lines(run(folder, "time", "-model", "net.prototxt", "-iterations", "2"))
    assert any("Average Forward-Backward" in line for line in log)
    assert any(re.match(r"\s*conv2\s+backward", line) for line in log)

    both = run(folder, "train", "-solver", "solver.prototxt", "-snapshot",
               "small_iter_6.solverstate", "-weights", "small_iter_12.caffemodel")  # fmt: skip
    assert both.returncode == 1


def test_checks_of_bounds_are_logged_and_change_nothing(folder: Path) -> None:
    lines(run(folder, "train", "-solver", "solver.prototxt"))
    reference = (folder / "small_iter_12.caffemodel").read_bytes()
    log = lines(run(folder, "train", "-solver", "solver.prototxt", "-check_bounds", "5"))
    assert (folder / "small_iter_12.caffemodel").read_bytes() == reference
    assert [line for line in log if "errors of gradients" in line] == [
        "Iteration 5, errors of gradients",
        "Iteration 10, errors of gradients",
    ]
    assert sum(bool(re.match(r"    conv2 .*%$", line)) for line in log) == 2
    refused = run(folder, "train", "-solver", "solver.prototxt", "-check_bounds", "-1")
    assert "check_bounds is -1, needs 0 or more" in refused.stderr


def test_hdf5_snapshots_to_resume_start_from_and_test(folder: Path) -> None:
    pytest.importorskip("h5py", reason="h5py is not installed")
    text = SOLVER + 'type: "Adam" snapshot_format: HDF5'
    (folder / "solver.prototxt").write_text(text)
    log = lines(run(folder, "train", "-solver", "solver.prototxt"))
    assert "Snapshotting to HDF5 file small_iter_6.caffemodel.h5" in log
    assert "Snapshotting solver state to HDF5 file small_iter_6.solverstate.h5" in log
    final = [line for line in log if "Test net output #1" in line][-1]
    resume = ("train", "-solver", "solver.prototxt", "-snapshot", "small_iter_6.solverstate.h5")
    assert [x for x in lines(run(folder, *resume)) if "Test net output #1" in x][-1] == final
    weights = ("-weights", "small_iter_12.caffemodel.h5", "-iterations", "3")
    loss = final.split("loss = ")[1].split(" ")[0]
    log = lines(run(folder, "test", "-model", "net.prototxt", *weights))
    # The test net of training reads other batches; its loss is not the same, but near.
    shown = next(line for line in log if line.startswith("loss = ")).split(" ")[2]
    assert abs(float(shown) - float(loss)) < 0.5
    assert "Finetuning from small_iter_12.caffemodel.h5" in lines(
        run(folder, "train", "-solver", "solver.prototxt", *weights[:2])
    )


@pytest.mark.parametrize(
    ("flags", "sent", "snapshots"),
    [
        ((), signal.SIGINT, True),
        (("-sighup_effect", "stop"), signal.SIGHUP, True),
        (("-sigint_effect", "snapshot"), signal.SIGINT, True),
    ],
)
def test_signals(folder: Path, flags: tuple[str, ...], sent: int, snapshots: bool) -> None:
    text = SOLVER.replace("max_iter: 12", "max_iter: 100000").replace("snapshot: 6", "")
    (folder / "solver.prototxt").write_text(text.replace("display: 4", "display: 1"))
    process = subprocess.Popen(
        [sys.executable, "-m", "caffe", "train", "-solver", "solver.prototxt", *flags],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    sent_at = False
    for line in process.stderr:
        if "Iteration 3" in line and not sent_at:
            os.kill(process.pid, sent)
            sent_at = True
        if "Snapshotting solver state" in line and "snapshot" in flags:
            os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    process.stderr.close()
    assert sent_at
    if "snapshot" not in flags:
        assert process.returncode == 0
    states = list(folder.glob("small_iter_*.caffemodel"))
    assert len(states) == 1
