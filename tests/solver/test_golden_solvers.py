"""Training against BVLC Caffe's trajectories, and going on from its snapshot files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from golden import HERE, solver_cases
from google.protobuf import text_format

import caffe
from caffe.prototxt import read_binary_net, read_binary_state, read_solver
from caffe.solver import Solver

TOLERANCE = {"rtol": 1e-3, "atol": 1e-5}


@pytest.fixture
def in_case(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the case's folder, made the working directory; the case's name."""
    shutil.copytree(HERE / "solvers" / request.param, tmp_path / "case")
    monkeypatch.chdir(tmp_path / "case")
    return request.param


def make(compression: str) -> Solver:
    param = read_solver("solver.prototxt")
    text_format.Merge(f"compression_param {{ {compression} display: 0 }}", param)
    return caffe.get_solver(param)


def feed(solver: Solver, vectors: np.lib.npyio.NpzFile, iteration: int) -> None:
    solver.net.blobs["x"].data[...] = vectors["x"][iteration]
    solver.net.blobs["l"].data[...] = vectors["l"][iteration]


def compare(solver: Solver, vectors: np.lib.npyio.NpzFile, prefix: str) -> None:
    for layer, blobs in solver.net.params.items():
        for index, blob in enumerate(blobs):
            name = f"{prefix}_{layer}_{index}"
            np.testing.assert_allclose(blob.data, vectors[name], **TOLERANCE, err_msg=name)


@pytest.mark.parametrize("compression", ["mode: NONE", "mode: LOSSLESS"])
@pytest.mark.parametrize("in_case", solver_cases(), indirect=True)
def test_trajectory(in_case: str, compression: str) -> None:
    vectors = np.load("trajectory.npz")
    solver = make(compression)
    for layer, blobs in solver.net.params.items():
        for index, blob in enumerate(blobs):
            blob.data[...] = vectors[f"init_{layer}_{index}"]
    for iteration in range(len(vectors["loss"])):
        if iteration == 8:
            compare(solver, vectors, "half")
        feed(solver, vectors, iteration)
        solver.step(1)
        np.testing.assert_allclose(solver.loss_window[-1], vectors["loss"][iteration], **TOLERANCE)
        np.testing.assert_allclose(solver.lr, vectors["lr"][iteration], rtol=1e-6)
    compare(solver, vectors, "final")


@pytest.mark.parametrize("in_case", solver_cases(), indirect=True)
def test_goes_on_from_bvlc_snapshot(in_case: str) -> None:
    vectors = np.load("trajectory.npz")
    solver = make("mode: LOSSLESS")
    solver.restore("snap_iter_8.solverstate")
    assert solver.iter == 8
    compare(solver, vectors, "half")
    for iteration in range(8, len(vectors["loss"])):
        feed(solver, vectors, iteration)
        solver.step(1)
    compare(solver, vectors, "final")


@pytest.mark.parametrize("in_case", solver_cases(), indirect=True)
def test_our_snapshot_has_bvlc_fields(in_case: str) -> None:
    theirs = make("mode: NONE")
    theirs.restore("snap_iter_8.solverstate")
    theirs.param.snapshot_prefix = "ours"
    model, state = theirs.snapshot()
    assert [os.fspath(path) for path in (model, state)] == [
        "ours_iter_8.caffemodel",
        "ours_iter_8.solverstate",
    ]
    ours, bvlc = read_binary_net(model), read_binary_net("snap_iter_8.caffemodel")
    assert [layer.name for layer in ours.layer] == [layer.name for layer in bvlc.layer]
    for mine, other in zip(ours.layer, bvlc.layer):
        assert [list(blob.shape.dim) for blob in mine.blobs] == [
            list(blob.shape.dim) for blob in other.blobs
        ]
        assert [list(blob.data) for blob in mine.blobs] == [list(blob.data) for blob in other.blobs]
    ours_state, bvlc_state = read_binary_state(state), read_binary_state("snap_iter_8.solverstate")
    assert ours_state.iter == bvlc_state.iter
    assert ours_state.current_step == bvlc_state.current_step
    assert [list(b.data) for b in ours_state.history] == [list(b.data) for b in bvlc_state.history]
