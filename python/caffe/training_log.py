"""Reading logs of training: the functions behind `caffe parse_log` and `plot_training_log`.

Reads our logs and BVLC Caffe's.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from caffe.atomic_file import write_atomically
from caffe.file_kind import require_file

Row = dict[str, float]

_PREFIX = re.compile(r"[IWEF](\d{4} \d{2}:\d{2}:\d{2}(?:\.\d+)?)\s+\d+ \S+:\d+\] (.*)")
_ITERATION = re.compile(r"Iteration (\d+)")
_RATE = re.compile(r"Iteration \d+, lr = (\S+)")
_LOSS = re.compile(r"Iteration \d+.*, loss = (\S+)")
_OUTPUT = re.compile(r"(Train|Test) net output #\d+: (\S+) = (\S+)")
_START = "Solving "
_ANY_LEAP_YEAR = "2000"  # glog's prefix names no year


class TrainingLog(NamedTuple):
    """A row for each display and each test: NumIters, Seconds, LearningRate and the outputs.

    Seconds count from the start of training. Of an output with several values the last is kept.
    """

    train: list[Row]
    test: list[Row]


def parse_log(path: str | Path) -> TrainingLog:
    """Read a log.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no log of training, or a number in it that is none.
    """
    file = require_file(path, "log")
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        found = _parse(text.splitlines())
    except ValueError as error:
        raise ValueError(f"log '{path}': {error}") from error
    if not found.train and not found.test:
        raise ValueError(
            f"'{path}' has no lines of training with outputs; is it the log (standard error) of "
            "caffe train, with a display or test_interval?"
        )
    return found


def _parse(lines: Iterable[str]) -> TrainingLog:
    log = TrainingLog([], [])
    clock = _Clock()
    iteration = -1
    rate = float("nan")
    unrated: list[Row] = []  # rows written before the line that names their rate
    for line in lines:
        prefixed = _PREFIX.search(line)
        if prefixed is None:
            continue
        seconds = clock.seconds(prefixed[1])
        message = prefixed[2]
        if message.startswith(_START):
            clock.start()
        found = _ITERATION.match(message)
        if found:
            iteration = int(found[1])
        found = _RATE.match(message)
        if found:
            rate = float(found[1])
            for row in unrated:
                row["LearningRate"] = rate
            unrated.clear()
        found = _LOSS.match(message)
        if found:
            _row(log.train, iteration, seconds, rate, unrated)["SmoothedLoss"] = float(found[1])
        found = _OUTPUT.search(message)
        if found and iteration >= 0:
            rows = log.train if found[1] == "Train" else log.test
            _row(rows, iteration, seconds, rate, unrated)[found[2]] = float(found[3])
    return log


def _row(rows: list[Row], iteration: int, seconds: float, rate: float, unrated: list[Row]) -> Row:
    """Return the row of this iteration, a new one if the last row is of another."""
    if not rows or rows[-1]["NumIters"] != iteration:
        rows.append({"NumIters": iteration, "Seconds": seconds, "LearningRate": rate})
        unrated.append(rows[-1])
    return rows[-1]


class _Clock:
    """Seconds since the start, from the times of log lines, over midnight and the year's end."""

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._now = 0.0
        self._started = 0.0

    def seconds(self, stamp: str) -> float:
        moment = datetime.fromisoformat(_isoformat(stamp))
        if self._last is not None:
            step = moment - self._last
            if step < timedelta(days=-1):  # January comes after December
                step += timedelta(days=366)
            self._now += step.total_seconds()
        self._last = moment
        return self._now - self._started

    def start(self) -> None:
        self._started = self._now


def _isoformat(stamp: str) -> str:
    """Turn glog's 1130 11:45:50.123456 into 2000-11-30 11:45:50.123456."""
    date, time = stamp.split(" ")
    whole, _, part = time.partition(".")
    return f"{_ANY_LEAP_YEAR}-{date[:2]}-{date[2:]} {whole}.{part[:6]:0<6}"


def save_csv_files(
    path: str | Path, output_dir: str | Path, log: TrainingLog, delimiter: str = ","
) -> list[Path]:
    """Write <name of the log>.train and .test to a folder, as tables with a line of names.

    Raises OSError where they cannot be written.

    Returns:
        Both files.
    """
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind, rows in zip(("train", "test"), log):
        names = list(dict.fromkeys(name for row in rows for name in row))
        file = io.StringIO(newline="")
        writer = csv.DictWriter(file, names, delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.10g}" for name, value in row.items()} for row in rows)
        target = folder / f"{Path(path).name}.{kind}"
        write_atomically(target, file.getvalue().encode())
        written.append(target)
    return written


def column(rows: Sequence[Row], wanted: str) -> str:
    """Return the name of the output that is called so, or else the first that has it in its name.

    Raises ValueError, naming what there is.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    if wanted in names:
        return wanted
    alike = [name for name in names if wanted[:4].lower() in name.lower()]
    if not alike:
        raise ValueError(f"the log has no '{wanted}', it has {', '.join(names) or 'nothing'}")
    return alike[0]
