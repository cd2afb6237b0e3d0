"""The examples run, and do what they say."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe.data.lmdb_writer import LmdbWriter

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


def bright_quarter(label, rng):
    """A 28x28 image whose brightest stripe tells the label, 0 to 9."""
    image = rng.integers(0, 60, (1, 28, 28), dtype=np.uint8)
    image[0, 2 * label + 3 : 2 * label + 8] += 150
    return image


@pytest.fixture
def databases(tmp_path):
    rng = np.random.default_rng(0)
    for part, count in (("train", 400), ("test", 100)):
        with LmdbWriter(tmp_path / f"stripes_{part}_lmdb") as writer:
            for number in range(count):
                label = number % 10
                datum = caffe.io.array_to_datum(bright_quarter(label, rng), label)
                writer.put(f"{number:08}", datum.SerializeToString())
    return tmp_path


def test_lenet_net_spec_and_classify_image(databases, tmp_path, capsys, example) -> None:
    weights = tmp_path / "lenet.caffemodel"
    accuracy = example("lenet_net_spec").main(
        f"-data {databases} -iterations 60 -every 30 -batch_size 20 -test_batches 1 "
        f"-out {weights}".split()
    )
    assert accuracy > 0.9
    out = capsys.readouterr().out
    assert "iteration 60: loss" in out
    assert "conv2    bounded" in out

    Image.fromarray(bright_quarter(7, np.random.default_rng(3))[0]).save(tmp_path / "a.png")
    (tmp_path / "labels.txt").write_text("\n".join(f"stripe {index}" for index in range(10)))
    n = caffe.NetSpec()  # the example's net without its data
    n.data = caffe.layers.Input(shape=dict(dim=[1, 1, 28, 28]))
    deploy = example("lenet_net_spec").lenet("", 1)
    deploy.layer[0].CopyFrom(n.to_proto().layer[0])
    del deploy.layer[-2:]
    deploy.layer.add(name="prob", type="Softmax", bottom=["score"], top=["prob"])
    (tmp_path / "deploy.prototxt").write_text(str(deploy))
    best = example("classify_image").main(
        f"{tmp_path}/a.png -model {tmp_path}/deploy.prototxt -weights {weights} -best 3 "
        f"-labels {tmp_path}/labels.txt".split()
    )
    assert best[0][0] == "stripe 7"
    assert len(best) == 3


def test_fine_tuning(databases, example) -> None:
    tuned, fresh = example("fine_tuning").main(
        f"-data {databases} -classes 3,6 -images 50 -iterations 60 -tuning 10".split()
    )
    assert tuned > 0.9
    assert tuned >= fresh


def test_fine_tuning_takes_all_but_the_last_layer(tmp_path, example) -> None:
    module = example("fine_tuning")
    first = caffe.Net(module.classifier((1, 28, 28), "score", 8), caffe.TEST)
    first.save(tmp_path / "first.caffemodel")
    tuned = caffe.Net(module.classifier((1, 28, 28), "other", 2, tuned=True), caffe.TEST)
    before = tuned.params["other"][0].data.copy()
    tuned.copy_from(tmp_path / "first.caffemodel")
    for name in ("conv1", "conv2", "fc1"):
        assert np.array_equal(tuned.params[name][0].data, first.params[name][0].data)
    assert np.array_equal(tuned.params["other"][0].data, before)


def test_siamese(databases, example) -> None:
    assert example("siamese").main(f"-data {databases} -iterations 150 -pairs 1000".split()) > 0.9


def test_siamese_branches_agree(example) -> None:
    """Both branches share their weights: swapping the images of a pair swaps the features."""
    module = example("siamese")
    net = caffe.Net(module.siamese((1, 28, 28), 4), caffe.TEST)
    rng = np.random.default_rng(0)
    images = rng.random((module.BATCH, 2, 28, 28), dtype=np.float32)
    features = []
    for pair in (images, images[:, ::-1]):
        net.set_input_arrays(np.ascontiguousarray(pair), np.ones(module.BATCH, np.float32))
        net.forward()
        features.append([net.blobs[name].data.copy() for name in ("feature", "feature_second")])
    assert np.array_equal(features[0][0], features[1][1])
    assert np.array_equal(features[0][1], features[1][0])
    assert features[0][0].std() > 0


def test_fashion_arrays(databases, capsys, example) -> None:
    counts = example("fashion_arrays").main([str(databases / "stripes_test_lmdb")])
    assert counts == dict.fromkeys(range(10), 10)
    assert "100 images of 1 x 28 x 28" in capsys.readouterr().out


def test_net_surgery(tmp_path, example) -> None:
    out = tmp_path / "everywhere.caffemodel"
    assert example("net_surgery").main(["-out", str(out)]) < 1e-5
    assert out.exists()


def test_python_data_layer(example) -> None:
    assert example("python_data_layer").main(["-iterations", "150"]) > 0.85


def test_as_scripts() -> None:
    """A Python layer is found in the very script that is run."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "python_data_layer.py"), "-iterations", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "accuracy after 2 iterations" in done.stdout


def test_the_readme_names_all() -> None:
    text = (EXAMPLES / "readme.md").read_text()
    names = [path.name for path in EXAMPLES.glob("*.py")]
    assert names
    assert [name for name in names if f"`{name}`" not in text] == []
