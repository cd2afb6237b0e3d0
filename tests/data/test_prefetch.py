"""The prefetch thread: order, errors, positions, shutdown."""

from __future__ import annotations

import threading
import time

import pytest

from caffe.data.prefetch import Prefetcher


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_order_and_position():
    source = Prefetcher(lambda position: (position * 10, position + 2), depth=3)
    assert [source.get() for _ in range(4)] == [0, 20, 40, 60]
    assert source.position == 8
    source.position = 100
    assert source.get() == 1000
    source.close()
    source.close()
    assert not threads()


def test_no_thread_before_the_first_batch():
    source = Prefetcher(lambda position: (position, position + 1), position=5)
    assert not threads()
    assert source.get() == 5
    source.close()


def test_runs_ahead_so_far_and_no_farther():
    made = []

    def produce(position):
        made.append(position)
        return position, position + 1

    source = Prefetcher(produce, depth=2)
    source.get()
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3]  # one taken, two ready, one waiting for room
    source.close()


def test_error_comes_in_its_turn_and_may_pass():
    broken = True

    def produce(position):
        if position == 2 and broken:
            raise ValueError("record 2")
        return position, position + 1

    source = Prefetcher(produce, depth=4)
    assert [source.get(), source.get()] == [0, 1]
    with pytest.raises(ValueError, match="record 2"):
        source.get()
    assert source.position == 2
    with pytest.raises(ValueError, match="record 2"):
        source.get()
    broken = False
    assert source.get() == 2
    source.close()
    assert not threads()


def test_threads_are_daemons():
    source = Prefetcher(lambda position: (position, position + 1))
    source.get()
    assert all(thread.daemon for thread in threads())
    source.close()
