"""Golden vectors of BVLC Caffe: where they are and how a net is compared with one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import caffe
from caffe.net import Net, Settings
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_net

HERE = Path(__file__).parent
RTOL, ATOL = 1e-4, 1e-5


def layer_cases() -> list[str]:
    return sorted(path.stem for path in (HERE / "layers").glob("*.prototxt"))


def solver_cases() -> list[str]:
    return sorted(path.name for path in (HERE / "solvers").iterdir())


def _param(case: str) -> pb.NetParameter:
    return read_net(HERE / "layers" / f"{case}.prototxt")


def make_net(case: str, mode: str) -> Net:
    param = _param(case)
    phase = caffe.TEST if case.endswith("_test") else caffe.TRAIN
    compression = pb.CompressionParameter(mode=mode, error_bound=0)
    return Net.from_param(param, pb.NetState(phase=phase), Settings(compression, seed=1))


def check_layer_case(case: str, mode: str) -> None:
    """Forward, backward and statistics of one case in one mode of compression."""
    missing = {layer.type for layer in _param(case).layer} - set(caffe.layer_type_list())
    if missing:
        pytest.skip(f"needs layer types that do not exist yet: {', '.join(sorted(missing))}")
    net = make_net(case, mode)
    vectors = np.load(HERE / "layers" / f"{case}.npz")
    for layer, blobs in net.params.items():
        for index, blob in enumerate(blobs):
            blob.data[...] = vectors[f"param_{layer}_{index}"]
    for key in _keys(vectors, "in_"):
        net.blobs[key].data[...] = vectors[f"in_{key}"]
    net.forward()
    for key in _keys(vectors, "out_"):
        _compare(net.blobs[key].data, vectors[f"out_{key}"], f"out_{key}")
    _compare_parameters(net, vectors, "param_after", "data")
    gradients = [name for name in vectors.files if name.startswith(("diff_in_", "diff_param_"))]
    if not gradients:
        return
    outputs = {key: vectors[f"diff_out_{key}"] for key in _keys(vectors, "diff_out_")}
    net.clear_param_diffs()
    net.backward(**outputs)
    for key in _keys(vectors, "diff_in_"):
        _compare(net.blobs[key].diff, vectors[f"diff_in_{key}"], f"diff_in_{key}")
    _compare_parameters(net, vectors, "diff_param", "diff")


def _compare_parameters(net: Net, vectors: np.lib.npyio.NpzFile, prefix: str, what: str) -> None:
    """Compare data or diff of every learnable blob that the case has figures for."""
    for layer, blobs in net.params.items():
        for index, blob in enumerate(blobs):
            name = f"{prefix}_{layer}_{index}"
            if name in vectors:
                _compare(getattr(blob, what), vectors[name], name)


def _keys(vectors: np.lib.npyio.NpzFile, prefix: str) -> list[str]:
    return [name[len(prefix) :] for name in vectors.files if name.startswith(prefix)]


def _compare(ours: np.ndarray, theirs: np.ndarray, what: str) -> None:
    np.testing.assert_allclose(ours, theirs.reshape(ours.shape), rtol=RTOL, atol=ATOL, err_msg=what)
