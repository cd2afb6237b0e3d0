"""Trains a solver's net in one mode and writes what was measured as JSON.

Run it as a program, a fresh process for each mode, so that peaks do not mix:

    python -m caffe.report.run --solver FILE --mode ADAPTIVE --iterations 938 --out run.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from caffe import compression_log, log, prototxt
from caffe.compression_log import CompressionSummary, LayerRow
from caffe.proto import caffe_pb2 as pb
from caffe.report import measure
from caffe.solver_types import get_solver


@dataclass
class Run:
    """What was measured of one training run."""

    mode: str
    iterations: int
    seed: int
    accuracy: float = 0.0  # of the first test net at the end
    seconds: float = 0.0  # training alone
    kept_bytes: int = 0  # activations when forward is over
    peak_bytes: int = 0  # of everything but parameters, their gradients and history
    peak_layer: str = ""
    resident_bytes: int = 0  # the process's peak
    needed_bytes: int = 0  # of all that backward reads, as it is
    own_bytes: int = 0  # kept by the layers themselves in the last iteration
    losses: list[float] = field(default_factory=list)  # one an iteration
    rows: list[LayerRow] = field(default_factory=list)  # of the last iteration
    ratios: dict[str, list[float]] = field(default_factory=dict)  # layer -> one an iteration

    @property
    def summary(self) -> CompressionSummary:
        """The last iteration, as compression_log shows it."""
        return CompressionSummary(
            self.rows, self.needed_bytes, self.own_bytes, self.peak_bytes, self.peak_layer
        )

    def save(self, path: str | Path) -> None:
        """Write the run as JSON. Raises OSError where that fails."""
        Path(path).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read what save() wrote."""
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        content["rows"] = [LayerRow(**row) for row in content["rows"]]
        return cls(**content)


def train(param: pb.SolverParameter, mode: str, iterations: int, seed: int) -> Run:
    """Train for so many iterations in `mode`, the rate's schedule fitted to them, then test.

    The accuracy is the first test net's; without one it stays 0.

    Raises:
        ValueError: no such mode, or the test net has no output `accuracy`.
    """
    run = Run(mode, iterations, seed)
    solver = get_solver(_settings(param, run))

    def note() -> None:
        run.losses.append(solver.net.loss())
        for row in compression_log.summarise(solver.net.executor).rows:
            if row.form in ("bounded", "lossless"):
                run.ratios.setdefault(row.layer, []).append(row.ratio)

    solver.add_callback(None, note)
    began = time.perf_counter()
    solver.step(iterations)
    run.seconds = time.perf_counter() - began
    if solver.test_nets:
        outputs = solver.test(0)
        if "accuracy" not in outputs:
            raise ValueError(f"the test net has no output 'accuracy', only {', '.join(outputs)}")
        run.accuracy = float(outputs["accuracy"])
    summary = compression_log.summarise(solver.net.executor)
    run.rows, run.own_bytes = summary.rows, summary.own_bytes
    run.needed_bytes = summary.needed_bytes
    run.peak_bytes, run.peak_layer = solver.peak_bytes, summary.peak_layer
    run.resident_bytes = measure.peak_resident_bytes()
    run.kept_bytes = measure.kept_bytes(solver.net)
    return run


def _settings(param: pb.SolverParameter, run: Run) -> pb.SolverParameter:
    settings = pb.SolverParameter()
    settings.CopyFrom(param)
    settings.max_iter = run.iterations
    settings.random_seed = run.seed
    settings.test_initialization = False
    settings.test_interval = run.iterations + 1  # one test, at the end, is train()'s
    settings.compression_param.mode = getattr(pb.CompressionParameter, run.mode)
    settings.compression_param.display = 0  # the report shows it
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m caffe.report.run", description=__doc__)
    parser.add_argument("--solver", required=True, help="solver prototxt")
    parser.add_argument("--mode", required=True, choices=pb.CompressionParameter.Mode.keys())
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True, help="JSON file to write")
    given = parser.parse_args(arguments)
    try:
        run = train(prototxt.read_solver(given.solver), given.mode, given.iterations, given.seed)
        run.save(given.out)
    except (ValueError, OSError, RuntimeError) as error:
        log.error(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
