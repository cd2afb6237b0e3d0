"""`prepare.dogs` on a small Stanford Dogs in the original layout."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from made_images import flat_bytes, image_bytes, left_behind, paths, records, tarred, write

import caffe
from caffe import prepare, prototxt
from caffe.cli import main as cli
from caffe.data.image_records import ImageSetOptions
from caffe.proto import caffe_pb2 as pb

MODELS = Path(__file__).parents[2] / "models"
BREEDS = [f"n02{number:06}-{name}" for number, name in enumerate(["Chihuahua", "Affenpinscher"])]
SMALL = ImageSetOptions(size=(2, 2))


@pytest.fixture
def dogs(tmp_path):
    """What images.tar and annotation.tar unpack to."""
    root = tmp_path / "dogs"
    for label, breed in enumerate(BREEDS):
        synset = breed.split("-")[0]
        for i in range(20):
            name = f"{synset}_{i}"
            write(root / "Images" / breed / f"{name}.jpg", flat_bytes(100 * label + i, "PNG"))
            write(root / "Annotation" / breed / name, b"<annotation/>")
    write(root / "Images" / BREEDS[0] / "broken.jpg", image_bytes()[:-100])
    return root


def lists(folder, train, test):
    for name, chosen in (("train", train), ("test", test)):
        lines = [f"{BREEDS[c]}/{BREEDS[c].split('-')[0]}_{i}.jpg\n" for c, i in chosen]
        write(folder / f"{name}.txt", "".join(lines).encode())
    return {"train_list": folder / "train.txt", "test_list": folder / "test.txt"}


@pytest.mark.parametrize("source", ["dogs", "dogs/Images", "images.tar", "dotted.tar"])
def test_from_tar_and_folders(tmp_path, dogs, source):
    tarred(dogs, tmp_path / "images.tar")
    if source == "dotted.tar":
        with tarfile.open(tmp_path / source, "w") as archive:
            archive.add(dogs / "Images", "./Images")
    done = prepare.dogs(tmp_path / source, tmp_path / "out", options=SMALL)
    train, val = (records(tmp_path / "out" / name) for name in ("train_lmdb", "val_lmdb"))
    assert (len(train), len(val)) in ((35, 5), (34, 6))  # whether the broken one was drawn
    assert {path.rsplit(".", 1)[1] for path in [*paths(train), *paths(val)]} == {"jpg"}
    for key, record in (train | val).items():
        number = int(key.rsplit("_", 1)[1].split(".")[0])
        assert record.pixels == bytes([100 * record.label + number] * 12)
    assert (tmp_path / "out/labels.txt").read_text().split() == BREEDS
    assert len(done.skipped) == 2
    assert "has 2, Stanford Dogs 120" in done.skipped[0]
    assert "broken.jpg': cannot decode" in done.skipped[1]


def test_a_resized_photo_of_the_usual_size(tmp_path, dogs):
    prepare.dogs(dogs, tmp_path / "out")
    assert {r.shape for r in records(tmp_path / "out/val_lmdb").values()} == {(3, 256, 256)}


def test_120_classes_in_strict_mode(tmp_path):
    for number in range(120):
        for i in range(4):
            breed = f"n02{number:06}-breed_{number}"
            write(tmp_path / f"dogs/Images/{breed}/{i}.jpg", flat_bytes(number))
    done = prepare.dogs(tmp_path / "dogs", tmp_path / "out", options=SMALL, strict=True)
    assert (done.classes, done.skipped) == (120, [])
    labels = {record.label for record in records(tmp_path / "out/train_lmdb").values()}
    assert labels == set(range(120))
    (tmp_path / f"dogs/Images/{breed}/0.jpg").write_bytes(b"")
    with pytest.raises(ValueError, match="it is empty"):
        prepare.dogs(tmp_path / "dogs", tmp_path / "new", options=SMALL, strict=True)
    assert not (tmp_path / "new").exists()


def test_official_lists(tmp_path, dogs):
    given = lists(tmp_path, [(0, 3), (1, 4), (1, 5)], [(1, 0), (0, 1), (0, 99)])
    done = prepare.dogs(dogs, tmp_path / "out", options=SMALL, **given)
    train, val = (records(tmp_path / "out" / name) for name in ("train_lmdb", "val_lmdb"))
    assert sorted(r.pixels[0] for r in train.values()) == [3, 104, 105]
    assert [r.pixels[0] for r in val.values()] == [100, 1]
    skipped = "\n".join(done.skipped)
    assert "_99.jpg', listed in" in skipped
    assert skipped.count("is in neither list") == 41 - 5


def test_bad_lists(tmp_path, dogs):
    given = lists(tmp_path, [(0, 3)], [(1, 0), (0, 3)])
    with pytest.raises(ValueError, match=r"_3\.jpg' is listed twice"):
        prepare.dogs(dogs, tmp_path / "out", **given)
    with pytest.raises(ValueError, match="give both train_list and test_list"):
        prepare.dogs(dogs, tmp_path / "out", train_list=given["train_list"])
    (tmp_path / "bad.mat").write_bytes(b"MATLAB 5.0" + bytes(9))
    mat = {"train_list": tmp_path / "bad.mat", "test_list": tmp_path / "bad.mat"}
    pytest.importorskip("scipy", reason="scipy, which .mat files need, is not installed")
    with pytest.raises(ValueError, match=r"bad\.mat' cannot be read as a Matlab file"):
        prepare.dogs(dogs, tmp_path / "out", **mat)
    assert not (tmp_path / "out").exists()


def test_matlab_lists(tmp_path, dogs):
    io = pytest.importorskip("scipy.io", reason="scipy, which .mat files need, is not installed")
    text = lists(tmp_path, [(0, 3), (1, 4)], [(1, 0), (0, 1)])
    given = {}
    for name, path in text.items():
        cells = np.array(path.read_text().split(), dtype=object).reshape(-1, 1)
        io.savemat(tmp_path / f"{name}.mat", {"file_list": cells, "labels": [[1], [2]]})
        given[name] = tmp_path / f"{name}.mat"
    prepare.dogs(dogs, tmp_path / "text", options=SMALL, **text)
    prepare.dogs(dogs, tmp_path / "mat", options=SMALL, **given)
    for name in ("train_lmdb", "val_lmdb"):
        assert records(tmp_path / "mat" / name) == records(tmp_path / "text" / name)
    io.savemat(tmp_path / "other.mat", {"x": 1})
    given["test_list"] = tmp_path / "other.mat"
    with pytest.raises(ValueError, match=r"other.mat' has no variable 'file_list'"):
        prepare.dogs(dogs, tmp_path / "new", options=SMALL, **given)


def test_without_scipy_the_extra_is_named(tmp_path, dogs, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    line = ["dogs", str(dogs), str(tmp_path / "out"), "-train_list", "a.mat", "-test_list", "b.mat"]
    assert cli.main(["prepare", *line]) == 1
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1
    assert "needs scipy: pip install 'comet-caffe[matlab]'" in error[0]
    assert not left_behind(tmp_path)


def test_the_net_that_ships_reads_what_the_command_makes(dogs, monkeypatch, capsys):
    monkeypatch.chdir(dogs.parent)
    assert cli.main(["prepare", "dogs", "dogs"]) == 0
    assert "data/dogs/val_lmdb: " in capsys.readouterr().out
    net = prototxt.read_net(MODELS / "caffenet_dogs/train_val.prototxt")
    for phase in (caffe.TRAIN, caffe.TEST):
        data = pb.NetParameter()
        data.layer.extend(net.layer[:2])
        for layer in data.layer:
            layer.data_param.batch_size = 3
        reading = caffe.Net(data, phase)
        assert reading.forward()["data"].shape == (3, 3, 227, 227)
        assert set(reading.blobs["label"].data) <= {0, 1}
        reading.close()
