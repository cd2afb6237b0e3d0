"""The tutorial's commands, run as they stand on a small folder of images."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caffe.compression_log import read_json_lines
from caffe.training_log import parse_log

ROOT = Path(__file__).parents[2]
#: Class -> its colour, in the order of the labels.
COLOURS = {"insects": (200, 60, 40), "plants": (40, 180, 60), "sand_and_sky": (60, 80, 210)}


def commands() -> str:
    """All blocks of the tutorial that are marked as shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/tutorial.md").read_text(), re.M | re.S)
    assert len(blocks) >= 4
    return "".join(blocks)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with models/, photos/ and the programs that the tutorial calls."""
    shutil.copytree(ROOT / "models" / "photo_cnn", tmp_path / "models" / "photo_cnn")
    net = tmp_path / "models" / "photo_cnn" / "train_val.prototxt"
    text = net.read_text()
    assert "batch_size: 32" in text
    net.write_text(text.replace("batch_size: 32", "batch_size: 8"))  # a quarter of the time
    rng = np.random.default_rng(0)
    for name, colour in COLOURS.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(20):
            pixels = rng.normal(colour, 40, (60, 80, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"photo {number}.jpg")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, options in (("caffe", "-m caffe "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {options}"$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return tmp_path


def test_every_command(place: Path) -> None:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands()],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    data = place / "data" / "photos"
    assert (data / "labels.txt").read_text().split() == list(COLOURS)
    lines = (data / "train.txt").read_text().splitlines() + (
        data / "val.txt"
    ).read_text().splitlines()
    assert len(set(lines)) == 60
    assert all(line.split("/")[0] == list(COLOURS)[int(line[-1])] for line in lines)

    log = parse_log(data / "train.log")
    assert log.test[-1]["accuracy"] > 0.9
    assert (data / "loss.png").stat().st_size > 1000
    records = read_json_lines(data / "run.jsonl")
    assert len(records) == 200
    assert records[-1]["ratio"] > 2
    scores = np.load(data / "scores.npy")
    assert scores.shape == (20, 3)
    assert f"{np.mean(scores.argmax(axis=1) == 0):.0%} are insects" in done.stdout
    assert np.mean(scores.argmax(axis=1) == 0) > 0.9
