"""Large weights: no second copy of them in memory, to load, to save or to resume."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import caffe
from caffe import wire
from caffe.prototxt import parse_net

WIDE = 4096  # 64 MiB of weights
NET = """
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: 1 dim: {0} }} }} }}
layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: 1 }} }} }}
layer {{ name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param {{ num_output: {0} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
MIB = 2**20


def write_v1(net: caffe.Net, path: Path) -> None:
    """The weights as a V1 layer, whose name and blobs are fields 4 and 6."""
    parts = [wire.header(4, 2) + b"ip"]
    for blob in net.params["ip"]:
        sizes = (1, 1, *blob.shape) if len(blob.shape) == 2 else (1, 1, 1, *blob.shape)
        head = b"".join(bytes([8 * n]) + wire.varint(size) for n, size in enumerate(sizes, 1))
        data = blob.data.tobytes()
        body = head + wire.header(5, len(data)) + data
        parts.append(wire.header(6, len(body)) + body)
    layer = b"".join(parts)
    path.write_bytes(wire.header(2, len(layer)) + layer)


@pytest.mark.parametrize("kind", ["current", "V1", "HDF5"])
def test_allocations(tmp_path: Path, kind: str) -> None:
    if kind == "HDF5":
        pytest.importorskip("h5py", reason="h5py is not installed")
    net = caffe.Net(parse_net(NET.format(1024)), caffe.TRAIN)
    net.params["ip"][0].data[...] = np.random.default_rng(0).standard_normal((1024, 1024))
    values = net.params["ip"][0].data.copy()
    path = tmp_path / "w"
    save = {"current": net.save, "HDF5": net.save_hdf5, "V1": lambda path: write_v1(net, path)}
    save[kind](path)
    tracemalloc.start()
    try:
        if kind != "V1":
            save[kind](tmp_path / "again")
        net.params["ip"][0].data[...] = 0
        tracemalloc.reset_peak()
        net.copy_from(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(net.params["ip"][0].data, values)
    assert path.stat().st_size > 4 * MIB
    # Of 4 MiB of weights; what is left is Python's own, such as modules that are imported.
    assert peak < 2 * MIB


SCRIPT = """
import sys
from pathlib import Path
from caffe.prototxt import parse_net
from caffe.proto import caffe_pb2 as pb
import caffe

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

def grown(what):
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    what()
    return peak() - before

solver = caffe.get_solver(pb.SolverParameter(
    base_lr=1, lr_policy="fixed", net_param=parse_net(sys.argv[1]), snapshot_prefix=sys.argv[2],
    solver_mode=pb.SolverParameter.CPU))
for tensor in solver.history:
    tensor.zero()
saved = grown(solver.snapshot)
loaded = grown(lambda: solver.net.copy_from(sys.argv[2] + "_iter_0.caffemodel"))
resumed = grown(lambda: solver.restore(sys.argv[2] + "_iter_0.solverstate"))
print(saved, loaded, resumed)
"""


def test_resident_memory_of_the_process(tmp_path: Path) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs Linux's /proc/self/clear_refs")
    command = [sys.executable, "-c", SCRIPT, NET.format(WIDE), str(tmp_path / "a")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    size = (tmp_path / "a_iter_0.caffemodel").stat().st_size
    assert size > WIDE * WIDE * 4
    for what, grown in zip(("saving", "loading", "resuming"), result.stdout.split()):
        assert int(grown) < size / 8, f"{what} took {int(grown) / MIB:.1f} MiB"
