"""The functions of the module itself: log, timer, processes, modes, types of layers."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

import caffe
from caffe import log

NAMES = """
AdaDeltaSolver AdaGradSolver AdamSolver Classifier Detector Layer Net NetSpec NesterovSolver
RMSPropSolver SGDSolver TEST TRAIN Timer __version__ get_solver has_nccl init_log io layer_type_list
layers log params set_device set_mode_cpu set_mode_gpu set_multiprocess set_random_seed
set_solver_count set_solver_rank solver_count solver_rank to_proto
"""


@pytest.fixture
def all_severities():
    yield
    caffe.init_log(0)


def test_log_is_a_function_and_a_module(capsys) -> None:
    caffe.log("a line")
    log.warning("another")
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"I\d{4} [\d:.]+ +\d+ test_functions.py:\d+\] a line", first)
    assert re.fullmatch(r"W\d{4} [\d:.]+ +\d+ test_functions.py:\d+\] another", second)


def test_init_log_sets_the_least_severity(capsys, all_severities) -> None:
    caffe.init_log(1)
    caffe.log("unseen")
    log.warning("seen")
    assert "unseen" not in (err := capsys.readouterr().err)
    assert "seen" in err
    with pytest.raises(ValueError, match="log level 4 does not exist"):
        caffe.init_log(4)


def test_environment_sets_the_least_severity() -> None:
    code = "import caffe; caffe.log('info'); caffe.log.error('error')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"GLOG_minloglevel": "2", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "] error" in done.stderr
    assert "] info" not in done.stderr


def test_timer() -> None:
    timer = caffe.Timer()
    assert timer.ms == 0
    began = time.perf_counter()
    timer.start()
    time.sleep(0.01)
    timer.stop()
    took = (time.perf_counter() - began) * 1e3
    first = timer.ms
    assert 10 <= first <= took
    time.sleep(0.01)
    timer.stop()
    assert timer.ms == first  # stopped is stopped
    timer.start()
    assert 0 < timer.ms != first


def test_one_process() -> None:
    assert (caffe.solver_count(), caffe.solver_rank(), caffe.has_nccl()) == (1, 0, False)
    caffe.set_solver_count(1)
    caffe.set_solver_rank(0)
    caffe.set_multiprocess(False)
    for call in (
        lambda: caffe.set_solver_count(2),
        lambda: caffe.set_solver_rank(1),
        lambda: caffe.set_multiprocess(True),
    ):
        with pytest.raises(ValueError, match="trains in one process"):
            call()


def test_layer_type_list() -> None:
    names = caffe.layer_type_list()
    assert {"Data", "Convolution", "Python", "SoftmaxWithLoss"} <= set(names)
    assert len(names) == len(set(names))


def test_names_of_pycaffe_are_there() -> None:
    for name in NAMES.split():
        assert hasattr(caffe, name), name
        assert name in caffe.__all__
