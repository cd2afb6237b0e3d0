"""LMDB: order, wrap-around, growth, atomic writing, and damaged databases."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from caffe.data import lmdb_writer
from caffe.data.lmdb_source import LmdbSource
from caffe.data.lmdb_writer import LmdbWriter


def make(path, records=10, size=10):
    with LmdbWriter(path) as writer:
        for i in reversed(range(records)):
            writer.put(f"{i:08}", bytes([i % 256]) * size)
    return path


def keys(source, count):
    return [int(source.read()[0]) for _ in range(count)]


def test_key_order_and_wrap_around(tmp_path):
    source = LmdbSource(make(tmp_path / "db", 3))
    assert len(source) == 3
    assert keys(source, 7) == [0, 1, 2, 0, 1, 2, 0]
    assert source.position == 7
    source.close()
    source.close()
    with pytest.raises(ValueError, match="closed"):
        source.read()


def test_position_goes_anywhere(tmp_path):
    source = LmdbSource(make(tmp_path / "db"))
    for position in (7, 3, 25, 9, 10, 0):
        source.position = position
        assert keys(source, 2) == [position % 10, (position + 1) % 10]
    with pytest.raises(ValueError, match="negative"):
        source.position = -1
    source.close()


def test_two_readers_of_one_database(tmp_path):
    path = make(tmp_path / "db")
    first, second = LmdbSource(path), LmdbSource(path)
    assert keys(first, 2) + keys(second, 2) == [0, 1, 0, 1]
    first.close()
    assert keys(second, 1) == [2]
    second.close()


def test_map_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(lmdb_writer, "_FIRST_MAP_SIZE", 1 << 16)
    source = LmdbSource(make(tmp_path / "db", 3000, 1000))
    assert len(source) == 3000
    source.close()


def test_one_record_larger_than_the_map(tmp_path, monkeypatch):
    monkeypatch.setattr(lmdb_writer, "_FIRST_MAP_SIZE", 1 << 16)
    source = LmdbSource(make(tmp_path / "db", 1, 5_000_000))
    assert len(source.read()[1]) == 5_000_000
    source.close()


def test_failure_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), LmdbWriter(tmp_path / "db") as writer:
        writer.put("a", b"1")
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_kill_leaves_no_database(tmp_path):
    script = (
        "import os, sys; from caffe.data.lmdb_writer import LmdbWriter\n"
        "w = LmdbWriter(sys.argv[1]); w.put('a', b'1'); w._flush(); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "db"], check=False)
    assert done.returncode == 9
    assert not (tmp_path / "db").exists()


def test_existing_database_is_kept_until_the_new_one_is_done(tmp_path):
    path = make(tmp_path / "db", 3)
    with pytest.raises(FileExistsError, match="exists already"):
        LmdbWriter(path)
    with pytest.raises(RuntimeError), LmdbWriter(path, overwrite=True):
        raise RuntimeError
    with LmdbWriter(path, overwrite=True) as writer:
        writer.put("00000005", b"x")
    source = LmdbSource(path)
    assert keys(source, 1) == [5]
    source.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]


def test_bad_keys(tmp_path):
    with pytest.raises(ValueError, match="occurs twice"), LmdbWriter(tmp_path / "db") as writer:
        writer.put("a", b"1")
        writer.put("a", b"2")
    for key in ("", "x" * 512):
        with pytest.raises(ValueError, match="1 to 511 bytes"), LmdbWriter(tmp_path / "db") as w:
            w.put(key, b"1")


def test_readable_by_others_and_in_a_folder_without_write_permission(tmp_path):
    path = make(tmp_path / "db")
    assert [file.name for file in path.iterdir()] == ["data.mdb"]
    assert path.stat().st_mode & 0o055
    path.chmod(0o555)
    LmdbSource(path).close()
    assert [file.name for file in path.iterdir()] == ["data.mdb"]
    path.chmod(0o755)


@pytest.mark.parametrize("keep", [0, 10, 100, 4096, 8192, 20000, 0.5, 0.99])
def test_cut_off(tmp_path, keep):
    path = make(tmp_path / "db", 100, 5000)
    file = path / "data.mdb"
    size = file.stat().st_size
    os.truncate(file, int(size * keep) if isinstance(keep, float) else keep)
    with pytest.raises(ValueError, match=r"is cut off|cannot be opened|is empty"):
        LmdbSource(path)


def test_garbage(tmp_path):
    path = make(tmp_path / "db")
    (path / "data.mdb").write_bytes(b"garbage" * 5000)
    with pytest.raises(ValueError, match="cannot be opened as an LMDB"):
        LmdbSource(path)


def test_no_records(tmp_path):
    with pytest.raises(ValueError, match="is empty: it has no records"):
        LmdbSource(make(tmp_path / "db", 0))


def test_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        LmdbSource("data/fashion_mnist/fashion_mnist_train_lmdb")
    assert str(tmp_path) in str(error.value)
    assert "caffe prepare fashion-mnist -out data/fashion_mnist" in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"caffe prepare images .* -out train_lmdb"):
        LmdbSource("train_lmdb")


def test_other_folders(tmp_path):
    with pytest.raises(ValueError, match=r"has no data\.mdb"):
        LmdbSource(tmp_path)
    (tmp_path / "CURRENT").touch()
    with pytest.raises(ValueError, match="is a LevelDB"):
        LmdbSource(tmp_path)
