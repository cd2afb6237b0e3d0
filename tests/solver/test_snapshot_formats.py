"""Weights and states in both formats: what HDF5 files hold, and going on from them."""

from __future__ import annotations

import builtins
from pathlib import Path

import numpy as np
import pytest
from nets import batches, make_solver, parameters, train

import caffe
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net, read_binary_net, read_solver
from caffe.solver import Solver

h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install 'comet-caffe[hdf5]'")

SHAPE = (4, 1, 8, 8)
NET = """
name: "shared"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 1 dim: 8 dim: 8 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { name: "w" }
  convolution_param { num_output: 6 kernel_size: 8 weight_filler { type: "xavier" } } }
layer { name: "block/ip" type: "InnerProduct" bottom: "data" top: "ip"
  param { name: "w" share_mode: PERMISSIVE }
  inner_product_param { num_output: 6 } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "flat" type: "Flatten" bottom: "conv" top: "flat" }
layer { name: "sum" type: "Eltwise" bottom: "flat" bottom: "ip" top: "sum" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "sum" bottom: "label" top: "loss" }
"""


def solver_at(prefix: Path, text: str = "") -> Solver:
    fields = f'snapshot_prefix: "{prefix}" snapshot_format: HDF5 {text}'
    return make_solver(parse_net(NET), fields)


def data(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return batches(SHAPE, count, classes=6)


def state_of(solver: Solver) -> list[np.ndarray]:
    return [*parameters(solver), *(tensor.numpy().copy() for tensor in solver.history)]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_a_run_resumed_from_hdf5_equals_the_uninterrupted_one(tmp_path: Path, kind: str) -> None:
    text, steps = f'type: "{kind}"', data(8)
    first = solver_at(tmp_path / "a", text)
    train(first, steps[:3])
    model, state = first.snapshot()
    assert (model.name, state.name) == ("a_iter_3.caffemodel.h5", "a_iter_3.solverstate.h5")
    train(first, steps[3:])
    second = solver_at(tmp_path / "b", text)
    second.restore(state)
    assert second.iter == 3
    train(second, steps[3:])
    for ours, theirs in zip(state_of(first), state_of(second)):
        np.testing.assert_array_equal(ours, theirs)


def test_files_are_laid_out_as_bvlc_caffe_does(tmp_path: Path) -> None:
    solver = solver_at(tmp_path / "a", 'type: "Adam" lr_policy: "step" stepsize: 2 gamma: 0.5')
    train(solver, data(5))
    model, state = solver.snapshot()
    with h5py.File(model) as file:
        assert set(file) == {"data"}
        assert set(file["data"]) == {
            "data", "label", "conv", "block", "relu", "flat", "sum", "loss",
            "data_data_0_split",
        }  # fmt: skip
        assert list(file["data/relu"]) == []
        # Only blobs that a layer owns; the shared weights are conv's.
        assert list(file["data/conv"]) == ["0", "1"]
        assert list(file["data/block/ip"]) == ["1"]
        assert file["data/conv/0"].dtype == np.float32
        np.testing.assert_array_equal(file["data/conv/0"], solver.net.params["conv"][0].data)
    with h5py.File(state) as file:
        assert {"iter", "current_step", "learned_net", "history"} <= set(file)
        for name, value in (("iter", 5), ("current_step", 2)):
            assert (file[name].shape, file[name].dtype) == ((1,), np.int32)
            assert file[name][0] == value
        text = file["learned_net"].id.get_type()
        assert (text.get_size(), text.get_strpad()) == (
            len(str(model)) + 1,
            h5py.h5t.STR_NULLTERM,
        )
        assert file["learned_net"][()].decode() == str(model)
        assert sorted(file["history"], key=int) == [str(i) for i in range(6)]
        for index, tensor in enumerate(solver.history):
            np.testing.assert_array_equal(file[f"history/{index}"], tensor.numpy())


def test_states_as_bvlc_caffe_writes_them_are_read(tmp_path: Path) -> None:
    solver = solver_at(tmp_path / "a")
    train(solver, data(2))
    model, _ = solver.snapshot()
    with h5py.File(tmp_path / "theirs.h5", "w") as file:
        file["iter"] = np.array([7], np.int32)
        file["current_step"] = np.array([0], np.int32)
        file["learned_net"] = str(model)
        for index, tensor in enumerate(solver.history):
            file[f"history/{index}"] = tensor.numpy() + 1
    other = solver_at(tmp_path / "b")
    other.restore(tmp_path / "theirs.h5")
    assert other.iter == 7
    for ours, theirs in zip(parameters(other), parameters(solver)):
        np.testing.assert_array_equal(ours, theirs)
    for mine, tensor in zip(other.history, solver.history):
        np.testing.assert_array_equal(mine.numpy(), tensor.numpy() + 1)


@pytest.mark.parametrize("ending", [".caffemodel", ".caffemodel.h5"])
def test_a_net_saves_and_loads_either_format_with_shared_blobs(tmp_path: Path, ending: str) -> None:
    net = caffe.Net(parse_net(NET), caffe.TRAIN)
    path = tmp_path / f"w{ending}"
    (net.save_hdf5 if ending.endswith(".h5") else net.save)(path)
    other = caffe.Net(parse_net(NET), caffe.TRAIN)
    for blobs in other.params.values():
        for blob in blobs:
            blob.data[...] = 7
    other.load_hdf5(path) if ending.endswith(".h5") else other.copy_from(path)
    assert other.params["block/ip"][0].shape == (6, 64)
    for name, blobs in net.params.items():
        for ours, theirs in zip(other.params[name], blobs):
            np.testing.assert_array_equal(ours.data, theirs.data)
    assert caffe.Net(parse_net(NET), str(path), caffe.TEST).params["conv"][0].data.any()


@pytest.mark.parametrize("form", ["HDF5", "BINARYPROTO"])
def test_snapshot_diff_writes_gradients(tmp_path: Path, form: str) -> None:
    solver = solver_at(tmp_path / "a", f"snapshot_diff: true snapshot_format: {form}")
    train(solver, data(1))
    model, _ = solver.snapshot()
    gradient = solver.net.params["conv"][0].diff
    assert gradient.any()
    if form == "HDF5":
        with h5py.File(model) as file:
            np.testing.assert_array_equal(file["diff/conv/0"], gradient)
    else:
        blob = next(x for x in read_binary_net(model).layer if x.name == "conv").blobs[0]
        np.testing.assert_array_equal(np.reshape(blob.diff, gradient.shape), gradient)
    solver.net.copy_from(model)


def test_hdf5_of_something_else_is_named(tmp_path: Path) -> None:
    solver = solver_at(tmp_path / "a")
    model, state = solver.snapshot()
    with pytest.raises(ValueError, match="is an HDF5 file, but not a solver state: "):
        solver.restore(model)
    with pytest.raises(ValueError, match="is an HDF5 file, but not weights: "):
        solver.net.copy_from(state)
    for path in (model, state):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=f"'{model}' is an HDF5 file, but not weights"):
        solver.net.copy_from(model)
    with pytest.raises(ValueError, match=f"'{state}' is an HDF5 file, but not a solver state"):
        solver.restore(state)


