"""What compression costs in accuracy: Fashion-MNIST, two nets, one setting at a time, over seeds.

    python -m caffe prepare fashion-mnist -out data/fashion_mnist
    python benchmarks/accuracy.py -minutes 240        # goes on with results/accuracy.jsonl
    python benchmarks/accuracy.py -report             # tables and picture alone

The runs come in the order of what they tell; each becomes a line of the file -out, and what is
there already is not run again. After -minutes no other run begins.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format

import caffe
import fashion_resnet
from accuracy_report import plot, tables
from caffe import compression_log, prototxt
from caffe.proto import caffe_pb2 as pb
from caffe.solver import Solver
from common import ROOT, heading

IMAGES = 60_000
BATCH = 64
RESULTS = ROOT / "benchmarks" / "results" / "accuracy.jsonl"
SAMPLES = 100  # how often a run's ratio and bounds are noted


@dataclass(frozen=True)
class Setting:
    """One compression_param."""

    name: str
    text: str


WIDE_FACTOR = {"sigma_factor": 1e9}  # the cap decides
WIDE_CAP = {"bound_cap": 1}  # the factor decides, up to there


def _adaptive(name: str, **fields: float | bool) -> Setting:
    """Return ADAPTIVE with its defaults written out, so that results outlive them."""
    param = pb.CompressionParameter()
    names = ("sigma_factor", "bound_cap", "dither", "budget", "negative_factor")
    values = {field: fields.get(field, getattr(param, field)) for field in names}
    text = " ".join(
        f"{field}: {str(value).lower() if isinstance(value, bool) else f'{value:g}'}"
        for field, value in values.items()
    )
    return Setting(name, f"mode: ADAPTIVE {text}")


EXACT = Setting("exact", "mode: NONE")
DEFAULT = _adaptive("default")
CAPS = [_adaptive(f"cap {cap}", **WIDE_FACTOR, bound_cap=cap) for cap in (1, 0.3, 0.1)]
FACTORS = [
    _adaptive(f"factor {factor}", **WIDE_CAP, sigma_factor=factor) for factor in (0.01, 0.1, 1)
]
BUDGET = [_adaptive("factor 0.1, budget", **WIDE_CAP, sigma_factor=0.1, budget=True)]
PLAIN = [_adaptive("default, no dither", dither=False)]
NEGATIVES = [_adaptive(f"default, negatives {factor}", negative_factor=factor) for factor in (1, 4)]

#: Which runs, the most telling first: settings and seeds.
STAGES: list[tuple[list[Setting], tuple[int, ...]]] = [
    ([EXACT, DEFAULT], (1, 2)),
    (CAPS, (1,)),
    ([EXACT, DEFAULT], (3,)),
    ([*PLAIN, *NEGATIVES, *FACTORS, *BUDGET], (1,)),
    (PLAIN, (2, 3)),  # the one that tells least apart from the defaults
    ([CAPS[0], *NEGATIVES], (2,)),
    ([*CAPS[1:], *FACTORS, *BUDGET], (2,)),
]


# -- nets ------------------------------------------------------------------------------------------


def fashion_cnn() -> pb.SolverParameter:
    """Return the solver of models/fashion_cnn."""
    param = prototxt.read_solver(ROOT / "models/fashion_cnn/solver.prototxt")
    param.net_param.CopyFrom(prototxt.read_net(ROOT / "models/fashion_cnn/train_val.prototxt"))
    param.ClearField("net")
    return param


def resnet() -> pb.SolverParameter:
    """Return a solver for fashion_resnet.py's net."""
    param = text_format.Parse(
        'base_lr: 0.1 lr_policy: "poly" power: 1 momentum: 0.9 weight_decay: 0.0005 test_iter: 100',
        pb.SolverParameter(),
    )
    param.net_param.CopyFrom(fashion_resnet.train_val())
    return param


#: Net -> its solver, and the epochs that bring it above 0.91.
NETS: dict[str, tuple[Callable[[], pb.SolverParameter], int]] = {
    "fashion_cnn": (fashion_cnn, 3),
    "resnet": (resnet, 4),
}


# -- one run ---------------------------------------------------------------------------------------


