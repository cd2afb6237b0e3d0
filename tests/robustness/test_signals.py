"""Real signals to real processes: snapshots survive, and nothing ends in a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from caffe.snapshot import load_state, load_weights

NET = """
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 4 dim: 64 } shape { dim: 4 } data_filler { type: "gaussian" } data_filler { } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 100 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def start(
    folder: Path, more: str = "", flags: tuple[str, ...] = (), log: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    (folder / "net.prototxt").write_text(NET)
    (folder / "solver.prototxt").write_text(
        f'net: "{folder}/net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 10000000 '
        f'display: 1 snapshot_prefix: "{folder}/out" solver_mode: CPU {more}'
    )
    command = [sys.executable, "-m", "caffe", "train", "-solver", str(folder / "solver.prototxt")]
    return subprocess.Popen([*command, *flags], stderr=log, text=True)


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"ended without '{text}'")


def test_impatient_interrupts_cost_nothing(tmp_path: Path) -> None:
    with start(tmp_path) as process:
        wait_for(process, "Iteration 3,")
        process.send_signal(signal.SIGINT)
        wait_for(process, "stopped early")
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.002)
        assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, 130)
    assert len(list(tmp_path.glob("out_iter_*"))) == 2


@pytest.mark.parametrize(
    ("number", "flag", "stops", "files"),
    [
        (signal.SIGHUP, "-sighup_effect=stop", True, 2),
        (signal.SIGINT, "-sigint_effect=snapshot", False, 2),
        (signal.SIGHUP, "-sighup_effect=none", False, 0),
    ],
)
def test_effects(tmp_path: Path, number: int, flag: str, stops: bool, files: int) -> None:
    with start(tmp_path, flags=(flag,)) as process:
        wait_for(process, "Iteration 3,")
        process.send_signal(number)
        if stops:
            wait_for(process, "stopped early")
        else:
            for _ in range(500):
                wait_for(process, "lr = ")
            process.kill()
    assert process.returncode == (0 if stops else -signal.SIGKILL)
    assert len(list(tmp_path.glob("out_iter_*"))) == files


def test_reader_of_the_log_dies_first(tmp_path: Path) -> None:
    with start(tmp_path) as process:
        wait_for(process, "Iteration 3,")
        process.stderr.close()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert len(list(tmp_path.glob("out_iter_*"))) == 2


def test_killed_while_it_snapshots(tmp_path: Path) -> None:
    flags: tuple[str, ...] = ()
    for delay in (0.05, 0.11, 0.17):
        process = start(tmp_path, "snapshot: 1", flags, log=subprocess.DEVNULL)
        before = set(tmp_path.glob("*.solverstate"))
        while set(tmp_path.glob("*.solverstate")) <= before:
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(delay)
        process.kill()
        process.wait()
        for weights in tmp_path.glob("*.caffemodel"):
            assert load_weights(weights)
        states = {load_state(path)[0].iter: path for path in tmp_path.glob("*.solverstate")}
        flags = ("-snapshot", str(states[max(states)]))
