"""`prepare.imagenet` on a small ImageNet in the layouts it comes in."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_images import flat_bytes, paths, records, tarred, write

from caffe import prepare
from caffe.cli import main as cli
from caffe.data.image_records import ImageSetOptions

SYNSETS = ["n01440764", "n01443537", "n02000001"]
SMALL = ImageSetOptions(size=(2, 2))
TRUTH = [2, 0, 1, 1, 0]  # labels of val's images, which are of the colours 0, 1, ...


@pytest.fixture
def imagenet(tmp_path):
    """Folders train, with one a synset, and val; and the tar files."""
    for label, synset in enumerate(SYNSETS):
        for i in range(4):
            write(tmp_path / f"train/{synset}/{synset}_{i}.JPEG", flat_bytes(50 * label + i))
    for i in range(len(TRUTH)):
        write(tmp_path / f"val/ILSVRC2012_val_{i + 1:08}.JPEG", flat_bytes(i))
    (tmp_path / "tars").mkdir()
    for synset in SYNSETS:
        tarred(tmp_path / "train" / synset, tmp_path / f"tars/{synset}.tar")
    tarred(tmp_path / "tars", tmp_path / "train.tar")
    tarred(tmp_path / "val", tmp_path / "val.tar")
    write(tmp_path / "val.txt", val_list(TRUTH).encode())
    return tmp_path


def val_list(labels):
    return "".join(f"ILSVRC2012_val_{i + 1:08}.JPEG {label}\n" for i, label in enumerate(labels))


def val_labels(folder):
    return {r.pixels[0]: r.label for r in records(folder / "ilsvrc12_val_lmdb").values()}


@pytest.mark.parametrize("form", ["", ".tar"])
def test_folders_and_a_tar_of_tars(imagenet, form):
    out = imagenet / "out"
    done = prepare.imagenet(
        imagenet / f"train{form}",
        imagenet / f"val{form}",
        out,
        val_list=imagenet / "val.txt",
        options=SMALL,
        strict=True,
    )
    train = records(out / "ilsvrc12_train_lmdb")
    assert sorted(paths(train)) == [f"{s}/{s}_{i}.JPEG" for s in SYNSETS for i in range(4)]
    for key, record in train.items():
        assert record.pixels[0] == 50 * record.label + int(key[-6])
    assert [record.label for record in train.values()] != sorted(r.label for r in train.values())
    assert val_labels(out) == dict(enumerate(TRUTH))
    assert (out / "labels.txt").read_text().split() == SYNSETS
    assert sum(done.databases.values()) == 17
    assert (out / "mean.binaryproto").exists()


def test_synset_words_give_the_order_of_labels(imagenet):
    words = ["n02000001 third, with a comma", "n01440764 tench, Tinca tinca", "n09999999 none"]
    write(imagenet / "words.txt", "\n".join(words).encode())
    write(imagenet / "val.txt", val_list(["n02000001", 1, 0, 1, 0]).encode())
    out = imagenet / "out"
    done = prepare.imagenet(
        imagenet / "train",
        imagenet / "val",
        out,
        val_list=imagenet / "val.txt",
        synset_words=imagenet / "words.txt",
        options=SMALL,
    )
    labels = {p.split("/")[0]: r.label for p, r in zip(*both(out / "ilsvrc12_train_lmdb"))}
    assert labels == {"n02000001": 0, "n01440764": 1}
    assert (out / "labels.txt").read_text().splitlines() == words
    assert val_labels(out) == {0: 0, 1: 1, 2: 0, 3: 1, 4: 0}
    assert [re.sub(".*/", "", line) for line in done.skipped] == [
        "n01443537': the folder is not among the classes",
        "class 'n09999999' has no images",
    ]


def both(path):
    found = records(path)
    return paths(found), found.values()


@pytest.mark.parametrize("kind", ["synsets", "ids as text", "ids in meta.mat", "folders"])
def test_other_ways_to_label_val(imagenet, kind):
    given = {"val_list": imagenet / "truth.txt"}
    order = [SYNSETS[1], SYNSETS[2], SYNSETS[0]]  # of ids, which is not that of labels
    ids = [order.index(SYNSETS[label]) + 1 for label in TRUTH]
    lines = [SYNSETS[label] for label in TRUTH] if kind == "synsets" else ids
    write(imagenet / "truth.txt", "".join(f"{line}\n" for line in lines).encode())
    if kind == "ids as text":
        given["ids"] = imagenet / "ids.txt"
        given["ids"].write_text("\n".join(order))
    elif kind == "ids in meta.mat":
        io = pytest.importorskip("scipy.io", reason="scipy, which .mat needs, is not installed")
        given["ids"] = imagenet / "meta.mat"
        rows = [(i + 1, synset, "words", 0) for i, synset in enumerate(order)]
        kinds = [("ILSVRC2012_ID", object), ("WNID", object), ("words", object), ("n", object)]
        io.savemat(given["ids"], {"synsets": np.array(rows, dtype=kinds).reshape(-1, 1)})
    elif kind == "folders":
        given = {}
        for i, label in enumerate(TRUTH):
            name = f"ILSVRC2012_val_{i + 1:08}.JPEG"
            write(imagenet / f"val/{SYNSETS[label]}/{name}", flat_bytes(i))
            (imagenet / "val" / name).unlink()
    prepare.imagenet(
        imagenet / "train", imagenet / "val", imagenet / "out", options=SMALL, strict=True, **given
    )
    assert val_labels(imagenet / "out") == dict(enumerate(TRUTH))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n3\n1\n2\n", "ids of the development kit, which are no labels: give its meta.mat"),
        ("1\n2\n", "has 2 lines, '.*' 5 files"),
        (val_list([0, 1, 2, 3, 0]), "val.txt:4: '3' is none of the 3 classes"),
        (val_list([0, "n00000000"]), "val.txt:2: 'n00000000' is none of the 3 classes"),
        (val_list([0, -1]), "val.txt:2: '-1' is none"),
        ("other.JPEG 0\n" + val_list(TRUTH), "val.txt:1: 'other.JPEG' does not exist below"),
        (val_list(TRUTH[:4]), "ILSVRC2012_val_00000005.JPEG': is not listed"),
    ],
)
def test_bad_lists_of_labels(imagenet, content, message):
    write(imagenet / "val.txt", content.encode())
    with pytest.raises(ValueError, match=message):
        prepare.imagenet(
            imagenet / "train",
            imagenet / "val",
            imagenet / "out",
            val_list=imagenet / "val.txt",
            options=SMALL,
            strict=True,
        )
    assert not (imagenet / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("n01440764 a\ntench\n", "words.txt:2: expected 'n01440764 words', got 'tench'"),
        ("n01440764 a\nn01440764 b\n", "words.txt:2: synset n01440764 occurs twice"),
        ("", "words.txt' is empty"),
        ("n00000001 x\n", "none of the folders in '.*train' is a class with images"),
    ],
)
def test_bad_synset_words(imagenet, content, message):
    write(imagenet / "words.txt", content.encode())
    with pytest.raises(ValueError, match=message):
        prepare.imagenet(
            imagenet / "train",
            imagenet / "val",
            imagenet / "out",
            val_list=imagenet / "val.txt",
            synset_words=imagenet / "words.txt",
        )


def test_command(imagenet, monkeypatch, capsys):
    monkeypatch.chdir(imagenet)
    line = "prepare imagenet train.tar val -val_list val.txt -size 2 -encode_type jpg"
    assert cli.main(line.split()) == 0
    assert capsys.readouterr().out.splitlines() == [
        "examples/imagenet/ilsvrc12_train_lmdb: 12 images",
        "examples/imagenet/ilsvrc12_val_lmdb: 5 images",
        "examples/imagenet/mean.binaryproto",
        "examples/imagenet/labels.txt",
        "3 classes, 0 things left out",
    ]
    assert cli.main(["prepare", "imagenet", "train.tar"]) == 1
    assert "flag -val is needed" in capsys.readouterr().err
