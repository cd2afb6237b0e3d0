"""Time of a training iteration (forward, backward, update) against PyTorch.

    pip install torch     # the comparison only; without it, --without-pytorch
    python benchmarks/speed.py

Each contestant is a process of its own with the same number of threads and a fixed random batch.
They take turns, so that all see the same machine; the medians are compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import IO

from common import heading, markdown

#: Net -> N C H W of its batches.
NETS = {
    "bvlc_reference_caffenet": "16 3 227 227",
    "fashion_cnn": "64 1 28 28",
    "resnet18": "32 3 224 224",
    "resnet50": "16 3 224 224",
    "efficientnet_b0": "16 3 224 224",
    "bvlc_googlenet": "32 3 224 224",
    "vgg16": "16 3 224 224",
}
MODES = ("NONE", "LOSSLESS", "ADAPTIVE")
PYTORCH = "PyTorch"


class Contestant:
    """A worker process."""

    def __init__(self, name: str, model: str, shape: str, threads: int) -> None:
        """Start it and wait for the end of its warm-up."""
        worker = str(Path(__file__).with_name("speed_worker.py"))
        self.name = name
        self.milliseconds: list[float] = []
        self._process = subprocess.Popen(
            [sys.executable, worker, name, model, shape, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read()

    def take_turn(self, iterations: int) -> None:
        """Let it run so many iterations."""
        self._pipe(self._process.stdin).write(f"{iterations}\n")
        self._pipe(self._process.stdin).flush()
        self.milliseconds += json.loads(self._read())

    def stop(self) -> None:
        """End the process."""
        self._pipe(self._process.stdin).close()
        self._process.wait()

    def _read(self) -> str:
        line = self._pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"{self.name} ended early; its message is above")
        return line

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def measure(names: list[str], model: str, shape: str, given: argparse.Namespace) -> list[list[str]]:
    """Return rows of the table for one net."""
    contestants = [Contestant(name, model, shape, given.threads) for name in names]
    for _ in range(given.rounds):
        for contestant in contestants:
            contestant.take_turn(given.iterations)
    for contestant in contestants:
        contestant.stop()
    medians = {c.name: statistics.median(c.milliseconds) for c in contestants}
    rows = []
    for contestant in contestants:
        deciles = statistics.quantiles(contestant.milliseconds, n=10)
        median = medians[contestant.name]
        ratios = [
            f"{median / medians[other]:.2f}" if other in medians else ""
            for other in ("NONE", PYTORCH)
        ]
        spread = f"{deciles[0]:.1f} - {deciles[-1]:.1f}"
        rows.append([f"{model}, {shape}", contestant.name, f"{median:.1f}", spread, *ratios])
    return rows


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6, help="turns for each contestant")
    parser.add_argument("--iterations", type=int, default=5, help="iterations in a turn")
    parser.add_argument("--net", nargs="+", choices=NETS, default=list(NETS)[:2])
    parser.add_argument("--mode", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--without-pytorch", action="store_true")
    given = parser.parse_args()
    names = given.mode if given.without_pytorch else [*given.mode, PYTORCH]
    head = ["net, batch", "", "median ms", "10% - 90%", "/ NONE", "/ PyTorch"]
    rows = [head]
    for model in given.net:
        rows += measure(names, model, NETS[model], given)
    print(*heading(), *markdown(rows), sep="\n")


if __name__ == "__main__":
    main()
