"""`prepare.cifar10` and `mnist` from small files in the original formats."""

from __future__ import annotations

import pickle
import tarfile

import numpy as np
import pytest
from made_images import left_behind, records, write

from caffe import prepare
from caffe.cli import main as cli
from caffe.data import cifar10, idx
from caffe.data.transform import read_mean

COUNT = 4  # records a batch
NAMES = b"airplane\nautomobile\n\n"


def batch(number):
    rng = np.random.default_rng(number)
    labels = rng.integers(0, 10, (COUNT, 1), dtype=np.uint8)
    return np.hstack([labels, rng.integers(0, 256, (COUNT, 3072), dtype=np.uint8)])


BATCHES = {name: batch(i) for i, name in enumerate([*cifar10.SETS["train"], *cifar10.SETS["test"]])}


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    for name, rows in BATCHES.items():
        write(folder / name, rows.tobytes())
    write(folder / "batches.meta.txt", NAMES)
    return folder


@pytest.mark.parametrize("form", ["folder", "above", "tar.gz"])
def test_records_mean_and_labels(tmp_path, source, form):
    given = {"folder": source, "above": tmp_path, "tar.gz": tmp_path / "c.tar.gz"}[form]
    if form == "tar.gz":
        with tarfile.open(given, "w:gz") as archive:
            archive.add(source, source.name)
    done = prepare.cifar10(given, tmp_path / "out")
    train, test = (records(tmp_path / "out" / f"cifar10_{part}_lmdb") for part in cifar10.SETS)
    rows = np.concatenate([BATCHES[f"data_batch_{i}.bin"] for i in range(1, 6)])
    assert list(train) == [f"{i:05}" for i in range(5 * COUNT)]
    for record, row in zip(train.values(), rows):
        assert record == (row[1:].tobytes(), (3, 32, 32), row[0])
    assert [r.label for r in test.values()] == BATCHES["test_batch.bin"][:, 0].tolist()
    mean = read_mean(tmp_path / "out/mean.binaryproto")
    np.testing.assert_allclose(mean.ravel(), rows[:, 1:].astype(float).mean(0), rtol=1e-6)
    assert (tmp_path / "out/labels.txt").read_text() == "airplane\nautomobile\n"
    assert list(done.databases.values()) == [5 * COUNT, COUNT]


def test_overwrite_and_command(tmp_path, source, capsys):
    words = ["prepare", "cifar10", str(source), str(tmp_path / "out")]
    assert cli.main(words) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("cifar10_train_lmdb: 20 images")
    assert cli.main(words) == 1
    assert "exists already" in capsys.readouterr().err
    assert cli.main([*words, "-overwrite"]) == 0
    assert not left_behind(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test_batch.bin", bytes(3072), "'test_batch.bin' has 3072 bytes, no multiple of 3073"),
        ("data_batch_3.bin", b"", "'data_batch_3.bin' has 0 bytes"),
        ("data_batch_2.bin", bytes(3073) + b"\x0a" + bytes(3072), "record 1 has label 10"),
        ("data_batch_2.bin", None, "no file 'data_batch_2.bin' in"),
    ],
)
def test_damaged_files_leave_nothing(tmp_path, source, name, content, message):
    (source / name).unlink()
    if content is not None:
        write(source / name, content)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        prepare.cifar10(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pickles_are_not_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    write(tmp_path / "cifar-10-batches-py/data_batch_1", pickle.dumps(Bomb()))
    with pytest.raises(ValueError, match="get the binary version, cifar-10-binary"):
        prepare.cifar10(tmp_path / "cifar-10-batches-py", tmp_path / "out")
    with tarfile.open(tmp_path / "py.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "cifar-10-batches-py", "cifar-10-batches-py")
    with pytest.raises(ValueError, match="get the binary version, cifar-10-binary"):
        prepare.cifar10(tmp_path / "py.tar.gz", tmp_path / "out")


def test_tars_that_are_none(tmp_path, source):
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    content = (tmp_path / "c.tar.gz").read_bytes()
    for wrong in (b"", b"text", content[:5000], content[: len(content) // 2]):
        write(tmp_path / "cut.tar.gz", wrong)
        with pytest.raises(ValueError, match="is no tar file, or is cut off"):
            prepare.cifar10(tmp_path / "cut.tar.gz", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        prepare.cifar10(tmp_path / "none", tmp_path / "out")


def test_mnist(tmp_path, capsys):
    for images, labels in idx.SETS.values():
        header = b"\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x04"
        write(tmp_path / "in" / images, header + bytes(range(24)))
        write(tmp_path / "in" / labels, b"\0\0\x08\x01\0\0\0\x02\x07\x03")
    assert cli.main(["prepare", "mnist", str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    made = [tmp_path / "out/mnist_train_lmdb", tmp_path / "out/mnist_test_lmdb"]
    assert capsys.readouterr().out.split() == list(map(str, made))
    found = list(records(made[0]).values())
    assert found == [(bytes(range(12)), (1, 3, 4), 7), (bytes(range(12, 24)), (1, 3, 4), 3)]
    # The second set is damaged: the first is not replaced either.
    write(tmp_path / "in" / idx.SETS["test"][1], b"")
    before = made[0].stat().st_ino
    with pytest.raises(ValueError, match="is no idx file"):
        prepare.mnist(tmp_path / "in", tmp_path / "out", overwrite=True)
    assert made[0].stat().st_ino == before
    assert not left_behind(tmp_path)
