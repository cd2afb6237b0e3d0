"""Solvers as users of pycaffe know them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import caffe
from caffe import layers as L
from caffe.proto import caffe_pb2 as pb

CLASSES = {
    "SGD": caffe.SGDSolver,
    "Nesterov": caffe.NesterovSolver,
    "AdaGrad": caffe.AdaGradSolver,
    "RMSProp": caffe.RMSPropSolver,
    "AdaDelta": caffe.AdaDeltaSolver,
    "Adam": caffe.AdamSolver,
}


def net():
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(
        shape=[dict(dim=[5, 2, 3, 4]), dict(dim=[5])],
        data_filler=[dict(type="gaussian", std=1), dict(type="constant")],
        ntop=2,
    )
    n.conv = L.Convolution(
        n.data, num_output=3, kernel_size=2, weight_filler=dict(type="gaussian", std=1)
    )
    n.ip = L.InnerProduct(n.conv, num_output=4, weight_filler=dict(type="gaussian", std=2.5))
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    return n.to_proto()


def param(tmp_path, **fields):
    (tmp_path / "net.prototxt").write_text(str(net()))
    return pb.SolverParameter(
        net=str(tmp_path / "net.prototxt"),
        **dict(
            dict(
                test_iter=[3],
                test_interval=10,
                base_lr=0.01,
                momentum=0.9,
                lr_policy="step",
                gamma=0.5,
                stepsize=40,
                max_iter=30,
                snapshot_after_train=False,
                snapshot_prefix=str(tmp_path / "model"),
                random_seed=3,
                solver_mode=pb.SolverParameter.CPU,
            ),
            **fields,
        ),
    )


def weights(solver):
    return [blob.data.copy() for blobs in solver.net.params.values() for blob in blobs]


def test_file_and_message_train_alike(tmp_path) -> None:
    (tmp_path / "solver.prototxt").write_text(str(param(tmp_path)))
    path = str(tmp_path / "solver.prototxt")
    trained = []
    for source in (path, tmp_path / "solver.prototxt", param(tmp_path)):
        for make in (caffe.SGDSolver, caffe.get_solver):
            solver = make(source)
            solver.step(3)
            trained.append(weights(solver))
    for other in trained[1:]:
        for ours, theirs in zip(trained[0], other):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", CLASSES)
def test_get_solver_takes_the_type(tmp_path, kind) -> None:
    momentum = {"SGD": 0.9, "Nesterov": 0.9, "AdaDelta": 0.95, "Adam": 0.9}.get(kind, 0.0)
    solver = caffe.get_solver(param(tmp_path, type=kind, momentum=momentum))
    assert type(solver) is CLASSES[kind]
    before = weights(solver)
    solver.step(2)
    assert any((a != b).any() for a, b in zip(before, weights(solver)))


def test_solve_counts_iterations(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    assert solver.iter == 0
    solver.solve()
    assert solver.iter == 30
    solver.step(5)
    assert solver.iter == 35


def test_step_learns(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    solver.net.forward()
    before = float(solver.net.blobs["loss"].data)
    solver.step(30)
    assert float(solver.net.blobs["loss"].data) < before / 2


def test_param_and_lr(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    assert (solver.param.max_iter, solver.param.display) == (30, 0)
    assert solver.param.base_lr == pytest.approx(0.01)
    assert solver.lr == pytest.approx(0.01)
    solver.step(40)
    assert solver.lr == pytest.approx(0.005)


def test_apply_update(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    before = weights(solver)
    solver.net.forward()
    solver.net.backward()
    gradients = [blob.diff.copy() for blobs in solver.net.params.values() for blob in blobs]
    solver.apply_update()
    for old, new, gradient in zip(before, weights(solver), gradients):
        np.testing.assert_allclose(new, old - 0.01 * gradient, rtol=1e-5, atol=1e-7)
    assert solver.iter == 0


def test_snapshot_and_restore(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    solver.step(4)
    solver.snapshot()
    assert (tmp_path / "model_iter_4.caffemodel").exists()
    state = str(tmp_path / "model_iter_4.solverstate")
    solver.step(3)
    other = caffe.SGDSolver(param(tmp_path))
    other.restore(state)
    assert other.iter == 4
    other.step(3)
    for ours, theirs in zip(weights(solver), weights(other)):
        np.testing.assert_array_equal(ours, theirs)
    third = caffe.SGDSolver(param(tmp_path))
    third.solve(state)
    assert third.iter == 30


def test_nets_outlive_the_solver(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    solver.step(1)
    nets = [solver.net, *solver.test_nets]
    assert len(nets) == 2
    del solver
    gc.collect()
    total = sum(
        float(np.abs(blob.data).sum() + np.abs(blob.diff).sum())
        for one in nets
        for blobs in one.params.values()
        for blob in blobs
    )
    assert np.isfinite(total)
    assert total > 0


def test_test_nets_share_weights(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    solver.net.params["ip"][0].data[...] = 3
    assert (solver.test_nets[0].params["ip"][0].data == 3).all()
    other = caffe.Net(net(), caffe.TEST)
    solver.share_weights(other)
    assert (other.params["ip"][0].data == 3).all()


def test_callbacks(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    seen = []
    solver.add_callback(lambda: seen.append("start"), lambda: seen.append("gradients"))
    solver.step(2)
    assert seen == ["start", "gradients"] * 2


def test_blobs_of_test_nets_stay_readable(tmp_path) -> None:
    """Loops of one's own read what the test net computed, and go on from the middle."""
    solver = caffe.SGDSolver(param(tmp_path))
    solver.step(2)
    test = solver.test_nets[0]
    loss = float(test.forward()["loss"])
    scores = test.blobs["ip"].data.astype(np.float64)
    expected = np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[:, 0])
    assert loss == pytest.approx(expected, rel=1e-4)
    assert float(test.forward(start="conv")["loss"]) == loss


def test_under_compression_test_nets_let_go(tmp_path) -> None:
    solver = caffe.SGDSolver(param(tmp_path))
    for mode in ("LOSSLESS", "NONE", "LOSSLESS"):
        solver.compression.set(mode=mode)
        solver.step(1)
        solver.test_nets[0].forward()
        if mode == "NONE":
            assert solver.test_nets[0].blobs["ip"].data.shape == (5, 4)
        else:
            with pytest.raises(caffe.Error, match="is not in memory any more"):
                _ = solver.test_nets[0].blobs["ip"].data
    solver.compression.set(keep=["ip"])
    solver.test_nets[0].forward()
    assert solver.test_nets[0].blobs["ip"].data.shape == (5, 4)