def train(net: str, setting: Setting, seed: int, epochs: int, iterations: int) -> dict[str, Any]:
    """Train once; returns accuracies, ratio, bytes and bounds.

    Args:
        net: name in NETS.
        setting: how activations are kept.
        seed: of weights and order of images.
        epochs: times that the net is tested, once after each.
        iterations: in an epoch.
    """
    param = NETS[net][0]()
    total = epochs * iterations
    param.ClearField("compression_param")
    text_format.Merge(f"compression_param {{ display: 0 {setting.text} }}", param)
    param.max_iter = total
    param.random_seed = seed
    param.display = 0
    param.test_interval = total + 1
    param.test_initialization = param.snapshot_after_train = False
    param.ClearField("snapshot")
    param.solver_mode = pb.SolverParameter.CPU
    solver = caffe.get_solver(param)
    accuracies, losses, kept, bounds = [], [], [], []
    every = max(total // SAMPLES, 1)

    def note() -> None:
        losses.append(solver.net.loss())
        if solver.iter % every == 0:
            summary = compression_log.summarise(solver.net.executor)
            kept.append((summary.raw_bytes, summary.stored_bytes))
            bounds.append([solver.iter, _bounds(solver)])

    solver.add_callback(None, note)
    seconds = 0.0
    for _ in range(epochs):
        began = time.perf_counter()
        solver.step(iterations)
        seconds += time.perf_counter() - began
        accuracies.append(float(solver.test(0)["accuracy"]))
    solver.close()
    raw, stored = (sum(sizes) / len(sizes) for sizes in zip(*kept))
    return {
        "accuracies": accuracies,
        "loss": sum(losses[-iterations:]) / iterations,
        "ratio": 1.0 if setting == EXACT else raw / max(stored, 1),
        "kept": stored,  # mean over training; 0 in mode NONE, which keeps what it has
        "seconds": seconds,
        "bounds": bounds,
    }


def _bounds(solver: Solver) -> dict[str, float]:
    """Return the bound of each value in standard deviations of its non-zeros, where one is set."""
    names = {report.saved.value.index: name for name, report in _reports(solver)}
    return {
        names[index]: round(state.bound / state.std, 5)
        for index, state in solver.bounds.values.items()
        if state.bound is not None and state.std > 0 and index in names
    }


def _reports(solver: Solver) -> Iterator[tuple[str, Any]]:
    for report in solver.net.compression_report():
        name = compression_log.row_name(solver.net.executor, report)
        yield f"{name}:{report.saved.value.index}", report


# -- all runs --------------------------------------------------------------------------------------


def plan(nets: list[str]) -> Iterator[tuple[str, Setting, int]]:
    """Yield net, setting and seed of every run, in order."""
    for settings, seeds in STAGES:
        for setting in settings:
            for seed in seeds:
                for net in nets:
                    yield net, setting, seed


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def main() -> None:
    """Run what is not in the file yet; print tables, draw a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-net", default=",".join(NETS), help="nets, separated by commas")
    parser.add_argument("-minutes", type=float, default=1e9, help="no run begins after so many")
    parser.add_argument("-epochs", type=int, help="instead of the nets' own numbers")
    parser.add_argument("-iterations", type=int, default=-(-IMAGES // BATCH), help="in an epoch")
    parser.add_argument("-most", type=int, default=10**9, help="runs at most, those done included")
    parser.add_argument("-report", action="store_true", help="run nothing")
    parser.add_argument("-out", type=Path, default=RESULTS)
    given = parser.parse_args()
    nets = given.net.split(",")
    if not set(nets) <= set(NETS):
        parser.error(f"-net: unknown {sorted(set(nets) - set(NETS))}; known are {list(NETS)}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * given.minutes
    runs = [] if given.report else list(plan(nets))[: given.most]
    for net, setting, seed in runs:
        key = {
            "net": net,
            "setting": setting.name,
            "text": setting.text,
            "seed": seed,
            "epochs": given.epochs or NETS[net][1],
            "iterations": given.iterations,
        }
        if any(key.items() <= r.items() for r in read(given.out)):
            continue
        if time.monotonic() > end:
            print(f"stopped after {given.minutes:g} minutes", file=sys.stderr)
            break
        record = key | train(net, setting, seed, key["epochs"], given.iterations)
        gc.collect()  # a solver and its callback hold each other
        with given.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(
            f"{net}, {setting.name}, seed {seed}: {record['accuracies'][-1]:.4f}, "
            f"{record['ratio']:.1f}x, {record['seconds']:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    records = [record for record in read(given.out) if record["net"] in nets]
    print(*heading(), *tables(records), sep="\n")
    picture = given.out.with_suffix(".png")
    if records:
        plot(records, picture)
        print(f"Accuracy, ratio and bounds: {picture}")


if __name__ == "__main__":
    main()