def test_blobs_that_do_not_fit(tmp_path: Path) -> None:
    net = caffe.Net(parse_net(NET), caffe.TRAIN)
    path = tmp_path / "w.h5"
    net.save_hdf5(path)
    with h5py.File(path, "a") as file:
        del file["data/conv/1"]
    with pytest.raises(ValueError, match=r"layer 'conv' in '.*' has 1 blobs, the net's has 2"):
        net.load_hdf5(path)


def test_without_h5py_the_extra_is_named_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.h5"
    net = caffe.Net(parse_net(NET), caffe.TRAIN)
    net.save_hdf5(path)
    original = builtins.__import__

    def without(name: str, *arguments: object) -> object:
        if name == "h5py":
            raise ImportError(name)
        return original(name, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    line = r"HDF5 files need h5py: pip install 'comet-caffe\[hdf5\]'"
    with pytest.raises(ImportError, match=line):
        solver_at(tmp_path / "a", "snapshot: 1")
    with pytest.raises(ImportError, match=line):
        net.copy_from(path)
    with pytest.raises(ImportError, match=line):
        net.save_hdf5(tmp_path / "x.h5")


def test_prefix_of_snapshots_as_in_bvlc_caffe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    text = 'base_lr: 1 lr_policy: "fixed"'
    cases = {"": "my.solver", 'snapshot_prefix: "out"': "out/my.solver",
             'snapshot_prefix: "out/x"': "out/x"}  # fmt: skip
    for field, prefix in cases.items():
        Path("my.solver.prototxt").write_text(f"{text} {field}")
        assert read_solver("my.solver.prototxt").snapshot_prefix == prefix


def test_weights_field_of_the_solver_takes_several_files(tmp_path: Path) -> None:
    first = solver_at(tmp_path / "a")
    train(first, data(1))
    first.net.save(tmp_path / "a.caffemodel")
    first.net.save_hdf5(tmp_path / "b.caffemodel.h5")
    names = f"{tmp_path}/a.caffemodel, {tmp_path}/b.caffemodel.h5"
    second = solver_at(tmp_path / "b", f'weights: "{names}"')
    for ours, theirs in zip(parameters(first), parameters(second)):
        np.testing.assert_array_equal(ours, theirs)
    assert second.param.snapshot_format == pb.SolverParameter.HDF5
