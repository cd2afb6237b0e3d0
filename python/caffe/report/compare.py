"""Trains the same net plainly and with compression, and shows both runs side by side.

    python -m caffe.report.compare --solver FILE --iterations 938 --out out/quickstart

Each run is a process of its own with the same seed. Exit status 1 if the accuracy is below
--least-accuracy, or more than --most-lost points (hundredths) under that of the plain run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from caffe import compression_log
from caffe.report.plot import check_matplotlib, plot
from caffe.report.run import Run

PLAIN, COMPRESSED = "NONE", "ADAPTIVE"


def train_both(solver: str, iterations: int, seed: int, out: Path) -> tuple[Run, Run]:
    """Run both modes, one after the other; RuntimeError where one fails."""
    runs = []
    for mode in (PLAIN, COMPRESSED):
        file = out / f"{mode.lower()}.json"
        print(f"\n== Training in mode {mode}: {iterations} iterations", flush=True)
        command = [sys.executable, "-m", "caffe.report.run", "--solver", solver, "--mode", mode]
        command += ["--iterations", str(iterations), "--seed", str(seed), "--out", str(file)]
        if subprocess.run(command, check=False).returncode != 0:
            raise RuntimeError(f"training in mode {mode} failed; its log is above")
        runs.append(Run.load(file))
    return runs[0], runs[1]


def side_by_side(plain: Run, compressed: Run) -> list[str]:
    """Lines of a table: one figure a line, both runs, and the factor between them."""

    def line(name: str, left: str, right: str, factor: str = "") -> str:
        return f"{name:<44}  {left:>12}  {right:>12}  {factor:>8}".rstrip()

    def size(name: str, left: int, right: int) -> str:
        return line(
            name,
            compression_log.mib(left),
            compression_log.mib(right),
            f"{left / max(right, 1):.1f}x",
        )

    return [
        line("", plain.mode, compressed.mode),
        line("test accuracy", f"{plain.accuracy:.4f}", f"{compressed.accuracy:.4f}"),
        size("activations kept for backward", plain.kept_bytes, compressed.kept_bytes),
        size("peak apart from parameters", plain.peak_bytes, compressed.peak_bytes),
        size("peak resident memory (VmHWM)", plain.resident_bytes, compressed.resident_bytes),
        line(
            "training time",
            f"{plain.seconds:.1f} s",
            f"{compressed.seconds:.1f} s",
            f"{plain.seconds / compressed.seconds:.2f}x",
        ),
    ]


def verdict(plain: Run, compressed: Run, least: float, most_lost: float) -> str | None:
    """Return what is wrong with the accuracy, or None."""
    if compressed.accuracy < least:
        return f"accuracy {compressed.accuracy:.4f} is below {least:g}"
    lost = 100 * (plain.accuracy - compressed.accuracy)
    if lost > most_lost:
        return f"compression cost {lost:.2f} points of accuracy, more than {most_lost:g}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare as the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m caffe.report.compare", description=__doc__)
    parser.add_argument("--solver", required=True, help="solver prototxt")
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="folder for JSON and picture")
    parser.add_argument("--least-accuracy", type=float, default=0.0)
    parser.add_argument("--most-lost", type=float, default=100.0, metavar="POINTS")
    given = parser.parse_args(arguments)
    try:
        check_matplotlib()
        given.out.mkdir(parents=True, exist_ok=True)
        plain, compressed = train_both(given.solver, given.iterations, given.seed, given.out)
        picture = given.out / "comparison.png"
        plot(plain, compressed, picture)
    except (OSError, RuntimeError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    table = compression_log.table(compressed.summary)
    print("", *side_by_side(plain, compressed), "", *table, "", sep="\n")
    print(f"Loss and compression ratio over the iterations: {picture}")
    problem = verdict(plain, compressed, given.least_accuracy, given.most_lost)
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
