"""A resumed run equals the uninterrupted one; snapshots never leave half a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import caffe
from caffe.data.lmdb_writer import LmdbWriter
from caffe.proto import caffe_pb2 as pb
from caffe.solver import Solver
from caffe.solver_types import SOLVERS

NET = """
name: "resume"
layer {{ name: "data" type: "Data" top: "data" top: "label"
  data_param {{ source: "{source}" backend: LMDB batch_size: 6 }}
  transform_param {{ mirror: true crop_size: 10 scale: 0.00390625 }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param {{ num_output: 8 kernel_size: 3 weight_filler {{ type: "msra" }} }} }}
layer {{ name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }}
layer {{ name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param {{ bias_term: true }} }}
layer {{ name: "relu" type: "ReLU" bottom: "conv" top: "conv" }}
layer {{ name: "conv2" type: "Convolution" bottom: "conv" top: "conv2"
  convolution_param {{ num_output: 8 kernel_size: 3 weight_filler {{ type: "msra" }} }} }}
layer {{ name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }}
layer {{ name: "drop" type: "Dropout" bottom: "conv2" top: "conv2" }}
layer {{ name: "ip" type: "InnerProduct" bottom: "conv2" top: "ip"
  inner_product_param {{ num_output: 3 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "records"
    rng = np.random.default_rng(3)
    with LmdbWriter(path) as writer:
        for index in range(20):
            datum = pb.Datum(channels=1, height=12, width=12, label=int(rng.integers(3)))
            datum.data = rng.integers(0, 256, 144, dtype=np.uint8).tobytes()
            writer.put(f"{index:08d}".encode(), datum.SerializeToString())
    return path


#: What each solver type wants besides the settings of make().
TYPES = {
    "SGD": "momentum: 0.9",
    "Nesterov": "momentum: 0.9",
    "AdaGrad": "",
    "RMSProp": "rms_decay: 0.9",
    "AdaDelta": "momentum: 0.95 delta: 1e-6 base_lr: 1",
    "Adam": "momentum: 0.9 momentum2: 0.99",
}


def make(
    database: Path, prefix: Path, mode: str, seed: int = 5, kind: str = "SGD", text: str = ""
) -> Solver:
    param = pb.SolverParameter(
        base_lr=0.02,
        lr_policy="multistep",
        gamma=0.1,
        weight_decay=1e-3,
        max_iter=40,
        average_loss=5,
        random_seed=seed,
        snapshot_prefix=str(prefix),
        snapshot_after_train=False,
        solver_mode=pb.SolverParameter.CPU,
    )
    param.stepvalue.extend([9, 17])
    text_format.Merge(NET.format(source=database), param.net_param)
    text_format.Merge(f"compression_param {{ mode: {mode} display: 0 interval: 6 }}", param)
    text_format.Merge(f'type: "{kind}" {TYPES[kind]} {text}', param)
    return caffe.get_solver(param)


def state_of(solver: Solver) -> list[np.ndarray]:
    values = [blob.parameter.data.numpy().copy() for blob in solver.net.learned]
    return values + [tensor.numpy().copy() for tensor in solver.history]


@pytest.mark.parametrize("seed", [5, -1])
@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS", "ADAPTIVE"])
@pytest.mark.parametrize("stop", [1, 7, 12])
def test_resumed_equals_uninterrupted(
    database: Path, tmp_path: Path, mode: str, stop: int, seed: int
) -> None:
    first = make(database, tmp_path / "a", mode, seed)
    first.step(stop)
    _, state = first.snapshot()
    first.step(24 - stop)

    second = make(database, tmp_path / "b", mode, seed)
    second.restore(state)
    assert second.iter == stop
    second.step(24 - stop)

    assert list(first.loss_window) == list(second.loss_window)
    for ours, theirs in zip(state_of(first), state_of(second)):
        np.testing.assert_array_equal(ours, theirs)
    first.close()
    second.close()


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_resumes_to_the_bit(
    database: Path, tmp_path: Path, kind: str, mode: str
) -> None:
    first = make(database, tmp_path / "a", mode, kind=kind)
    assert type(first) is SOLVERS[kind]
    first.step(5)
    _, state = first.snapshot()
    first.step(7)
    second = make(database, tmp_path / "b", mode, kind=kind)
    second.restore(state)
    second.step(7)
    for ours, theirs in zip(state_of(first), state_of(second)):
        np.testing.assert_array_equal(ours, theirs)
    first.close()
    second.close()


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_the_same_to_the_bit_under_lossless(
    database: Path, tmp_path: Path, kind: str
) -> None:
    results = []
    for mode in ("NONE", "LOSSLESS"):
        solver = make(database, tmp_path / "a", mode, kind=kind)
        solver.step(6)
        results.append(state_of(solver))
        solver.close()
    for ours, theirs in zip(*results):
        np.testing.assert_array_equal(ours, theirs)


def test_a_state_of_another_type_is_refused(database: Path, tmp_path: Path) -> None:
    adam = make(database, tmp_path / "a", "NONE", kind="Adam")
    _, state = adam.snapshot()
    sgd = make(database, tmp_path / "b", "NONE")
    with pytest.raises(ValueError, match=r"history blobs, this solver needs .* or solver type"):
        sgd.restore(state)
    adam.close()
    sgd.close()


def test_a_failed_write_leaves_the_old_snapshot(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solver = make(database, tmp_path / "a", "NONE")
    model, _ = solver.snapshot()
    before = model.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        solver.snapshot()
    assert model.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))
    solver.close()


def test_wrong_files(database: Path, tmp_path: Path) -> None:
    solver = make(database, tmp_path / "a", "NONE")
    model, state = solver.snapshot()
    with pytest.raises(ValueError, match="caffemodel"):
        solver.restore(model)
    with pytest.raises(ValueError, match="solverstate"):
        solver.net.copy_from(state)
    with pytest.raises(FileNotFoundError, match="nothing"):
        solver.restore(tmp_path / "nothing.solverstate")
    model.unlink()
    with pytest.raises(FileNotFoundError, match="names the weights"):
        solver.restore(state)
    solver.close()


def test_missing_snapshot_folder_is_found_before_training(database: Path, tmp_path: Path) -> None:
    param = pb.SolverParameter(base_lr=0.1, lr_policy="fixed", snapshot_prefix="no/such/folder/x")
    with pytest.raises(FileNotFoundError, match="no/such/folder"):
        caffe.get_solver(param)
