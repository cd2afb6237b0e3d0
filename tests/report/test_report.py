"""The report of two runs: measuring, the table, the verdict and the picture."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from caffe import prototxt
from caffe.proto import caffe_pb2 as pb
from caffe.report import compare, plot, run

NET = """
layer {
  name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 8 dim: 2 dim: 16 dim: 16 }
    shape { dim: 8 }
    data_filler { type: "gaussian" }
    data_filler { type: "constant" value: 1 }
  }
}
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc"
  inner_product_param { num_output: 3 weight_filler { type: "msra" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "fc" bottom: "label" top: "accuracy"
  include { phase: TEST } }
"""
SOLVER = (
    'net: "{net}" base_lr: 0.01 lr_policy: "fixed" test_iter: 1 test_interval: 10 solver_mode: CPU'
)


@pytest.fixture
def solver_file(tmp_path: Path) -> Path:
    (tmp_path / "net.prototxt").write_text(NET)
    file = tmp_path / "solver.prototxt"
    file.write_text(SOLVER.format(net=tmp_path / "net.prototxt"))
    return file


def train(solver_file: Path, mode: str) -> run.Run:
    return run.train(prototxt.read_solver(solver_file), mode, iterations=3, seed=1)


def test_compression_keeps_less_and_learns_the_same(solver_file: Path) -> None:
    plain = train(solver_file, "NONE")
    gc.collect()  # the memory tracker counts the whole process
    compressed = train(solver_file, "ADAPTIVE")
    assert len(plain.losses) == len(compressed.losses) == 3
    assert plain.losses[0] == compressed.losses[0]
    assert compressed.kept_bytes < plain.kept_bytes
    assert compressed.peak_bytes < plain.peak_bytes
    assert compressed.summary.ratio > 2
    assert set(compressed.ratios) == {row.layer for row in compressed.rows if row.form == "bounded"}
    assert not plain.ratios


def test_a_saved_run_loads_equal(solver_file: Path, tmp_path: Path) -> None:
    before = train(solver_file, "ADAPTIVE")
    before.save(tmp_path / "run.json")
    assert run.Run.load(tmp_path / "run.json") == before


def test_program_reports_a_missing_solver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--mode", "NONE", "--iterations", "1", "--out", str(tmp_path / "run.json")]
    assert run.main(["--solver", str(tmp_path / "none.prototxt"), *arguments]) == 1
    assert "none.prototxt" in capsys.readouterr().err
    assert not (tmp_path / "run.json").exists()


def made_up(mode: str, accuracy: float, seconds: float, kept: int) -> run.Run:
    return run.Run(mode, 2, 1, accuracy=accuracy, seconds=seconds, kept_bytes=kept)


def test_side_by_side_shows_both_and_the_factor() -> None:
    plain, compressed = made_up("NONE", 0.9, 10, 40 << 20), made_up("ADAPTIVE", 0.89, 20, 4 << 20)
    lines = compare.side_by_side(plain, compressed)
    kept = next(line for line in lines if line.startswith("activations kept")).split()
    assert kept[-5:] == ["40.0", "MiB", "4.0", "MiB", "10.0x"]
    assert lines[-1].split()[-1] == "0.50x"


@pytest.mark.parametrize(
    ("accuracy", "problem"), [(0.90, None), (0.896, None), (0.88, "2.00 points"), (0.86, "below")]
)
def test_verdict(accuracy: float, problem: str | None) -> None:
    found = compare.verdict(
        made_up("NONE", 0.9, 1, 1), made_up("ADAPTIVE", accuracy, 1, 1), 0.87, 0.5
    )
    assert problem in found if problem else found is None


def test_running_mean() -> None:
    np.testing.assert_allclose(plot.running_mean([1, 3, 5, 7], 2), [1, 2, 4, 6])


def test_program_compares_and_draws(
    solver_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plots")
    out = tmp_path / "out"
    arguments = ["--solver", str(solver_file), "--iterations", "2", "--out", str(out)]
    assert compare.main(arguments) == 0
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "test accuracy" in capfd.readouterr().out
    assert compare.main([*arguments, "--least-accuracy", "1.1"]) == 1
    assert "is below 1.1" in capfd.readouterr().err


def test_all_modes_can_be_asked_for() -> None:
    assert compare.PLAIN in pb.CompressionParameter.Mode.keys()  # noqa: SIM118 - no mapping
    assert compare.COMPRESSED in pb.CompressionParameter.Mode.keys()  # noqa: SIM118
