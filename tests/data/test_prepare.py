"""Making databases: idx files, image lists, means, and the package of Fashion-MNIST."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from PIL import Image

from caffe import prepare
from caffe.data import fashion_mnist, idx, image_list
from caffe.data.datum import parse_record
from caffe.data.lmdb_source import LmdbSource
from caffe.data.transform import read_mean


def idx_bytes(array):
    header = b"\0\0\x08" + bytes([array.ndim])
    header += b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def idx_folder(tmp_path):
    folder = tmp_path / "idx"
    folder.mkdir()
    for part, count in (("train", 6), ("test", 4)):
        images, labels = idx.SETS[part]
        pixels = np.arange(count * 12).reshape(count, 3, 4)
        (folder / f"{images}.gz").write_bytes(gzip.compress(idx_bytes(pixels)))
        (folder / labels).write_bytes(idx_bytes(np.arange(count)))
    return folder


def records(path):
    source = LmdbSource(path)
    found = [source.read() for _ in range(len(source))]
    source.close()
    return {key: parse_record(value) for key, value in found}


def test_fashion_mnist_from_a_folder(tmp_path, idx_folder):
    made = prepare.fashion_mnist(tmp_path / "out", idx_folder)
    assert [path.name for path in made] == ["fashion_mnist_train_lmdb", "fashion_mnist_test_lmdb"]
    train = records(made[0])
    assert list(train) == [f"{i:08}".encode() for i in range(6)]
    assert train[b"00000002"] == (bytes(range(24, 36)), (1, 3, 4), 2)
    assert len(records(made[1])) == 4


def test_fashion_mnist_is_made_once(tmp_path, idx_folder):
    made = prepare.fashion_mnist(tmp_path / "out", idx_folder)
    before = [path.stat().st_mtime_ns for path in made]
    assert prepare.fashion_mnist(tmp_path / "out", "no such folder") == made
    assert [path.stat().st_mtime_ns for path in made] == before


def test_idx_refuses_to_overwrite(tmp_path, idx_folder):
    prepare.idx(idx_folder, tmp_path / "out", "m")
    with pytest.raises(FileExistsError, match="exists already"):
        prepare.idx(idx_folder, tmp_path / "out", "m")
    prepare.idx(idx_folder, tmp_path / "out", "m", overwrite=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no idx file of bytes"),
        (b"\0\0\x0d\x01\0\0\0\x01abcd", "is no idx file of bytes"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "asks for 13; was it cut off"),
        (b"\0\0\x08\x03\0\0", "was it cut off"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "was it cut off"),
        (b"\x1f\x8bgarbage", "damaged gzip file"),
        (gzip.compress(bytes(1000))[:-12], "damaged gzip file"),
    ],
)
def test_damaged_idx(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        idx.read_idx(path)


def test_idx_files_that_do_not_belong_together(tmp_path, idx_folder):
    (idx_folder / idx.SETS["test"][1]).write_bytes(idx_bytes(np.arange(3)))
    with pytest.raises(ValueError, match="needed are"):
        prepare.idx(idx_folder, tmp_path / "out", "m")
    assert not (tmp_path / "out" / "m_test_lmdb").exists()


def test_missing_sources(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no file 'train-images"):
        prepare.idx(tmp_path, tmp_path / "out", "m")
    with pytest.raises(FileNotFoundError, match="is no folder"):
        prepare.fashion_mnist(tmp_path / "out", tmp_path / "none")
    monkeypatch.setattr(fashion_mnist, "INSTALLED", tmp_path / "none")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="apt-get is missing"):
        prepare.fashion_mnist(tmp_path / "out")


def fake_program(folder, name, script):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_package_is_fetched_without_root(tmp_path, idx_folder, monkeypatch):
    programs = tmp_path / "bin"
    fake_program(programs, "apt-get", 'test "$1" = download && touch "$2_1_all.deb"')
    installed = fashion_mnist.INSTALLED
    fake_program(
        programs,
        "dpkg-deb",
        f'mkdir -p "$3{installed.parent}" && cp -r {idx_folder} "$3{installed}"',
    )
    monkeypatch.setattr(fashion_mnist.shutil, "which", lambda name: str(programs / name))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = fashion_mnist.download(fashion_mnist.cache_folder())
    assert folder == tmp_path / "cache" / "comet" / "fashion-mnist"
    assert idx.find_idx(folder, idx.SETS["train"][0]).name.endswith(".gz")
    assert [path.name for path in folder.parent.iterdir()] == ["fashion-mnist"]


def test_failing_download_says_what_apt_said(tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    fake_program(programs, "apt-get", "echo 'E: Unable to locate package' >&2; exit 100")
    fake_program(programs, "dpkg-deb", "exit 1")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    with pytest.raises(RuntimeError, match="Unable to locate package; is the package list current"):
        fashion_mnist.download(tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_image_list_lines(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"a.png 1\r\nwith blank.png   2  \n\ntab\tin name.png\t-3\n")
    assert image_list.read_image_list(path) == [
        ("a.png", 1, 1),
        ("with blank.png", 2, 2),
        ("tab\tin name.png", -3, 4),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a.png one", "list:1: expected 'path label' with an integer label, got 'a.png one'"),
        ("a.png 1\nb.png 1.5", "list:2: expected"),
        ("a.png", "list:1: expected"),
        ("a.png 99999999999", "no 32-bit integer"),
        ("\n\n", "is empty"),
    ],
)
def test_bad_image_lists(tmp_path, content, message):
    path = tmp_path / "list"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        image_list.read_image_list(path)


@pytest.fixture
def pictures(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    rng = np.random.default_rng(0)
    for name, size in (("a.png", (4, 6)), ("b c.png", (4, 6)), ("big.png", (8, 8))):
        Image.fromarray(rng.integers(0, 255, (*size, 3)).astype(np.uint8)).save(root / name)
    (root / "text.png").write_text("no image")
    return root


def convert(tmp_path, root, lines, **options):
    (tmp_path / "list").write_text(lines)
    prepare.images_to_lmdb(root, tmp_path / "list", tmp_path / "db", **options)
    return records(tmp_path / "db")


def test_images_to_lmdb(tmp_path, pictures):
    made = convert(tmp_path, pictures, "a.png 5\nb c.png 6\n")
    assert list(made) == [b"00000000_a.png", b"00000001_b c.png"]
    record = made[b"00000000_a.png"]
    pixels = np.asarray(Image.open(pictures / "a.png"))[:, :, ::-1].transpose(2, 0, 1)
    assert record == (pixels.tobytes(), (3, 4, 6), 5)


def test_images_resized_gray_and_shuffled(tmp_path, pictures):
    lines = "".join(f"{name} {i}\n" for i, name in enumerate(["a.png", "b c.png", "big.png"] * 4))
    made = convert(tmp_path, pictures, lines, size=(5, 7), gray=True, shuffle_seed=1)
    assert {record.shape for record in made.values()} == {(1, 5, 7)}
    labels = [record.label for record in made.values()]
    assert sorted(labels) == list(range(12)) != labels


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a.png 1\nbig.png 2", "list:2: 'big.png' is 8x8, the first image 4x6; resize"),
        ("a.png 1\ntext.png 2", "list:2: 'text.png': cannot decode"),
        ("none.png 1", "list:1: 'none.png' does not exist below the root folder"),
    ],
)
def test_bad_images_leave_no_database(tmp_path, pictures, lines, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        convert(tmp_path, pictures, lines)
    assert not (tmp_path / "db").exists()


def test_mean(tmp_path, pictures):
    convert(tmp_path, pictures, "a.png 5\nb c.png 6\n")
    prepare.mean(tmp_path / "db", tmp_path / "new" / "mean.binaryproto")
    names = ("a.png", "b c.png")
    both = np.stack([np.asarray(Image.open(pictures / name))[:, :, ::-1] for name in names])
    np.testing.assert_allclose(
        read_mean(tmp_path / "new" / "mean.binaryproto"),
        both.mean(0).transpose(2, 0, 1),
        rtol=1e-6,
    )
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mean.binaryproto"]
