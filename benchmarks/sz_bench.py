"""Measures the compressor sz against SZ3, zfp, zstd, JPEG and the entropy of its codes.

    pip install pysz zfpy zstandard pillow matplotlib
    python benchmarks/sz_activations.py -out acts
    python benchmarks/sz_bench.py -acts acts -out out/sz

Bounds are in standard deviations of an array's non-zeros. For each net the bytes of its layers are
summed. Writes sz_bench.md (tables with targets), sz_bench.json (every figure), sz_bench.png.

SZ3 is its best of four algorithms a layer, found on a sample, on the array's axes or also with the
matrix of its rows, and its default; zfp the better of both shapes. zstd gets the quantised codes,
JPEG each channel as a plane of 8 bits, at the quality with an error closest to ours. The limits
are sz_limits.py's, the strict one with signs and prediction. Speeds are those of the largest layer
of each kind.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

import sz_report
import sz_speed
from caffe import _core
from common import heading
from sz_fields import FIELDS
from sz_figures import Figures, Layer, measure
from sz_rivals import check_packages, sample

FIELD_NET = "fields"  # stands for a net in the tables
FIELD_SIDE, QUICK_SIDE = 160, 24
ISAS = ("avx512", "avx2", "scalar")


def read_layers(folder: Path, net: str) -> Iterator[Layer]:
    """Give the arrays of a net, in the order of their names.

    Raises:
        ValueError: a file is not what sz_activations.py writes.
    """
    for path in sorted(folder.glob(f"{net}__*.npy")):
        parts = path.stem.split("__")
        values = np.load(path)
        if len(parts) != 3 or values.dtype != np.float32 or values.ndim != 4:
            raise ValueError(f"{path}: needs NET__LAYER__KIND.npy with float32 of four axes")
        if np.any(values):
            yield Layer(net, parts[1], parts[2], values)
        else:
            print(f"{path}: all zeros, left out", file=sys.stderr)


def made_fields(side: int) -> Iterator[Layer]:
    """Give the made fields."""
    for name, make in FIELDS.items():
        yield Layer(FIELD_NET, name, "field", make(side))


def quick(layers: Iterator[Layer]) -> Iterator[Layer]:
    """Give a sample of the first layer of each kind."""
    kinds = set()
    for layer in layers:
        if layer.kind not in kinds:
            kinds.add(layer.kind)
            yield Layer(layer.net, layer.name, layer.kind, sample(layer.values))


def largest(layers: Iterator[Layer]) -> list[Layer]:
    """Return the largest layer of each kind."""
    found: dict[str, Layer] = {}
    for layer in layers:
        if layer.kind not in found or layer.values.nbytes > found[layer.kind].values.nbytes:
            found[layer.kind] = layer
    return list(found.values())


def instruction_set() -> str:
    """Return the best one that this build of sz has and this machine runs."""
    for isa in ISAS:
        try:
            if _core.sz.supported(isa):
                return isa
        except ValueError:  # a build without it
            continue
    return "none"


class Bench:
    """Measures what the command line asks for."""

    def __init__(self, given: argparse.Namespace) -> None:
        """Keep the arguments."""
        self.given = given
        self.figures: list[Figures] = []
        self.speeds: dict[str, dict[float, list[sz_speed.Speed]]] = {}

    def layers(self, net: str) -> Iterator[Layer]:
        """Give the arrays of a net, or the fields."""
        if net == FIELD_NET:
            return made_fields(QUICK_SIDE if self.given.quick else FIELD_SIDE)
        layers = read_layers(self.given.acts, net)
        return quick(layers) if self.given.quick else layers

    def run(self, net: str) -> None:
        """Measure one net."""
        given = self.given
        for layer in self.layers(net):
            began = time.perf_counter()
            for factor in given.bounds:
                self.figures.append(
                    measure(
                        layer,
                        factor,
                        dithers=not given.no_dither,
                        rivals=not given.without_rivals,
                    )
                )
            print(f"{net} {layer.name} {layer.kind}: {time.perf_counter() - began:.1f} s")
        if given.no_speed:
            return
        self.speeds[net] = {}
        for factor in (sz_report.TIGHT, sz_report.LOOSE):
            self.speeds[net][factor] = [
                sz_speed.measure(
                    layer.values,
                    float(np.float32(factor * layer.deviation)),
                    layer.kind == "bn_output",
                    given.repetitions,
                )
                for layer in largest(self.layers(net))
            ]

    def write(self, nets: Sequence[str]) -> None:
        """Write the three files."""
        out = self.given.out
        out.mkdir(parents=True, exist_ok=True)
        lines = ["# sz and its rivals", "", *heading()]
        lines += [f"Instruction set of sz: {instruction_set()}.", ""]
        lines += [*sz_report.overview(self.figures), ""]
        for net in nets:
            rows = [row for row in self.figures if row.net == net]
            speeds = self.speeds.get(net, {})
            lines += [f"## {net}", ""]
            lines += [*sz_report.verdicts(rows, speeds, net != FIELD_NET), ""]
            lines += ["Bits a value:", "", *sz_report.layers(rows), ""]
        (out / "sz_bench.md").write_text("\n".join(lines), encoding="utf-8")
        content = {
            "isa": instruction_set(),
            "figures": [row.as_json() for row in self.figures],
            "speeds": [
                {"net": net, "factor": factor, **asdict(speed)}
                for net, by_factor in self.speeds.items()
                for factor, timed in by_factor.items()
                for speed in timed
            ],
        }
        (out / "sz_bench.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
        sz_report.picture(self.figures, out / "sz_bench.png")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-acts", type=Path, required=True, help="folder of sz_activations.py")
    parser.add_argument("-out", type=Path, required=True, help="folder to write to")
    parser.add_argument("-net", action="append", help=f"a net there, or {FIELD_NET}; may repeat")
    parser.add_argument("-bounds", type=float, nargs="+", default=[0.05, 0.3, 1.0])
    parser.add_argument("-repetitions", type=int, default=5, help="of each timing")
    parser.add_argument("-quick", action="store_true", help="parts of a few layers")
    parser.add_argument("-no-speed", action="store_true", help="sizes alone")
    parser.add_argument("-no-dither", action="store_true", help="no dithered streams")
    parser.add_argument("-without-rivals", action="store_true", help="ours and the limit; no speed")
    given = parser.parse_args()
    given.no_speed |= given.without_rivals
    return given


def main() -> int:
    """Measure and write; returns the exit status."""
    given = arguments()
    found = {path.stem.split("__")[0] for path in given.acts.glob("*__*.npy")}
    known = [*sorted(found), FIELD_NET]
    nets = given.net or known
    try:
        unknown = [net for net in nets if net not in known]
        if unknown or not found:
            raise ValueError(
                f"{given.acts} has no {' or '.join(unknown) or 'activations'}; "
                f"sz_activations.py -out {given.acts} makes them"
            )
        if not given.without_rivals:
            check_packages()
        if not given.no_speed:
            sz_speed.keep_memory()
        bench = Bench(given)
        for net in nets:
            bench.run(net)
        bench.write(nets)
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        print(f"sz_bench.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
