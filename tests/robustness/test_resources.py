"""Memory stays flat, and sums do not depend on the number of threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from nets import make_solver
from small import fill, net_text

import caffe
from caffe import _core
from caffe._core import MemoryKind, Tensor, memory
from caffe._core.store import statistics_of
from caffe.prototxt import parse_net

HERE = Path(__file__).parent


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def growth(mode: str) -> tuple[int, int]:
    """Bytes of tensors, and of resident memory, that 150 nets built and dropped leave behind."""

    def use() -> None:
        solver = make_solver(parse_net(net_text()), compression=f"mode: {mode}")
        fill(solver.net)
        solver.step(1)

    for _ in range(20):
        use()
    gc.collect()
    live, resident = sum(memory.live().values()), resident_bytes()
    for _ in range(150):
        use()
    gc.collect()
    return sum(memory.live().values()) - live, resident_bytes() - resident


@pytest.mark.parametrize("mode", ["NONE", "ADAPTIVE"])
def test_nets_built_and_dropped_leave_nothing(mode: str) -> None:
    """In a process of its own: the heap that other tests left would grow by its own rules."""
    code = f"import test_resources as t; print(*t.growth({mode!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout
    live, resident = map(int, output.split())
    assert live == 0
    assert resident < 2**20


def test_sums_are_the_same_for_any_number_of_threads() -> None:
    tensor = Tensor((3, 100_003), MemoryKind.WORKSPACE)
    tensor.numpy()[...] = np.random.default_rng(0).standard_normal(tensor.shape)
    before = _core.num_threads()
    results = set()
    try:
        for threads in (1, 2, 3, 8):
            _core.set_num_threads(threads)
            seen = statistics_of(tensor)
            results.add((seen.sum, seen.sum_squares, tensor.rms(), tensor.mean_abs()))
    finally:
        _core.set_num_threads(before)
    assert len(results) == 1


def test_tensors_without_values_are_errors() -> None:
    mask = Tensor((100,), MemoryKind.WORKSPACE, mask=True)
    for use in (Tensor.rms, Tensor.mean_abs, Tensor.numpy, statistics_of):
        for tensor in (Tensor(), mask):
            with pytest.raises(ValueError, match=r"holds nothing|no values|float tensors"):
                use(tensor)
    with pytest.raises(ValueError, match="holds nothing"):
        Tensor().zero()


def test_deep_nets_need_no_recursion() -> None:
    text = net_text()
    head, tail = text.split('layer { name: "m"')
    deep = "".join(
        f'layer {{ name: "s{i}" type: "Scale" bottom: "c1" top: "c1" }}\n' for i in range(1200)
    )
    solver = make_solver(parse_net(head + deep + 'layer { name: "m"' + tail))
    fill(solver.net)
    solver.step(1)
    assert len(solver.net.layers) > 1200
    assert caffe.__version__
