"""`prepare.folder`: any folder of class folders, with all that lies in real ones."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from made_images import (
    colours,
    flat_bytes,
    left_behind,
    paths,
    records,
    tarred,
    write,
    write_good,
    write_messy,
)
from PIL import Image

from caffe import prepare
from caffe.cli import main as cli
from caffe.data import image_records, image_tree
from caffe.data.image_records import ImageSetOptions
from caffe.data.mean import compute_mean
from caffe.data.transform import read_mean

ALL = ["labels.txt", "mean.binaryproto", "train_lmdb", "val_lmdb"]


def packed(target, kind):
    write_good(target.parent / "unpacked", ["a", "b"], 9)
    return tarred(target.parent / "unpacked", target, f"w:{kind}")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def messy(tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    good, bad = write_messy(root)
    return root, good, bad


def test_every_image_is_there_and_the_rest_is_explained(tmp_path, messy):
    root, good, bad = messy
    done = prepare.folder(root, tmp_path / "out")
    train, val = (records(tmp_path / "out" / name) for name in ("train_lmdb", "val_lmdb"))
    assert sorted([*paths(train), *paths(val)]) == good
    assert {record.shape for record in (train | val).values()} == {(3, 256, 256)}
    assert len(done.skipped) == len(bad)
    for path, reason in bad.items():
        lines = [line for line in done.skipped if path in line]
        assert len(lines) == 1, path
        assert reason in lines[0]
    assert done.hidden == 3
    assert done.classes == 4
    assert (tmp_path / "out/labels.txt").read_text() == "cats\ndogs\nempty\nfoxes\n"
    for key, record in (train | val).items():
        assert record.label == ["cats", "dogs", "empty", "foxes"].index(key[9:].split("/")[0])
    assert done.databases == {
        tmp_path / "out/train_lmdb": len(train),
        tmp_path / "out/val_lmdb": len(val),
    }
    assert names(tmp_path / "out") == ALL
    assert not left_behind(tmp_path / "out")


def test_tar_and_folder_give_the_same_records(tmp_path, messy):
    """Links within an archive are followed; what points out of it cannot be."""
    root, good, _ = messy
    archive = tarred(root, tmp_path / "photos.tar")
    prepare.folder(root, tmp_path / "a", train_share=1)
    done = prepare.folder(archive, tmp_path / "b", train_share=1)
    found = records(tmp_path / "b/train_lmdb")
    assert sorted(paths(found)) == [path for path in good if path != "foxes/o.png"]
    same = {path: record[0] for path, record in zip(paths(found), found.values())}
    other = records(tmp_path / "a/train_lmdb")
    for path, record in zip(paths(other), other.values()):
        assert same.get(path, record[0]) == record[0]
    assert any("foxes': a link to no file in the archive" in line for line in done.skipped)


def test_pixels_labels_and_mean(tmp_path):
    pixels = colours(3, 5, 4)
    for name in ("b", "a"):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.fromarray(pixels + (name == "b")).save(tmp_path / "in" / name / "x.png")
    options = ImageSetOptions(size=(5, 4))
    prepare.folder(tmp_path / "in", tmp_path / "out", options=options, train_share=1)
    assert names(tmp_path / "out") == [name for name in ALL if name != "val_lmdb"]
    found = {record.label: record for record in records(tmp_path / "out/train_lmdb").values()}
    stored = pixels[:, :, ::-1].transpose(2, 0, 1)
    assert found[0].pixels == stored.tobytes()
    assert found[1].pixels == (stored + 1).tobytes()
    mean = read_mean(tmp_path / "out/mean.binaryproto")
    expected = (stored.astype(float) + (stored + 1)) / 2
    np.testing.assert_allclose(mean, expected, rtol=1e-6)


def test_the_mean_is_that_of_the_training_database(tmp_path):
    write_good(tmp_path / "in", ["a", "b"], 10)
    prepare.folder(tmp_path / "in", tmp_path / "out", options=ImageSetOptions(size=(3, 3)))
    made = (tmp_path / "out/mean.binaryproto").read_bytes()
    assert made == compute_mean(tmp_path / "out/train_lmdb").SerializeToString()
    assert made != compute_mean(tmp_path / "out/val_lmdb").SerializeToString()


def test_split_by_class_and_seed(tmp_path):
    write_good(tmp_path / "in", ["a", "b", "c"], 20)
    small = ImageSetOptions(size=(2, 2))
    drawn = {}
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        prepare.folder(tmp_path / "in", tmp_path / name, options=small, seed=seed)
        train, val = (records(tmp_path / name / part) for part in ("train_lmdb", "val_lmdb"))
        assert sorted([*paths(train), *paths(val)]) == sorted(
            f"{c}/{i}.png" for c in "abc" for i in range(20)
        )
        for c in range(3):
            assert sum(record.label == c for record in train.values()) == 17
        labels = [record.label for record in train.values()]
        assert labels != sorted(labels)
        drawn[name] = (paths(train), paths(val))
    assert drawn["one"] == drawn["again"]
    assert set(drawn["one"][1]) != set(drawn["two"][1])
    # Another class does not change which images of this one are drawn.
    write_good(tmp_path / "in", ["d"], 20)
    prepare.folder(tmp_path / "in", tmp_path / "more", options=small)
    more = paths(records(tmp_path / "more/val_lmdb"))
    assert [path for path in more if path[0] != "d"] == drawn["one"][1]


def test_labels_in_an_order_of_ones_own(tmp_path):
    write_good(tmp_path / "in", ["a", "b c", "d"], 3)
    (tmp_path / "labels").write_text("b c\na\n")
    done = prepare.folder(
        tmp_path / "in",
        tmp_path / "out",
        labels=tmp_path / "labels",
        train_share=1,
        options=ImageSetOptions(size=(2, 2)),
    )
    found = records(tmp_path / "out/train_lmdb")
    assert {(key[9:].split("/")[0], record.label) for key, record in found.items()} == {
        ("b c", 0),
        ("a", 1),
    }
    assert done.skipped == [f"'{tmp_path}/in/d': the folder is not among the classes"]
    (tmp_path / "labels").write_text("a\nb c\na\n")
    with pytest.raises(ValueError, match="class 'a' is listed twice"):
        prepare.folder(tmp_path / "in", tmp_path / "o", labels=tmp_path / "labels")


def test_encoded_records(tmp_path):
    write_good(tmp_path / "in", ["a", "b"], 2)
    options = ImageSetOptions(size=(8, 8), encoded=True, encode_type="jpg")
    prepare.folder(tmp_path / "in", tmp_path / "out", options=options, train_share=1)
    for key, record in records(tmp_path / "out/train_lmdb").items():
        value = 10 * record.label + int(key[-5])
        assert np.abs(np.asarray(record.pixels).astype(int) - value).max() <= 1
    assert b"JFIF" in (tmp_path / "out/train_lmdb/data.mdb").read_bytes()


@pytest.mark.parametrize("strict", [False, True])
def test_strict_fails_at_the_first_and_leaves_nothing(tmp_path, strict):
    write_good(tmp_path / "in", ["a", "b"], 10)
    write(tmp_path / "in/a/z.jpg", b"no image")
    if not strict:
        assert len(prepare.folder(tmp_path / "in", tmp_path / "out").skipped) == 1
        return
    with pytest.raises(ValueError, match=r"in/a/z.jpg': cannot decode the image of 8 bytes"):
        prepare.folder(tmp_path / "in", tmp_path / "out", strict=True)
    assert not (tmp_path / "out").exists()


def test_overwrite(tmp_path):
    write_good(tmp_path / "in", ["a", "b"], 10)
    small = ImageSetOptions(size=(2, 2))
    prepare.folder(tmp_path / "in", tmp_path / "out", options=small)
    before = {path.name: path.stat().st_ino for path in (tmp_path / "out").iterdir()}
    with pytest.raises(FileExistsError, match="train_lmdb' exists already"):
        prepare.folder(tmp_path / "in", tmp_path / "out", options=small)
    assert {path.name: path.stat().st_ino for path in (tmp_path / "out").iterdir()} == before
    prepare.folder(tmp_path / "in", tmp_path / "out", options=small, overwrite=True)
    after = {path.name: path.stat().st_ino for path in (tmp_path / "out").iterdir()}
    assert sorted(after) == ALL
    assert all(after[name] != before[name] for name in ALL)


@pytest.mark.parametrize("existing", [False, True])
def test_an_interrupt_leaves_what_was_there(tmp_path, monkeypatch, existing):
    """Ctrl-C, as the signal that it is, while images of the second database are decoded."""
    write_good(tmp_path / "in", ["a", "b"], 10)
    small = ImageSetOptions(size=(2, 2))
    if existing:
        prepare.folder(tmp_path / "in", tmp_path / "out", options=small)
        before = {path.name: path.stat().st_ino for path in (tmp_path / "out").iterdir()}
    decode, calls = image_records.decode_image, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 19:
            signal.raise_signal(signal.SIGINT)
        return decode(*arguments, **options)

    monkeypatch.setattr(image_records, "decode_image", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare.folder(tmp_path / "in", tmp_path / "out", options=small, overwrite=existing)
    assert len(calls) >= 19
    if existing:
        assert {path.name: path.stat().st_ino for path in (tmp_path / "out").iterdir()} == before
        records(tmp_path / "out/train_lmdb")
    else:
        assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full(tmp_path):
    """A limit on the size of files stands for it: writing fails in the same place."""
    write_good(tmp_path / "in", ["a", "b"], 10)
    script = (
        "import resource, sys; from caffe.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "sys.exit(main.main(['prepare', 'folder', sys.argv[1], sys.argv[2]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "in", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert re.search(r"caffe: error: cannot write LMDB '.*train_lmdb': .*\n$", done.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: None, "does not exist; needed is a folder or a tar file"),
        (lambda root: root.mkdir(), "has no files"),
        (lambda root: write(root / "a.png", flat_bytes(1)), "has no folders: one for each class"),
        (lambda root: write(root / "a/.b.png", flat_bytes(1)), "has no files"),
        (lambda root: write(root / "a/b.png", b"text"), "too few to split into 0.85 and 0.15"),
        (
            lambda root: [write(root / f"a/{i}.png", b"text") for i in range(9)],
            "none of the 8 images can be read; the first: '.*/in/a/.*png': cannot decode",
        ),
        (lambda root: write(root, b"text" * 999), "is no tar file, or is cut off"),
        (lambda root: packed(root, "gz"), "is compressed, so that its files"),
        (lambda root: packed(root, "bz2"), "is compressed, so that its files"),
        (lambda root: packed(root, "xz"), "is compressed, so that its files"),
    ],
)
def test_what_is_no_folder_of_classes(tmp_path, make, message):
    make(tmp_path / "in")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        prepare.folder(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0, -1, 1.5, 0.001])
def test_bad_shares(tmp_path, share):
    write_good(tmp_path / "in", ["a"], 4)
    with pytest.raises(ValueError, match=r"share to train on is|too few to split"):
        prepare.folder(tmp_path / "in", tmp_path / "out", train_share=share)


def test_a_tar_that_is_cut_off(tmp_path):
    write_good(tmp_path / "in", ["a", "b"], 9)
    content = tarred(tmp_path / "in", tmp_path / "whole.tar").read_bytes()
    for keep in (700, 1100, 5000):
        write(tmp_path / "cut.tar", content[:keep])
        with pytest.raises(ValueError, match="is no tar file, or is cut off"):
            prepare.folder(tmp_path / "cut.tar", tmp_path / "out")
    with image_tree.open_tree(tmp_path / "whole.tar") as tree:
        (tmp_path / "whole.tar").write_bytes(content[:2000])
        with pytest.raises(OSError, match="the archive is cut off"):
            tree.read("b/8.png")


def test_command(tmp_path, messy, capsys):
    root, good, bad = messy
    assert cli.main(["prepare", "folder", str(root), str(tmp_path / "out"), "-size", "3x4"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == (
        f"4 classes, {len(bad)} things left out, 3 hidden files passed over"
    )
    skipped = [line for line in captured.err.splitlines() if "] Skipped " in line]
    assert len(skipped) == len(bad) + 1
    assert f"Skipped {len(bad)} of {len(good) + len(bad)} images" in skipped[-1]
    assert {r.shape for r in records(tmp_path / "out/train_lmdb").values()} == {(3, 3, 4)}
    assert cli.main(["prepare", "folder", str(root), str(tmp_path / "o2"), "-strict"]) == 1
    assert not (tmp_path / "o2").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("in", "flag -out is needed"),
        ("in out more", "unexpected argument 'more'"),
        ("in out -size 3x", "flag -size is '3x', needs N or HEIGHTxWIDTH"),
        ("in out -size 0", "flag -size is '0'"),
        ("in out -encode_type jepg", "did you mean 'jpg'"),
        ("in out -train_share much", "needs a number"),
    ],
)
def test_bad_command_lines(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    write_good(tmp_path / "in", ["a"], 4)
    assert cli.main(["prepare", "folder", *words.split()]) == 1
    assert message in capsys.readouterr().err
    assert names(tmp_path) == ["in"]


def test_progress_on_terminals_alone(tmp_path, capsys, monkeypatch):
    write_good(tmp_path / "in", ["a", "b"], 9)
    small = ImageSetOptions(size=(2, 2))
    prepare.folder(tmp_path / "in", tmp_path / "quiet", options=small)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("caffe.progress._INTERVAL", -1.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    prepare.folder(tmp_path / "in", tmp_path / "loud", options=small)
    assert "] 15/16 images" in capsys.readouterr().err
