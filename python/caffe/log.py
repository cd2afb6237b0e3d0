"""Log lines in the form that parsers of Caffe's output expect, on standard error.

    I1130 11:45:50.123456  1234 solver.py:42] Iteration 0, loss = 2.3

Severity, month and day, time, process id, source file and line, message. A closed standard error
(`caffe train 2>&1 | head`) silences the log and stops nothing. GLOG_minloglevel in the environment,
or init_log(), leaves out what is below a severity: 0 info, 1 warnings, 2 errors, 3 fatal ones.
"""

from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path
from typing import TextIO

_LEVEL_VARIABLE = "GLOG_minloglevel"  # glog's
_SEVERITIES = "IWEF"
_broken: TextIO | None = None
_least = 0  # index in _SEVERITIES


def init_log(level: int = 0) -> None:
    """Log only what is of this severity or above. ValueError unless it is 0 to 3."""
    global _least  # noqa: PLW0603 - one log a process
    if level not in range(len(_SEVERITIES)):
        raise ValueError(
            f"log level {level} does not exist: 0 info, 1 warnings, 2 errors, 3 fatal ones"
        )
    _least = int(level)


def info(message: str, depth: int = 1) -> None:
    """Log `message`, a line for each of its lines; `depth` frames up is the place named."""
    _write("I", message, depth + 1)


def warning(message: str, depth: int = 1) -> None:
    """Log a warning; see `info`."""
    _write("W", message, depth + 1)


def error(message: str, depth: int = 1) -> None:
    """Log an error; see `info`."""
    _write("E", message, depth + 1)


def _write(severity: str, message: str, depth: int) -> None:
    global _broken  # noqa: PLW0603 - the state of the process's standard error
    stream = sys.stderr
    if stream is None or stream is _broken or _SEVERITIES.index(severity) < _least:
        return
    frame = sys._getframe(depth)
    now = time.time()
    moment = time.strftime("%m%d %H:%M:%S", time.localtime(now))
    place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
    prefix = f"{severity}{moment}.{int(now % 1 * 1e6):06} {os.getpid():5} {place}] "
    try:
        stream.write("".join(f"{prefix}{line}\n" for line in message.split("\n")))
        stream.flush()
    except (OSError, ValueError):
        # The reader or the terminal is gone, the disk full, or the stream closed: training matters
        # more than its log.
        _broken = stream


class _CallableModule(types.ModuleType):
    """This module: in pycaffe, caffe.log is a function that logs a line."""

    def __call__(self, message: str) -> None:
        """Log `message`."""
        info(message, depth=2)


sys.modules[__name__].__class__ = _CallableModule
if os.environ.get(_LEVEL_VARIABLE, "") in ("1", "2", "3"):
    init_log(int(os.environ[_LEVEL_VARIABLE]))
