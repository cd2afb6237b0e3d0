"""Tables and a picture of what accuracy.py measured."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from caffe.report.plot import check_matplotlib
from common import markdown

Record = dict[str, Any]
MIB = 2**20


def tables(records: list[Record]) -> list[str]:
    """Markdown: a table a net, a row a setting, over its seeds, the best ratio first.

    `against exact` is the mean difference, in hundredths, to the exact runs of the same seeds, with
    its standard error from two seeds on.
    """
    lines: list[str] = []
    for net in dict.fromkeys(record["net"] for record in records):
        settings = _by_setting([record for record in records if record["net"] == net])
        exact = settings.get("exact", [])
        rows = [["", "seeds", "accuracy", "seeds' spread", "against exact", "best epoch", "loss",
                 "ratio", "kept MiB", "s / run"]]  # fmt: skip
        for name, runs in sorted(settings.items(), key=lambda item: item[1][0]["ratio"]):
            finals = [run["accuracies"][-1] for run in runs]
            rows.append(
                [
                    name,
                    str(len(runs)),
                    f"{statistics.mean(finals):.4f}",
                    f"{max(finals) - min(finals):.4f}" if len(runs) > 1 else "",
                    _against(runs, exact),
                    f"{statistics.mean(max(run['accuracies']) for run in runs):.4f}",
                    f"{statistics.mean(run['loss'] for run in runs):.4f}",
                    f"{statistics.mean(run['ratio'] for run in runs):.1f}",
                    f"{statistics.mean(run['kept'] for run in runs) / MIB:.2f}",
                    f"{statistics.mean(run['seconds'] for run in runs):.0f}",
                ]
            )
        first = next(iter(settings.values()))[0]
        lines += [
            f"**{net}**, {first['epochs']} epochs of {first['iterations']} iterations.",
            "",
            *markdown(rows),
            "",
        ]
    return lines


def _by_setting(records: list[Record]) -> dict[str, list[Record]]:
    settings: dict[str, list[Record]] = {}
    for record in records:
        settings.setdefault(record["setting"], []).append(record)
    return settings


def _against(runs: list[Record], exact: list[Record]) -> str:
    """Return the mean difference to the exact runs of the same seeds, with its standard error."""
    plain = {run["seed"]: run["accuracies"][-1] for run in exact}
    pairs = [
        100 * (run["accuracies"][-1] - plain[run["seed"]]) for run in runs if run["seed"] in plain
    ]
    if len(pairs) < 2 or runs is exact:
        return "" if not pairs or runs is exact else f"{pairs[0]:+.2f}"
    error = statistics.stdev(pairs) / math.sqrt(len(pairs))
    return f"{statistics.mean(pairs):+.2f} ± {error:.2f}"


def plot(records: list[Record], path: Path) -> None:
    """Draw to a PNG, a row a net: accuracy over ratio, accuracy over epochs, bounds over training.

    The bound is the geometric mean of the layers', in standard deviations.
    """
    check_matplotlib()
    from matplotlib import colormaps  # noqa: PLC0415 - optional
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    nets = list(dict.fromkeys(record["net"] for record in records))
    names = list(_by_setting(records))
    colours = dict(zip(names, colormaps["turbo"](np.linspace(0, 1, len(names)))))
    figure = Figure(figsize=(18, 5 * len(nets)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(nets), 3, squeeze=False)
    for (scatter, epochs, bounds), net in zip(grid, nets):
        for name, runs in _by_setting([r for r in records if r["net"] == net]).items():
            colour = colours[name]
            finals = [run["accuracies"][-1] for run in runs]
            scatter.plot([run["ratio"] for run in runs], finals, "o", color=colour, label=name)
            curve = np.mean([run["accuracies"] for run in runs], axis=0)
            epochs.plot(range(1, len(curve) + 1), curve, color=colour, label=name)
            noted = [(at, list(shares.values())) for at, shares in runs[0]["bounds"] if shares]
            means = [math.exp(statistics.mean(map(math.log, shares))) for _, shares in noted]
            if means:
                bounds.semilogy([at for at, _ in noted], means, color=colour, label=name)
        scatter.set(xlabel="raw over stored bytes", ylabel=f"{net}: test accuracy", xscale="log")
        epochs.set(xlabel="epoch", ylabel="test accuracy, mean of seeds")
        bounds.set(xlabel="iteration", ylabel="bound, standard deviations (mean of layers)")
        for panel in (scatter, epochs, bounds):
            panel.grid(alpha=0.3)
        scatter.legend(fontsize="small")
    figure.savefig(path, dpi=110)
