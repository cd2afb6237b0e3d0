"""`caffe memory` and -memory_limit, as users run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NET = """
name: "small"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 8 dim: 3 dim: 64 dim: 64 } shape { dim: 8 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 1 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "ip" type: "InnerProduct" bottom: "conv2" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "net.prototxt" base_lr: 1e-4 lr_policy: "fixed" momentum: 0.9 max_iter: 2
snapshot_after_train: false random_seed: 1 solver_mode: CPU compression_param { mode: %s }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "solver.prototxt").write_text(SOLVER % "LOSSLESS")
    (tmp_path / "plain.prototxt").write_text(SOLVER % "NONE")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "caffe", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_table_and_json_say_the_same(folder: Path) -> None:
    table = run(folder, "memory", "-solver", "solver.prototxt")
    assert table.returncode == 0, table.stderr
    assert "relu1" in table.stdout and "Peak of plain Caffe" in table.stdout
    done = run(folder, "memory", "-solver", "solver.prototxt", "-json")
    figures = json.loads(done.stdout)
    assert figures["planned_peak"] < figures["plain_peak"]
    assert f"{figures['planned_peak'] / 2**20:.1f} MiB" in table.stdout
    kept = {value["producer"]: value["kept_as"] for value in figures["values"]}
    assert kept["relu1"] == "lossless"
    assert kept["conv2"] == "not kept"
    assert figures["stored"] >= sum(value["stored"] for value in figures["values"])


def test_plain_caffe_keeps_everything(folder: Path) -> None:
    figures = json.loads(run(folder, "memory", "-solver", "plain.prototxt", "-json").stdout)
    assert figures["planned_peak"] == figures["plain_peak"]
    assert {value["kept_as"] for value in figures["values"]} == {"raw"}
    assert figures["stored"] >= sum(value["stored"] for value in figures["values"])


def test_training_keeps_a_limit_or_says_the_least(folder: Path) -> None:
    figures = json.loads(run(folder, "memory", "-solver", "solver.prototxt", "-json").stdout)
    limit = figures["fixed"] + int(0.7 * figures["planned_peak"])
    limited = run(
        folder, "memory", "-solver", "solver.prototxt", "-json", "-memory_limit", str(limit)
    )
    smaller = json.loads(limited.stdout)
    assert 0 < smaller["slice"] < 8
    assert smaller["fixed"] + smaller["planned_peak"] <= limit
    trained = run(folder, "train", "-solver", "solver.prototxt", "-memory_limit", str(limit))
    assert trained.returncode == 0, trained.stderr
    assert f"Batches go in slices of {smaller['slice']} samples" in trained.stderr
    assert "Memory expected:" in trained.stderr and "(expected" in trained.stderr
    refused = run(folder, "train", "-solver", "solver.prototxt", "-memory_limit", "100K")
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("caffe: error: memory_limit: 0 MiB are not")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-memory_limit", "much"], "needs to be a size such as 2G"),
        (["-memory_limit", "0"], "needs to be a size such as 2G"),
        (["extra"], "unexpected argument"),
    ],
)
def test_one_line_for_mistakes(folder: Path, arguments: list[str], words: str) -> None:
    done = run(folder, "memory", "-solver", "solver.prototxt", *arguments)
    assert done.returncode == 1
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
