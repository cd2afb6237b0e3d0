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


#: Net -> its name in the tables of the documents.
TITLES = {
    "resnet50": "ResNet-50",
    "resnet18": "ResNet-18",
    "bvlc_googlenet": "GoogLeNet",
    "vgg16": "VGG-16",
    "bvlc_reference_caffenet": "CaffeNet",
    "efficientnet_b0": "EfficientNet-B0",
}


_OURS = ["NONE", "LOSSLESS", "FIXED", "ADAPTIVE", "ADAPTIVE, slices"]
_THEIRS = ["PyTorch", "PyTorch, checkpoints", "PyTorch, micro-batches"]


def overview(records: list[Record]) -> list[str]:
    """Markdown: ADAPTIVE beside PyTorch, a row a net. README.md's table."""
    rows = [["net, batch", "conv inputs", "kept", "PyTorch's", "peak", "with slices", "PyTorch's",
             "its checkpoints", "its micro-batches"]]  # fmt: skip
    for net, title in TITLES.items():
        named = {record["mode"]: record for record in records if record["net"] == net}
        plain = named.get("ADAPTIVE")
        if plain is None or "error" in plain:
            continue
        kept = [("ADAPTIVE", "kept"), ("PyTorch", "kept")]
        peaks = [(mode, "peak") for mode in ["ADAPTIVE", "ADAPTIVE, slices", *_THEIRS]]
        figures = [_mib(named.get(mode, {}), field) for mode, field in [*kept, *peaks]]
        rows.append([f"{title}, {plain['batch']}", _ratio(plain) + "x", *figures])
    return markdown(rows)


def by_mode(records: list[Record]) -> list[str]:
    """Markdown: every configuration of every net against PyTorch. The table of docs/memory.md."""
    rows = [["net, batch", "", "ratio of conv inputs", "kept", "PyTorch's over it", "peak",
             "PyTorch's over it", "peak resident"]]  # fmt: skip
    for net, title in TITLES.items():
        named = {r["mode"]: r for r in records if r["net"] == net and "error" not in r}
        present = [mode for mode in [*_OURS, *_THEIRS] if mode in named]
        for mode in present:
            record, other = named[mode], named.get("PyTorch")
            label = f"{title}, {record['batch']}" if mode == present[0] else ""
            cells = []
            for field in ("kept", "peak"):
                less = f"{other[field] / record[field]:.1f}" if mode in _OURS and other else ""
                cells += [_mib(record, field), less]
            rows.append([label, mode, _ratio(record), *cells, _mib(record, "resident")])
    return markdown(rows)


def _ratio(record: Record) -> str:
    """Return raw over stored bytes of what convolutions read, "" where nothing is compressed."""
    if not record.get("conv_stored") or record["mode"] == "NONE":
        return ""
    return f"{record['conv_raw'] / record['conv_stored']:.1f}"


def _mib(record: Record, field: str) -> str:
    return f"{record[field] / MIB:.0f}" if field in record else ""


_HEAD = ["", "ratio of conv inputs", "kept for backward", "/ PyTorch's", "peak",
         "with parameters", "resident peak", "s / step", "/ NONE", "last loss"]  # fmt: skip


def _row(record: Record, rows: list[Record]) -> list[str]:
    """Return the cells of one configuration; its error where it failed."""
    if "error" in record:
        return [record["mode"], record["error"], *[""] * (len(_HEAD) - 2)]
    named = {row["mode"]: row for row in rows if "error" not in row}
    saved = named.get("PyTorch", {}).get("saved_tensors")
    plain = named.get("NONE", {}).get("seconds")
    return [
        record["mode"],
        _ratio(record),
        _mib(record, "kept"),
        f"1 / {saved / record['kept']:.1f}" if saved else "",
        _mib(record, "peak"),
        _mib(record, "peak_with_parameters"),
        _mib(record, "resident"),
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
