"""Weights, states and logs: damaged, of another net, or with nowhere to go."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest
from nets import make_solver
from small import fill, net_text

from caffe.atomic_file import write_atomically
from caffe.compression_log import JsonLines
from caffe.prototxt import parse_net
from caffe.solver import Solver


def solver_at(folder: Path, text: str = "") -> Solver:
    prefix = f'snapshot_prefix: "{folder}/a"'
    solver = make_solver(parse_net(text or net_text()), prefix, "mode: ADAPTIVE")
    fill(solver.net)
    return solver


def test_weights_of_another_net(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    solver = solver_at(tmp_path)
    weights, state = solver.snapshot()
    renamed = net_text().replace('name: "c2"', 'name: "other"')
    other = solver_at(tmp_path, renamed)
    other.net.copy_from(weights)
    assert "Ignoring source layer c2" in capfd.readouterr().err
    with pytest.raises(ValueError, match="no weights for layer 'other': they are another net's"):
        other.restore(state)
    for name in ("c1", "ip"):
        renamed = renamed.replace(f'name: "{name}"', f'name: "other {name}"')
    stranger = solver_at(tmp_path, renamed)
    with pytest.raises(ValueError, match="for none of the net's layers: it names 'c1', 'c2'"):
        stranger.net.copy_from(weights)


def test_damaged_files_give_errors_or_values(tmp_path: Path) -> None:
    solver = solver_at(tmp_path)
    solver.step(2)
    files = [path.read_bytes() for path in solver.snapshot()]
    draw = random.Random(3)
    refused = 0
    for number in range(200):
        content = bytearray(files[number % 2])
        for _ in range(draw.choice([1, 2, 9])):
            near_end = draw.random() < 0.6
            at = (
                draw.randrange(len(content) - 1500, len(content)) if near_end else draw.randrange(9)
            )
            if draw.random() < 0.7:
                content[at] = draw.randrange(256)
            else:
                del content[at : at + draw.choice([1, 40])]
        damaged = tmp_path / "damaged"
        damaged.write_bytes(content)
        try:
            (solver.restore if number % 2 else solver.net.copy_from)(damaged)
        except (ValueError, FileNotFoundError):
            refused += 1
    assert refused > 50


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "x.caffemodel"
    with pytest.raises(FileNotFoundError, match=f"cannot write '{missing}': No such file"):
        write_atomically(missing, b"1")
    with pytest.raises(OSError, match="cannot write compression log '/proc/x'"):
        JsonLines("/proc/x")


def test_full_disk_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "x.caffemodel"
    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=f"cannot write '{path}': No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
