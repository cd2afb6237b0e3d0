"""The arena and the tracker, through tensors."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import numpy as np
import pytest

from caffe._core import MemoryKind, Parameter, Tensor, memory

MIB = 1 << 20


def resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def live(kind: str) -> int:
    return memory.live()[kind]


def test_bytes_are_counted_by_kind() -> None:
    before = live("workspace"), live("gradients")
    tensor = Tensor([3, 5], MemoryKind.WORKSPACE)
    assert live("workspace") == before[0] + 60
    tensor.set_kind(MemoryKind.GRADIENTS)
    assert (live("workspace"), live("gradients")) == (before[0], before[1] + 60)
    view = tensor.reshaped([15])
    del tensor
    assert live("gradients") == before[1] + 60
    del view
    assert live("gradients") == before[1]


def test_peak_names_its_scope_and_leaves_parameters_out() -> None:
    memory.reset_peak()
    start = memory.peak()["total"]
    memory.set_scope("first")
    parameter = Parameter([MIB])
    assert memory.peak()["total"] == start
    tensor = Tensor([MIB], MemoryKind.WORKSPACE)
    memory.set_scope("second")
    del tensor
    tensor = Tensor([MIB // 2], MemoryKind.WORKSPACE)
    peak = memory.peak()
    assert (peak["total"], peak["layer"]) == (start + 4 * MIB, "first")
    assert peak["by_kind"]["workspace"] >= 4 * MIB
    del tensor, parameter


def test_random_life_does_not_overlap_and_does_not_grow() -> None:
    rng = random.Random(1)
    held: list[tuple[Tensor, float]] = []
    extents = []
    for step in range(4000):
        if len(held) > 40 or (held and rng.random() < 0.5):
            tensor, mark = held.pop(rng.randrange(len(held)))
            values = tensor.numpy()
            assert values[0] == mark
            assert values[-1] == mark
            del values, tensor
        else:
            tensor = Tensor([rng.choice([1, 7, 1000, 30000, 200000])], MemoryKind.WORKSPACE)
            tensor.numpy().fill(step)
            held.append((tensor, float(step)))
        if step % 1000 == 999:
            extents.append(memory.extent())
    assert extents[-1] <= extents[0] * 1.5
    held.clear()


def test_trim_gives_memory_back() -> None:
    memory.trim()  # of what tests before gave back
    before = resident_bytes()
    tensor = Tensor([32 * MIB], MemoryKind.WORKSPACE)
    tensor.numpy().fill(1)
    assert resident_bytes() > before + 100 * MIB
    del tensor
    memory.trim()
    assert resident_bytes() < before + 32 * MIB


def test_threads_share_the_arena() -> None:
    failures: list[int] = []

    def work(mark: int) -> None:
        for size in range(1, 300):
            tensor = Tensor([size * 17], MemoryKind.WORKSPACE)
            view = tensor.numpy()
            view.fill(mark)
            if not (view == mark).all():
                failures.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_view_pins_its_buffer() -> None:
    tensor = Tensor([10], MemoryKind.WORKSPACE)
    view = tensor.numpy()
    assert tensor.pinned
    view[...] = np.arange(10)
    del tensor
    np.testing.assert_array_equal(view, np.arange(10))


@pytest.mark.parametrize("shape", [[-1], [1 << 40, 1 << 40]])
def test_impossible_shapes(shape: list[int]) -> None:
    with pytest.raises(ValueError, match="shape"):
        Tensor(shape, MemoryKind.WORKSPACE)


def test_more_than_there_is() -> None:
    with pytest.raises(RuntimeError, match="out of memory: wanted"):
        Tensor([1 << 50], MemoryKind.WORKSPACE)


def test_gradients_are_made_lazily_and_cleared_without_writing() -> None:
    parameter = Parameter([4])
    assert not parameter.has_gradient
    np.testing.assert_array_equal(parameter.gradient.numpy(), 0)
    parameter.gradient.numpy().fill(3)
    parameter.clear_gradient()
    assert parameter.gradient_is_zero
    np.testing.assert_array_equal(parameter.gradient.numpy(), 0)
