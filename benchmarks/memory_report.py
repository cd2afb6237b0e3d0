"""Tables and pictures of what memory.py measured."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

from caffe.report.plot import check_matplotlib
from common import markdown

Record = dict[str, Any]
MIB = 2**20
_COLUMNS = 4  # of panels in a picture

#: Kinds of memory in the picture, from the bottom up.
_KINDS = ("data", "raw_activations", "stored_activations", "gradients", "workspace",
          "held_by_python")  # fmt: skip


def tables(records: list[Record]) -> list[str]:
    """Markdown: a table a net, a row a configuration; then what each ADAPTIVE layer got."""
    lines = []
    for net, group in itertools.groupby(records, key=lambda record: record["net"]):
        rows = list(group)
        first = rows[0]
        lines += [
            f"**{net}**, batch {first['batch']}, {first['steps']} steps, micro-batches of "
            f"{first['slice']}; {first['images']}. MiB.",
            "",
            *markdown([_HEAD, *(_row(record, rows) for record in rows)]),
            "",
        ]
    return lines


_HEAD = ["", "ratio of conv inputs", "kept for backward", "/ PyTorch's", "peak",
         "with parameters", "resident peak", "s / step", "/ NONE", "last loss"]  # fmt: skip


def _row(record: Record, rows: list[Record]) -> list[str]:
    """Return the cells of one configuration; its error where it failed."""
    if "error" in record:
        return [record["mode"], record["error"], *[""] * (len(_HEAD) - 2)]
    named = {row["mode"]: row for row in rows if "error" not in row}
    ratio = ""
    if record.get("conv_stored"):
        ratio = f"{record['conv_raw'] / record['conv_stored']:.1f}"
    saved = named.get("PyTorch", {}).get("saved_tensors")
    plain = named.get("NONE", {}).get("seconds")
    return [
        record["mode"],
        ratio,
        f"{record['kept'] / MIB:.0f}",
        f"1 / {saved / record['kept']:.1f}" if saved else "",
        f"{record['peak'] / MIB:.0f}",
        f"{record['peak_with_parameters'] / MIB:.0f}",
        f"{record['resident'] / MIB:.0f}",
        f"{record['seconds']:.2f}",
        f"{record['seconds'] / plain:.2f}" if plain else "",
        f"{record['losses'][-1]:.3f}",
    ]


def plot(records: list[Record], path: Path) -> None:
    """Draw the memory over one iteration, a panel a configuration, to the PNG file `path`.

    COMET's by kind, over the layers forward and back; PyTorch's as one line, over its operators.
    Parameters, gradients and history are left out.
    """
    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    drawn = [record for record in records if "error" not in record]
    if not drawn:
        return
    lines = math.ceil(len(drawn) / _COLUMNS)
    figure = Figure(figsize=(4 * min(len(drawn), _COLUMNS), 4 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    panels = [
        figure.add_subplot(lines, min(len(drawn), _COLUMNS), number + 1)
        for number in range(len(drawn))
    ]
    highest = max(record["peak"] for record in drawn) / MIB
    for panel, record in zip(panels, drawn):
        moments = record["timeline"]
        if "live" in moments[0]:
            panel.plot([moment["live"] / MIB for moment in moments], color="black")
            panel.set_xlabel("operator")
        else:
            series = [[moment.get(kind, 0) / MIB for moment in moments] for kind in _KINDS]
            panel.stackplot(range(len(moments)), series, labels=_KINDS)
            panel.set_xlabel("before and after each layer")
        turn = max(i for i, moment in enumerate(moments) if moment["pass"] == "forward")
        panel.axvline(turn, color="grey", linewidth=0.8)  # forward is over
        panel.set_ylim(0, 1.05 * highest)
        panel.set_title(f"{record['mode']}\npeak {record['peak'] / MIB:.0f} MiB", fontsize="medium")
    panels[0].set_ylabel(f"{drawn[0]['net']}, batch {drawn[0]['batch']}: MiB")
    by_kind = [panel for panel in panels if panel.get_legend_handles_labels()[0]]
    if by_kind:
        by_kind[0].legend(fontsize="small")
    figure.savefig(path, dpi=110)
