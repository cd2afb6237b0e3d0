"""Caffe's tools on LevelDBs: the same records, means and features as with LMDBs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.cli import main as cli
from caffe.data.databases import SOURCES
from caffe.data.leveldb_writer import LevelDbWriter

pytest.importorskip("plyvel", reason="plyvel, which LevelDB needs, is not installed")


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for i in range(5):
        Image.fromarray(rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)).save(f"{i}.png")
    Path("list").write_text("".join(f"{i}.png {i % 2}\n" for i in range(5)))
    for kind in ("lmdb", "leveldb"):
        assert cli.main(f"convert_imageset -backend {kind} . list {kind}".split()) == 0
    return tmp_path


def records(kind, path):
    source = SOURCES[kind](path)
    found = [source.read() for _ in range(len(source))]
    source.close()
    return found


def test_convert_imageset_writes_the_same_records(photos) -> None:
    assert records("leveldb", "leveldb") == records("lmdb", "lmdb")
    assert len(records("leveldb", "leveldb")) == 5
    assert Path("leveldb").stat().st_mode & 0o055


def test_compute_image_mean(photos, capsys) -> None:
    for kind in ("lmdb", "leveldb"):
        assert cli.main(f"compute_image_mean -backend {kind} {kind} {kind}.mean".split()) == 0
    assert Path("leveldb.mean").read_bytes() == Path("lmdb.mean").read_bytes()
    capsys.readouterr()
    assert cli.main(["compute_image_mean", "-backend", "leveldb", "lmdb"]) == 1
    assert "looks like an LMDB" in capsys.readouterr().err


def test_extract_features_from_and_to_a_leveldb(photos) -> None:
    for kind in ("lmdb", "leveldb"):
        n = caffe.NetSpec()
        backend = P.Data.LEVELDB if kind == "leveldb" else P.Data.LMDB
        n.data, n.label = L.Data(source=kind, backend=backend, batch_size=2, ntop=2)
        n.ip = L.InnerProduct(n.data, num_output=3, weight_filler=dict(type="constant", value=0.5))
        Path("net.prototxt").write_text(str(n.to_proto()))
        net = caffe.Net("net.prototxt", caffe.TEST)
        net.save("w.caffemodel")
        net.close()
        line = f"extract_features w.caffemodel net.prototxt ip features_{kind} 2 {kind.upper()}"
        assert cli.main(line.split()) == 0
    assert records("leveldb", "features_leveldb") == records("lmdb", "features_lmdb")
    assert len(records("lmdb", "features_lmdb")) == 4


def test_a_failure_leaves_what_was_there(photos, capsys) -> None:
    before = records("leveldb", "leveldb")
    Path("list").write_text("0.png 1\nmissing.png 2\n")
    line = "convert_imageset -strict -overwrite -backend leveldb . list leveldb"
    assert cli.main(line.split()) == 1
    assert "list:2: 'missing.png' does not exist" in capsys.readouterr().err
    assert records("leveldb", "leveldb") == before
    assert not [path for path in photos.iterdir() if path.name.startswith(".")]
    assert cli.main(["convert_imageset", "-backend", "leveldb", ".", "list", "leveldb"]) == 1
    assert "'leveldb' exists already" in capsys.readouterr().err


@pytest.mark.parametrize("records", [1, 1001])
def test_keys_occur_once(tmp_path, records) -> None:
    """1001: the first of a batch that has been written."""
    with pytest.raises(ValueError, match="occurs twice"), LevelDbWriter(tmp_path / "db") as writer:
        for i in range(records):
            writer.put(f"{i}", b"x")
        writer.put("0", b"x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line",
    [
        "convert_imageset -backend leveldb . list new",
        "compute_image_mean -backend leveldb leveldb",
        "extract_features w.caffemodel net.prototxt ip new 1 leveldb",
    ],
)
def test_without_plyvel_one_line_says_what_to_install(photos, capsys, monkeypatch, line) -> None:
    n = caffe.NetSpec()
    n.data = L.Data(source="lmdb", backend=P.Data.LMDB, batch_size=2)
    n.ip = L.InnerProduct(n.data, num_output=3)
    Path("net.prototxt").write_text(str(n.to_proto()))
    net = caffe.Net("net.prototxt", caffe.TEST)
    net.save("w.caffemodel")
    net.close()
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "plyvel", None)
    assert cli.main(line.split()) == 1
    errors = re.findall("^caffe: error: .*", capsys.readouterr().err, re.MULTILINE)
    assert len(errors) == 1
    assert "pip install 'comet-caffe[leveldb]'" in errors[0]
    assert not Path("new").exists()
