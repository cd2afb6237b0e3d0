"""One thread for the tests of this folder: their nets are too small for more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from caffe import _core


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = _core.num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # of the processes that tests start
    _core.set_num_threads(1)
    yield
    _core.set_num_threads(before)
