"""Folders and sets of files that are there whole or not at all."""

from __future__ import annotations

import pytest
from made_images import write

from caffe.atomic_folder import move_into_place, staged


def tree(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_what_cannot_be_replaced_stays(tmp_path):
    write(tmp_path / "old/a", b"old")
    with pytest.raises(FileNotFoundError):
        move_into_place(tmp_path / "missing", tmp_path / "old")
    assert tree(tmp_path) == {"old/a": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("existing", ["nothing", "file", "folder", "link", "dangling link"])
def test_whatever_lies_there_is_replaced(tmp_path, existing):
    target = tmp_path / "target"
    write(tmp_path / "elsewhere/a", b"kept")
    if existing == "file":
        write(target, b"old")
    elif existing == "folder":
        write(target / "b", b"old")
    elif existing != "nothing":
        target.symlink_to("elsewhere" if existing == "link" else "nowhere")
    write(tmp_path / "made/a", b"new")
    move_into_place(tmp_path / "made", target)
    assert tree(tmp_path) == {"elsewhere/a": "kept", "target/a": "new"}
    assert not target.is_symlink()


def test_all_or_none(tmp_path):
    out = tmp_path / "deep/out"
    with pytest.raises(RuntimeError), staged(out, ["a", "b"], False) as part:
        write(part / "a", b"1")
        raise RuntimeError
    assert not out.exists()
    with staged(out, ["a", "b", "c"], False) as part:
        write(part / "a", b"1")
        write(part / "b/x", b"2")
        write(part / "scratch", b"3")
    assert tree(out) == {"a": "1", "b/x": "2"}
    with pytest.raises(FileExistsError, match="out/b' exists already"):
        staged(out, ["c", "b"], False).__enter__()
    with pytest.raises(RuntimeError), staged(out, ["a", "b"], True) as part:
        write(part / "a", b"new")
        raise RuntimeError
    assert tree(out) == {"a": "1", "b/x": "2"}
    write(out / "other", b"stays")
    with staged(out, ["a", "b"], True) as part:
        write(part / "a", b"new")
        write(part / "b/y", b"new")
    assert tree(out) == {"a": "new", "b/y": "new", "other": "stays"}
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
