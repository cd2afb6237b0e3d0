"""What compression did, for people and for programs: a line an iteration, a table, JSON lines.

Turns a net's reports into text; measures nothing itself.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from caffe._core import memory
from caffe._core.layers import BoundRule
from caffe.executor import Executor
from caffe.runtime import StoredReport


@dataclass
class LayerRow:
    """One kept value, under the name of the layer that it is kept for."""

    layer: str
    form: str
    raw_bytes: int
    stored_bytes: int
    expected_bytes: int  # what the memory plan reckoned with
    error_bound: float
    nonzero_share: float | None

    @property
    def ratio(self) -> float:
        """Raw over stored bytes."""
        return self.raw_bytes / max(self.stored_bytes, 1)


@dataclass
class CompressionSummary:
    """All rows of one iteration, and the whole."""

    rows: list[LayerRow]
    needed_bytes: int  # of all that backward reads, as it is, whether kept or worked out again
    own_bytes: int  # what layers kept themselves: pooling indices, probabilities
    peak_bytes: int  # of everything but parameters, their gradients and history
    peak_layer: str

    @property
    def raw_bytes(self) -> int:
        """Bytes that all that backward reads would take, kept as it is."""
        return self.needed_bytes + self.own_bytes

    @property
    def stored_bytes(self) -> int:
        """Bytes that they take."""
        return sum(row.stored_bytes for row in self.rows) + self.own_bytes

    @property
    def expected_bytes(self) -> int:
        """Bytes that they were expected to take."""
        return sum(row.expected_bytes for row in self.rows) + self.own_bytes

    @property
    def ratio(self) -> float:
        """Raw over stored bytes."""
        return self.raw_bytes / max(self.stored_bytes, 1)


def row_name(executor: Executor, report: StoredReport) -> str:
    """Return the layers that read the value for their weights' gradient, else its writer."""
    saved = report.saved
    readers = [reader.layer for reader in saved.readers if reader.rule == BoundRule.GRADIENT]
    layers = dict.fromkeys(readers) or {saved.value.producer: None}
    return "+".join(executor.graph.nodes[index].name for index in layers)


def summarise(executor: Executor) -> CompressionSummary:
    """Return the figures of the executor's last forward pass, and the peak so far."""
    rows = [
        LayerRow(
            row_name(executor, report),
            report.saved.form.name.lower(),
            report.raw_bytes,
            report.stored_bytes,
            report.saved.expected_bytes,
            report.error_bound,
            report.nonzero_share,
        )
        for _, report in sorted(executor.reports.items())
    ]
    peak = memory.peak()
    needed = needed_bytes(executor)
    return CompressionSummary(rows, needed, executor.own_bytes, peak["total"], peak["layer"])


def needed_bytes(executor: Executor) -> int:
    """Return the bytes of all that backward reads, as it is: what plain Caffe keeps for it."""
    return sum(4 * executor.slots[index].count for index in executor.plan.direct_readers)


def iteration_line(summary: CompressionSummary) -> str:
    """Every compressed layer's ratio and the whole, in one line."""
    compressed = [row for row in summary.rows if row.form in ("bounded", "lossless")]
    ratios = ", ".join(f"{row.layer} {row.ratio:.1f}x" for row in compressed)
    return (
        f"Compression: {ratios or 'nothing compressed'} | all {mib(summary.raw_bytes)} -> "
        f"{mib(summary.stored_bytes)} ({summary.ratio:.1f}x)"
    )


def table(summary: CompressionSummary) -> list[str]:
    """Lines of a table: layer, form, KB raw, expected and stored, ratio, bound, non-zeros."""
    width = max([len("layer"), *(len(row.layer) for row in summary.rows)])
    lines = [
        f"{'layer':<{width}}  {'kept as':<8}  {'raw KB':>10}  {'expected':>10}  "
        f"{'stored KB':>10}  {'ratio':>7}  {'bound':>9}  {'non-zero':>8}"
    ]
    for row in summary.rows:
        bound = f"{row.error_bound:.2e}" if row.form == "bounded" else "exact"
        share = "" if row.nonzero_share is None else f"{100 * row.nonzero_share:.1f}%"
        lines.append(
            f"{row.layer:<{width}}  {row.form:<8}  {row.raw_bytes / 1024:>10.1f}  "
            f"{row.expected_bytes / 1024:>10.1f}  {row.stored_bytes / 1024:>10.1f}  "
            f"{row.ratio:>6.1f}x  {bound:>9}  {share:>8}"
        )
    lines.append(
        f"{'all':<{width}}  {'':<8}  {summary.raw_bytes / 1024:>10.1f}  "
        f"{summary.expected_bytes / 1024:>10.1f}  {summary.stored_bytes / 1024:>10.1f}  "
        f"{summary.ratio:>6.1f}x"
    )
    lines.append(
        f"Peak memory apart from parameters, their gradients and history: "
        f"{mib(summary.peak_bytes)} at layer '{summary.peak_layer}'"
    )
    return lines


def mib(size: int) -> str:
    """Return bytes as text in MiB."""
    return f"{size / 2**20:.1f} MiB"


class JsonLines:
    """Writes one JSON object a line for each iteration."""

    def __init__(self, path: str | Path) -> None:
        """Open (and empty) the file. Raises OSError where it cannot be written."""
        self._path = path
        try:
            self._file: TextIO = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise self._named(error) from error

    def _named(self, error: OSError) -> OSError:
        return type(error)(
            error.errno, f"cannot write compression log '{self._path}': {error.strerror}"
        )

    def write(self, iteration: int, loss: float, rate: float, summary: CompressionSummary) -> None:
        """Append one iteration's figures; bytes are bytes, ratios raw over stored."""
        record = {
            "iteration": iteration,
            "loss": loss,
            "lr": rate,
            "raw_bytes": summary.raw_bytes,
            "stored_bytes": summary.stored_bytes,
            "expected_bytes": summary.expected_bytes,
            "ratio": summary.ratio,
            "own_bytes": summary.own_bytes,
            "peak_bytes": summary.peak_bytes,
            "peak_layer": summary.peak_layer,
            "layers": [
                {
                    "layer": row.layer,
                    "form": row.form,
                    "raw_bytes": row.raw_bytes,
                    "stored_bytes": row.stored_bytes,
                    "expected_bytes": row.expected_bytes,
                    "ratio": row.ratio,
                    "error_bound": row.error_bound,
                    "nonzero_share": row.nonzero_share,
                }
                for row in summary.rows
            ],
        }
        try:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        except OSError as error:
            raise self._named(error) from error

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):  # write() has told of lines that did not fit
            self._file.close()


def read_json_lines(path: str | Path) -> Sequence[dict[str, object]]:
    """Read a file that JsonLines wrote: one dictionary an iteration."""
    with Path(path).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
