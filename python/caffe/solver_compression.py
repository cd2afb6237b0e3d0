"""Compression as seen and set from Python: `solver.compression`.

solver.step(100)
for name, value in solver.compression.items():
    print(name, value.form, value.ratio, value.error_bound)
solver.compression["conv2"].error_bound = 1e-3
solver.compression.set(mode="ADAPTIVE", sigma_factor=0.02)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from caffe._core.store import Form
from caffe.compression_log import needed_bytes, row_name
from caffe.names import suggestion
from caffe.net_spec import assign_proto
from caffe.proto import caffe_pb2 as pb
from caffe.runtime import StoredReport
from caffe.solver_check import check_compression
from caffe.solver_memory import fit_limit

if TYPE_CHECKING:
    from caffe.solver import Solver

#: Fields of which a change makes bounds found so far meaningless.
_RESETTING = ("mode", "error_bound", "bound_type", "paper_a")


class ValueCompression:
    """One value that is kept for backward, as the last iteration kept it."""

    def __init__(self, solver: Solver, report: StoredReport) -> None:
        """Show what `report` says; the bound is the solver's to know."""
        self._solver = solver
        self._report = report

    @property
    def blob(self) -> str:
        """Name of the blob."""
        return self._report.saved.value.name

    @property
    def form(self) -> str:
        """How it is kept: raw, lossless, bounded or sign."""
        return self._report.saved.form.name.lower()

    @property
    def raw_bytes(self) -> int:
        """Bytes of the value as it is."""
        return self._report.raw_bytes

    @property
    def stored_bytes(self) -> int:
        """Bytes that it took."""
        return self._report.stored_bytes

    @property
    def ratio(self) -> float:
        """Raw over stored bytes."""
        return self._report.ratio

    @property
    def nonzero_share(self) -> float | None:
        """Share of values that are not 0, when last counted; None: never."""
        return self._report.nonzero_share

    @property
    def error_bound(self) -> float:
        """Absolute bound of each value's error: once set, that of the next iteration; 0: exact.

        Setting it holds from the next iteration on, in ADAPTIVE until the next refresh. Raises
        ValueError where the value is not kept within a bound, or the bound is not above 0.
        """
        state = self._solver.bounds.values.get(self._report.saved.value.index)
        if state is not None and state.bound is not None:
            return state.bound
        return self._report.error_bound

    @error_bound.setter
    def error_bound(self, bound: float) -> None:
        if self._report.saved.form != Form.BOUNDED:
            raise ValueError(
                f"blob '{self.blob}' is kept as '{self.form}': it has no bound that could be set"
            )
        if not 0 < bound < math.inf:
            raise ValueError(f"error_bound is {bound:g}, needs to be a number above 0")
        self._solver.bounds.values[self._report.saved.value.index].bound = float(bound)

    def __repr__(self) -> str:
        return (
            f"<{self.blob}: {self.form}, {self.raw_bytes} -> {self.stored_bytes} bytes "
            f"({self.ratio:.1f}x), bound {self.error_bound:.2e}>"
        )


class SolverCompression(Mapping[str, ValueCompression]):
    """What a solver's train net keeps for backward, by layer, as of the last iteration.

    A value's name is that of the layer that reads it for the gradient of its weights, or else of
    the layer that writes it (joined by + where several do); where two values have one name, the
    second has its blob's name behind it. Empty before the first iteration, and in mode NONE.
    """

    def __init__(self, solver: Solver) -> None:
        """Show the compression of this solver."""
        self._solver = solver

    def _rows(self) -> dict[str, ValueCompression]:
        rows: dict[str, ValueCompression] = {}
        for report in self._solver.net.compression_report():
            name = row_name(self._solver.net.executor, report)
            if name in rows:
                name = f"{name} {report.saved.value.name}"
            rows[name] = ValueCompression(self._solver, report)
        return rows

    def __getitem__(self, name: str) -> ValueCompression:
        """Return a layer's value; KeyError names the nearest."""
        rows = self._rows()
        if name not in rows:
            raise KeyError(f"nothing is kept for '{name}'{suggestion(name, rows)}")
        return rows[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names, in the order of the net."""
        return iter(self._rows())

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._rows())

    @property
    def raw_bytes(self) -> int:
        """Bytes of all that backward reads, as it is, whether kept or worked out again."""
        return needed_bytes(self._solver.net.executor) if self._rows() else 0

    @property
    def stored_bytes(self) -> int:
        """Bytes that they took."""
        return sum(row.stored_bytes for row in self.values())

    @property
    def ratio(self) -> float:
        """Raw over stored bytes."""
        return self.raw_bytes / max(self.stored_bytes, 1)

    @property
    def param(self) -> pb.CompressionParameter:
        """A copy of the solver's compression_param, as it is now."""
        param = pb.CompressionParameter()
        param.CopyFrom(self._solver.param.compression_param)
        return param

    def set(self, **fields: Any) -> None:
        """Change fields of compression_param, from the next iteration on; call it between steps.

        What a layer says in prototxt still comes first. Another mode, error_bound, bound_type or
        paper_a drops the bounds found so far; kept buffers are released.

        Raises:
            AttributeError: no such field; names the nearest.
            TypeError, ValueError: a value that the field cannot have.
        """
        old, new = self.param, self.param
        for name, value in fields.items():
            if name == "keep":
                del new.keep[:]
            assign_proto(new, name, value)
        check_compression(new)
        solver = self._solver
        solver.param.compression_param.CopyFrom(new)
        try:
            solver.net.replan(new)
            fit_limit(solver)
        except ValueError:
            solver.param.compression_param.CopyFrom(old)
            solver.net.replan(old)
            fit_limit(solver)
            raise
        releases = new.mode != pb.CompressionParameter.NONE
        for net in solver.test_nets:
            kept = pb.CompressionParameter(keep=new.keep if releases else ())
            net.replan(kept, forward_only=releases)
        solver.schedule.interval = new.interval
        if any(getattr(old, name) != getattr(new, name) for name in _RESETTING):
            solver.bounds.reset()
            solver.schedule.next = solver.iter + 1
        solver.bounds.watch(solver.net.executor.plan.saved.values())
