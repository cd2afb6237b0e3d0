"""Memory of training CaffeNet on Fashion-MNIST enlarged to 3x227x227, a fresh process a mode.

    python benchmarks/memory_caffenet.py

Stored activations and peak are the memory tracker's, the resident peak is the system's (VmHWM).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from caffe.report import run
from common import heading, markdown, training_solver

MODES = ("NONE", "LOSSLESS", "FIXED", "ADAPTIVE")
SIDE = 227


def measure(mode: str, batch: int, iterations: int) -> run.Run:
    """Train in this process."""
    solver = training_solver("bvlc_reference_caffenet", "EnlargedFashion", f"{batch} {SIDE}")
    # FIXED means a bound that ADAPTIVE might choose; 1e-3 is where ADAPTIVE starts.
    solver.compression_param.error_bound = 0.05 if mode == "FIXED" else 1e-3
    return run.train(solver, mode, iterations, seed=1)


def in_a_process_each(batch: int, iterations: int) -> list[run.Run]:
    """Run every mode in a fresh process."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for mode in MODES:
            file = str(Path(folder) / f"{mode}.json")
            command = [sys.executable, __file__, "--mode", mode, "--out", file]
            command += ["--batch", str(batch), "--iterations", str(iterations)]
            subprocess.run(command, check=True)
            runs.append(run.Run.load(file))
    return runs


def tables(runs: list[run.Run]) -> list[str]:
    """Markdown: the modes side by side, then the ratio of each layer in each mode."""
    rows = [["mode", "activations kept", "peak", "at", "resident peak", "s/iteration", "last loss"]]
    for one in runs:
        rows.append(
            [
                one.mode,
                _mib(one.kept_bytes),
                _mib(one.peak_bytes),
                one.peak_layer,
                _mib(one.resident_bytes),
                f"{one.seconds / one.iterations:.2f}",
                f"{one.losses[-1]:.4f}",
            ]
        )
    planned = [one for one in runs if one.rows]
    layers = list(dict.fromkeys(row.layer for one in planned for row in one.rows))
    ratios = [["kept for", "raw MiB", *(f"ratio {one.mode}" for one in planned)]]
    for layer in layers:
        of_layer = [next((r for r in one.rows if r.layer == layer), None) for one in planned]
        raw = next(row.raw_bytes for row in of_layer if row is not None)
        cells = ["" if row is None else f"{row.ratio:.1f} ({row.form})" for row in of_layer]
        ratios.append([layer, f"{raw / 2**20:.1f}", *cells])
    return [*markdown(rows), "", *markdown(ratios)]


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def main() -> None:
    """Measure all modes and print Markdown tables, or measure one mode into a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--mode", choices=MODES, help="this mode alone, in this process")
    parser.add_argument("--out", help="JSON file of --mode")
    given = parser.parse_args()
    if given.mode:
        measure(given.mode, given.batch, given.iterations).save(given.out)
    else:
        print(*heading(), *tables(in_a_process_each(given.batch, given.iterations)), sep="\n")


if __name__ == "__main__":
    main()
