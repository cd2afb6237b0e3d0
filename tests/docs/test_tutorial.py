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

import caffe
from caffe.cli.prepare import USAGE
from caffe.compression_log import read_json_lines
from caffe.training_log import parse_log

ROOT = Path(__file__).parents[2]
#: Class -> its colour, in the order of the labels.
COLOURS = {"insects": (200, 60, 40), "plants": (40, 180, 60), "sand_and_sky": (60, 80, 210)}


def commands() -> list[str]:
    """The blocks of the tutorial that are marked as shell: lists, databases, and what follows."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/tutorial.md").read_text(), re.M | re.S)
    assert len(blocks) >= 4
    return blocks


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


def run(place: Path, blocks: list[str]) -> str:
    """Run the blocks in one shell; returns its standard output."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "".join(blocks)],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_first_steps_in_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`caffe prepare folder` makes what the lists and the databases by hand make."""
    command = "caffe prepare folder photos data/photos -size 64"
    assert f"\n    {command}\n" in (ROOT / "docs/tutorial.md").read_text()
    if "folder" not in USAGE:
        pytest.skip("this version has no `caffe prepare folder`")
    run(place, [command])
    files = {"train_lmdb", "val_lmdb", "mean.binaryproto", "labels.txt"}
    assert {path.name for path in (place / "data" / "photos").iterdir()} == files
    assert (place / "data" / "photos" / "labels.txt").read_text().split() == list(COLOURS)
    monkeypatch.chdir(place)
    net = caffe.Net(str(place / "models/photo_cnn/train_val.prototxt"), caffe.TEST)
    net.forward()
    assert net.blobs["data"].data.shape == (10, 3, 56, 56)


def test_every_command(place: Path) -> None:
    out = run(place, commands())
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
    assert f"{np.mean(scores.argmax(axis=1) == 0):.0%} are insects" in out
    assert np.mean(scores.argmax(axis=1) == 0) > 0.9
