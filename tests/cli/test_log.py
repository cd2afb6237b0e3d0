"""The log: glog's prefix, and no harm from a broken standard error."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest

from caffe import log

PREFIX = r"{}\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} +\d+ test_log\.py:\d+\] "


@pytest.mark.parametrize(
    ("write", "letter"), [(log.info, "I"), (log.warning, "W"), (log.error, "E")]
)
def test_prefix(capsys, write, letter):
    write("Iteration 0, loss = 2\nsecond")
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(PREFIX.format(letter) + "Iteration 0, loss = 2", lines[0])
    assert re.fullmatch(PREFIX.format(letter) + "second", lines[1])


class Broken(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error
        self.writes = 0

    def write(self, text):
        self.writes += 1
        raise self.error


@pytest.mark.parametrize("error", [BrokenPipeError(32, "x"), OSError(5, "x"), ValueError("closed")])
def test_broken_stream_is_left_alone(monkeypatch, capsys, error):
    stream = Broken(error)
    monkeypatch.setattr(sys, "stderr", stream)
    log.info("a")
    log.info("b")
    assert stream.writes == 1
    monkeypatch.undo()
    log.info("c")
    assert capsys.readouterr().err.endswith("c\n")


def test_no_stream_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    log.info("a")


def test_real_pipe_whose_reader_leaves():
    script = (
        "import sys\nfrom caffe import log\nfrom caffe.cli import train\n"
        "class Solver:\n"
        "    request_stop = request_snapshot = None\n"
        "with train.signals(Solver(), 'none', 'none'):\n"
        "    for i in range(20000):\n"
        "        log.info('x' * 100)\n"
        "print('done')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stderr.readline()
        process.stderr.close()
        assert process.stdout.read() == "done\n"
        assert process.wait() == 0
