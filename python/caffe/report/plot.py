"""The picture of two runs: their losses, and each layer's compression ratio, over the iterations.

Needs matplotlib, the extra `plots`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.report.run import Run

_WINDOW = 25  # iterations that the drawn loss is averaged over


def check_matplotlib() -> None:
    """ImportError, naming the extra to install, where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - optional
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'comet-caffe[plots]'") from error


def plot(plain: Run, compressed: Run, path: Path) -> None:
    """Draw both runs to the PNG file `path`."""
    from matplotlib import colormaps  # noqa: PLC0415 - optional
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 8), layout="constrained")
    FigureCanvasAgg(figure)
    losses, ratios = figure.subplots(2, 1, sharex=True)
    for run, style in ((plain, "-"), (compressed, "--")):
        label = f"{run.mode}, {run.accuracy:.2%}"
        losses.plot(running_mean(run.losses, _WINDOW), style, label=label)
    losses.set_ylabel(f"training loss, mean of {_WINDOW} iterations")
    losses.legend(title="mode, test accuracy")
    colours = colormaps["turbo"](np.linspace(0, 1, max(len(compressed.ratios), 1)))
    for colour, (layer, values) in zip(colours, compressed.ratios.items()):
        ratios.plot(values, color=colour, linewidth=1, label=layer)
    ratios.set_ylabel("raw bytes / stored bytes")
    ratios.set_xlabel("iteration")
    ratios.legend(ncols=3, title=f"kept for layer, mode {compressed.mode}", fontsize="small")
    for axes in (losses, ratios):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def running_mean(values: list[float], window: int) -> npt.NDArray[np.float64]:
    """Mean of each value and up to `window` - 1 before it."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    means: npt.NDArray[np.float64] = (sums[ends] - sums[starts]) / (ends - starts)
    return means
