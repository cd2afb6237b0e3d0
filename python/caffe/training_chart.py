"""Charts of training logs: the function behind `caffe plot_training_log`. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from caffe.report.plot import check_matplotlib
from caffe.training_log import column, parse_log


class Chart(NamedTuple):
    """What is drawn over what."""

    rows: str  # "train" or "test"
    y: str
    x: str

    @property
    def title(self) -> str:
        """As BVLC Caffe calls it."""
        names = {"NumIters": "Iters", "LearningRate": "learning rate"}
        y, x = names.get(self.y, self.y), names.get(self.x, self.x)
        return f"{self.rows.capitalize()} {y} vs. {x}"


#: BVLC Caffe's numbers of charts.
CHARTS = tuple(
    Chart(rows, y, x)
    for rows, y in (
        ("test", "accuracy"),
        ("test", "loss"),
        ("train", "LearningRate"),
        ("train", "loss"),
    )
    for x in ("NumIters", "Seconds")
)


def plot_training_log(number: int, picture: str | Path, logs: Sequence[str | Path]) -> None:
    """Draw one chart of one or more logs, a line each.

    Args:
        number: which of CHARTS.
        picture: file to write; its ending is the format.
        logs: files.

    Raises:
        ImportError: matplotlib is missing.
        FileNotFoundError: no such log.
        ValueError: no such chart, no log of training, or nothing of this kind in it.
        OSError: the picture cannot be written.
    """
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    if number not in range(len(CHARTS)):
        raise ValueError(f"chart {number} does not exist; {chart_list()}")
    chart = CHARTS[number]
    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for path in logs:
        rows = getattr(parse_log(path), chart.rows)
        try:
            y = column(rows, chart.y)
        except ValueError as error:
            raise ValueError(f"log '{path}': {error}") from error
        points = [(row[chart.x], row[y]) for row in rows if y in row]
        axes.plot(*zip(*points), label=Path(path).name)
    axes.set(title=chart.title, xlabel=chart.title.split(" vs. ")[1], ylabel=chart.y)
    axes.legend()
    figure.savefig(picture)


def chart_list() -> str:
    """Return the numbers and titles of all charts, as text."""
    return ", ".join(f"{number}: {chart.title}" for number, chart in enumerate(CHARTS))
