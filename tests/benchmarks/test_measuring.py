"""The benchmarks' own instruments, on what can be counted by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import accuracy
import accuracy_report
import memory_report
from caffe.proto import caffe_pb2 as pb
from photographs import MEAN, Batches, write_crops

N = 500


def test_live_and_saved_bytes_of_a_small_net() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from torch_memory import LiveStorages, saved_bytes  # noqa: PLC0415 - needs torch

    net = torch.nn.Sequential(torch.nn.Linear(100, 200), torch.nn.ReLU(), torch.nn.Linear(200, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    parameters = 4 * sum(value.numel() for value in net.parameters())

    def step(turn: object) -> None:
        optimizer.zero_grad()
        scores = net(torch.randn(N, 100))
        loss = scores.square().mean()
        turn()  # type: ignore[operator]
        loss.backward()
        del scores, loss
        optimizer.step()

    step(lambda: None)
    with LiveStorages(net, optimizer) as storages:
        step(storages.turn)
    kept = 4 * N * (100 + 200 + 10)  # the input, what ReLU gave, the scores
    assert kept <= storages.most_at_turn < kept + 64
    # Widest where ReLU goes backward: gradients of its output and of its input.
    assert kept + 4 * N * 2 * 200 <= storages.peak + 4 * N * 10  # the scores may be gone
    assert storages.peak < kept + 4 * N * (2 * 200 + 10) + 64
    assert 2 * parameters <= storages.peak_with_parameters - storages.peak <= 3 * parameters
    assert storages.timeline[-1]["live"] < 4 * N * 100 + 64  # the images at most
    images = torch.randn(N, 100)
    saved = saved_bytes(net, lambda: net(images).square().mean())
    assert saved == kept


def test_crops_are_parts_of_the_photographs(tmp_path: Path) -> None:
    folder = tmp_path / "photographs"
    folder.mkdir()
    colours = [(250, 10, 20), (30, 240, 40)]
    for number, colour in enumerate(colours):
        Image.new("RGB", (90, 60), colour).save(folder / f"{number}.png")
    what = write_crops(tmp_path / "crops.npz", folder, side=32, count=12)
    assert what == "random crops of 2 photographs (photographs)"
    batches = Batches(str(tmp_path / "crops.npz"))
    assert batches.shape == (3, 32, 32)
    seen = set()
    for _ in range(3):
        images, labels = batches.next(5)
        seen.update(labels.tolist())
        for image, label in zip(images, labels):
            blue_green_red = np.array(colours[label][::-1], np.float32).reshape(3, 1, 1)
            np.testing.assert_array_equal(
                image, np.broadcast_to(blue_green_red - MEAN[0], (3, 32, 32))
            )
    assert seen == {0, 1}


def test_a_failed_configuration_is_reported_beside_the_others() -> None:
    common = {"net": "n", "batch": 2, "steps": 4, "slice": 1, "images": "some"}
    good = {
        **common, "mode": "NONE", "kept": 2**21, "peak": 3 * 2**20, "peak_with_parameters": 2**22,
        "resident": 2**23, "seconds": 2.0, "losses": [2.0, 1.5],
    }  # fmt: skip
    torch_record = {**good, "mode": "PyTorch", "seconds": 1.0, "saved_tensors": 2**22}
    bad = {**common, "mode": "LOSSLESS", "error": "killed"}
    lines = memory_report.tables([good, bad, torch_record])
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ") for line in lines}
    assert cells["LOSSLESS"][1] == "killed"
    assert cells["NONE"][2:] == ["2", "1 / 2.0", "3", "4", "8", "2.00", "1.00", "1.500"]
    assert cells["PyTorch"][8] == "0.50"


FIELDS = ("sigma_factor", "bound_cap", "dither", "budget", "negative_factor")


def test_runs_of_the_accuracy_study_begin_with_the_exact_ones() -> None:
    runs = list(accuracy.plan(["fashion_cnn", "resnet"]))
    assert len(set(runs)) == len(runs)
    assert [(net, setting.name, seed) for net, setting, seed in runs[:4]] == [
        ("fashion_cnn", "exact", 1), ("resnet", "exact", 1),
        ("fashion_cnn", "exact", 2), ("resnet", "exact", 2),
    ]  # fmt: skip
    written = {
        setting.name: text_format.Parse(setting.text, pb.CompressionParameter())
        for _, setting, _ in runs
    }
    defaults = pb.CompressionParameter()
    changed = {
        name: {field for field in FIELDS if getattr(param, field) != getattr(defaults, field)}
        for name, param in written.items()
    }
    assert changed["default"] == set()
    assert all(written["default"].HasField(field) for field in FIELDS)
    assert changed["default, no dither"] == {"dither"}
    assert changed["cap 0.3"] == {"sigma_factor", "bound_cap"}


def test_differences_are_taken_seed_by_seed() -> None:
    def record(setting: str, seed: int, accuracy: float) -> dict[str, object]:
        return {"net": "n", "setting": setting, "seed": seed, "accuracies": [0.5, accuracy],
                "loss": 1.0, "ratio": 1.0, "kept": 0, "seconds": 1.0, "epochs": 2,
                "iterations": 9}  # fmt: skip

    records = [record("exact", 1, 0.90), record("exact", 2, 0.92), record("cap", 2, 0.93)]
    assert "| cap | 1 | 0.9300 |  | +1.00 |" in "\n".join(accuracy_report.tables(records))
    records.append(record("cap", 1, 0.93))
    # Differences of +3 and +1: mean 2, standard error sqrt(2) / sqrt(2).
    assert "+2.00 ± 1.00" in "\n".join(accuracy_report.tables(records))
