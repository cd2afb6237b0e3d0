"""LevelDB databases as sources of the layer Data."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from test_data_layers import build, take

from caffe.data import leveldb_source
from caffe.data.datum import array_to_datum
from caffe.data.leveldb_source import LevelDbSource
from caffe.data.lmdb_writer import LmdbWriter
from caffe.layer_types.data import Data

plyvel = pytest.importorskip("plyvel", reason="plyvel, which LevelDB needs, is not installed")


def make(path, count=10, size=0):
    database = plyvel.DB(str(path), create_if_missing=True)
    for i in range(count):
        image = np.arange(i, i + 72).astype(np.uint8).reshape(2, 6, 6)
        record = array_to_datum(image, i).SerializeToString()
        database.put(f"{i:08}".encode(), b"x" * size if size else record)
    database.close()
    return path


def text(path, more="", transform=""):
    return (
        f'data_param {{ source: "{path}" batch_size: 4 {more} }} transform_param {{ {transform} }}'
    )


def keys(source, count):
    return [int(source.read()[0]) for _ in range(count)]


@pytest.mark.parametrize("counted", [False, True])
def test_records_in_order_and_round_from_any_position(tmp_path, counted):
    for start in (0, 3, 9, 10, 25):
        source = LevelDbSource(make(tmp_path / f"db{start}"))
        if counted:
            assert len(source) == 10
        source.position = start
        assert keys(source, 23) == [i % 10 for i in range(start, start + 23)]
        assert (source.position, len(source)) == (start + 23, 10)
        source.position = 4
        assert keys(source, 2) == [4, 5]
        source.close()
        source.close()


def test_two_readers_share_one_database(tmp_path):
    path = make(tmp_path / "db")
    first, second = LevelDbSource(path), LevelDbSource(tmp_path / "." / "db")
    assert keys(first, 2) == [0, 1]
    first.close()
    assert keys(second, 2) == [0, 1]
    second.close()
    assert not leveldb_source._databases._open
    with pytest.raises(ValueError, match="is closed"):
        first.read()


def test_the_layer_reads_it_where_no_backend_is_named(tmp_path):
    layer, top = build(Data, text(make(tmp_path / "db"), transform="scale: 0.5"))
    taken = take(layer, top, 3)
    assert [batch[1].tolist() for batch in taken] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    np.testing.assert_array_equal(taken[1][0][2].ravel(), np.arange(6, 78) / 2)
    assert layer.epoch == 1
    layer.close()


@pytest.mark.parametrize("split", [1, 3, 5])
def test_resumed_run_equals_the_uninterrupted_one(tmp_path, split):
    options = text(make(tmp_path / "db"), "rand_skip: 7", "crop_size: 3 mirror: true")
    layer, top = build(Data, options)
    whole = take(layer, top, 6)
    layer.close()
    layer, top = build(Data, options)
    take(layer, top, split)
    position = layer.position
    layer.close()
    layer, top = build(Data, options)
    layer.position = position
    for batch, expected in zip(take(layer, top, 6 - split), whole[split:]):
        np.testing.assert_array_equal(batch[0], expected[0])
    layer.close()


def test_a_process_that_has_it_open_is_named(tmp_path):
    path = make(tmp_path / "db")
    code = "import plyvel, sys; held = plyvel.DB(sys.argv[1]); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(ValueError, match=r"cannot be opened as a LevelDB: .*[lL]ock"):
            LevelDbSource(path)
        other.communicate(b"\n")
    assert not leveldb_source._databases._open


def test_damaged_records_are_errors(tmp_path):
    path = make(tmp_path / "db", 500, 1000)
    plyvel.DB(str(path)).compact_range()
    for table in path.glob("*.ldb"):
        content = bytearray(table.read_bytes())
        for at in range(0, len(content) - 200, 100):
            content[at] ^= 0xFF
        table.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged at record|cannot be opened as a LevelDB"):
        keys(LevelDbSource(path), 500)


def test_what_is_no_leveldb(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="has no file CURRENT"):
        LevelDbSource(tmp_path)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "CURRENT").write_text("garbage")
    with pytest.raises(ValueError, match="cannot be opened as a LevelDB"):
        LevelDbSource(tmp_path / "bad")
    with pytest.raises(ValueError, match="is empty: it has no records"):
        LevelDbSource(make(tmp_path / "empty", 0))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"LevelDB 'no' does not exist .*backend: LMDB"):
        LevelDbSource("no")


def test_an_lmdb_without_a_backend_says_what_to_set(tmp_path):
    with LmdbWriter(tmp_path / "db") as writer:
        writer.put("a", b"x")
    with pytest.raises(ValueError, match="looks like an LMDB: set backend: LMDB"):
        build(Data, text(tmp_path / "db"))
    with pytest.raises(ValueError, match="is a LevelDB, not an LMDB: set backend: LEVELDB"):
        build(Data, text(make(tmp_path / "level"), "backend: LMDB"))


def test_without_plyvel_the_extra_is_named(tmp_path, monkeypatch):
    path = make(tmp_path / "db")
    monkeypatch.setitem(sys.modules, "plyvel", None)
    with pytest.raises(ImportError, match=r"pip install 'comet-caffe\[leveldb\]'"):
        build(Data, text(path))
