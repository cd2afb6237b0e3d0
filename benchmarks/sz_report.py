"""Tables and the picture of sz_bench.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import markdown
from sz_figures import Figures
from sz_speed import Speed

TIGHT, LOOSE = 0.05, 0.3  # standard deviations of the non-zeros; the bounds that have targets
DITHER_AT = 1.0
DITHER_VALUES = 100_000  # non-zeros of a layer from which chance alone stays below the target
NAMES = (
    "plain",
    "sign kept",
    "dithered",
    "SZ3 best",
    "SZ3 on axes",
    "SZ3 default",
    "zfp",
    "zstd",
    "JPEG",
)
CURVES = ("plain", "SZ3 best", "zfp")


@dataclass(frozen=True)
class Target:
    """What a figure must reach, and what it is hoped to."""

    must: float
    aim: float
    smaller: bool = False  # the figure is good when it is small

    def verdict(self, figure: float) -> str:
        """One word."""
        sign = -1 if self.smaller else 1
        if sign * figure >= sign * self.aim:
            return "reached" if self.aim == self.must else "aim reached"
        return "met" if sign * figure >= sign * self.must else "**missed**"


def total(rows: Sequence[Figures], name: str) -> int:
    """Bytes of all rows under `name`; "trained" is what training keeps."""
    if name == "raw":
        return sum(row.raw_bytes for row in rows)
    if name == "trained":
        return sum(row.trained_bytes for row in rows)
    return sum(row.sizes[name] for row in rows)


def against(rival: str) -> Callable[[Sequence[Figures]], float | None]:
    """Return the function that says how many times the plain stream's size a rival's is."""

    def figure(rows: Sequence[Figures]) -> float | None:
        if rival not in rows[0].sizes and rival != "raw":
            return None
        return total(rows, rival) / total(rows, "plain")

    return figure


def share(limit: str) -> Callable[[Sequence[Figures]], float | None]:
    """Return the function that says what part of the plain stream's bits a limit is."""

    def figure(rows: Sequence[Figures]) -> float | None:
        bits = sum(row.limits[f"plain{limit}"] for row in rows)
        return bits / (8 * total(rows, "plain"))

    return figure


def _share_in_training(rows: Sequence[Figures]) -> float:
    bits = sum(row.limits.get("sign kept, strict", row.limits["plain, strict"]) for row in rows)
    return bits / (8 * total(rows, "trained"))


def _broken(rows: Sequence[Figures]) -> float:
    checks = [check for row in rows for check in row.checks.values()]
    return sum(check.violations + check.zeros + check.signs for check in checks)


def _ratio_in_training(rows: Sequence[Figures]) -> float:
    return total(rows, "raw") / total(rows, "trained")


def _jpeg_error(rows: Sequence[Figures]) -> float | None:
    weights = [row.count for row in rows]
    if not rows[0].jpeg_rms:
        return None
    weighted = sum(row.jpeg_rms * weight for row, weight in zip(rows, weights))
    return weighted / sum(weights)


# What is measured, how, and the targets at the tight and the loose bound.
MEASURES: tuple[
    tuple[str, Callable[[Sequence[Figures]], float | None], Target | None, Target | None], ...
] = (
    ("ratio", against("raw"), None, None),
    ("ratio as training keeps it", _ratio_in_training, None, None),
    ("/ best SZ3 of each layer", against("SZ3 best"), Target(1.08, 1.2), Target(1.05, 1.2)),
    (
        "/ best SZ3 on the array's axes",
        against("SZ3 on axes"),
        Target(1.08, 1.2),
        Target(1.05, 1.2),
    ),
    ("/ SZ3's default", against("SZ3 default"), Target(1.25, 1.4), Target(1.25, 1.4)),
    ("/ zfp", against("zfp"), None, None),
    ("/ zstd of the codes", against("zstd"), None, None),
    ("/ JPEG at equal RMS error", against("JPEG"), Target(1.8, 2.5), Target(1.8, 2.5)),
    ("JPEG's RMS error / ours", _jpeg_error, None, None),
    ("share of the entropy limit", share(""), Target(0.9, 0.97), Target(0.9, 0.97)),
    ("share of the strict limit", share(", strict"), None, None),
    ("the same as training keeps it", _share_in_training, None, None),
    ("values off, zeros and signs changed", _broken, Target(0, 0, True), Target(0, 0, True)),
)
# Speeds: name, what is divided by what, target; at either bound.
SPEEDS = (
    ("compress, 1 thread / memcpy", "memcpy", "compress 1", Target(0.35, 0.35)),
    ("compress, 1 thread / SZ3", "compress SZ3", "compress 1", Target(25, 25)),
    ("expand, 1 thread / memcpy", "memcpy", "expand 1", Target(0.7, 0.7)),
    ("expand, 1 thread / SZ3", "expand SZ3", "expand 1", Target(25, 25)),
    ("compress, 2 threads / memcpy", "memcpy", "compress 2", None),
    ("expand, 2 threads / memcpy", "memcpy", "expand 2", None),
)


def verdicts(rows: Sequence[Figures], speeds: dict[float, list[Speed]], targets: bool) -> list[str]:
    """Markdown: a net's totals at the tight and the loose bound beside the targets."""
    table = [["", "bound", "measured", "must", "aim", ""]]
    for name, figure, *wanted in MEASURES:
        for factor, target in zip((TIGHT, LOOSE), wanted):
            chosen = [row for row in rows if row.factor == factor]
            if chosen:
                _add(table, name, factor, figure(chosen), target if targets else None)
    for name, above, below, target in SPEEDS:
        for factor, timed in speeds.items():
            figure = _quotient(timed, above, below)
            _add(table, name, factor, figure, target if targets else None)
    for name in ("memcpy", "compress 1", "compress 2", "expand 1", "expand 2"):
        for factor, timed in speeds.items():
            _add(table, f"{name}, GB/s", factor, _gigabytes(timed, name), None)
    for name, figure in _dither(rows).items():
        _add(table, name, DITHER_AT, figure, Target(0.01, 0.01, True) if targets else None)
    return markdown(table)


def _dither(rows: Sequence[Figures]) -> dict[str, float]:
    found = [row.dither for row in rows if row.factor == DITHER_AT and row.dither]
    if not found:
        return {}
    large = [one for one in found if one.count >= DITHER_VALUES]
    large = large or [max(found, key=lambda one: one.count)]
    return {
        "dithered: worst layer's correlation of error and value": max(
            abs(one.correlation) for one in large
        ),
        "dithered: worst layer's mean error / bound": max(abs(one.mean) for one in large),
    }


def _quotient(timed: Sequence[Speed], above: str, below: str) -> float:
    return sum(one.seconds[above] for one in timed) / sum(one.seconds[below] for one in timed)


def _gigabytes(timed: Sequence[Speed], name: str) -> float:
    return sum(one.raw_bytes for one in timed) / sum(one.seconds[name] for one in timed) / 1e9


def _add(
    table: list[list[str]], name: str, factor: float, figure: float | None, target: Target | None
) -> None:
    if figure is None:
        return
    wanted = [f"{target.must:g}", f"{target.aim:g}", target.verdict(figure)] if target else [""] * 3
    shown = f"{figure:.0f}" if figure >= 1000 or figure == 0 else f"{figure:.3g}"
    table.append([name, f"{factor:g} std", shown, *wanted])


def overview(rows: Sequence[Figures]) -> list[str]:
    """Markdown: the main figures of all nets at all bounds."""
    measures = [(name, figure) for name, figure, *_ in MEASURES if figure(rows) is not None]
    table = [["", "bound", *(name for name, _ in measures)]]
    for net in dict.fromkeys(row.net for row in rows):
        for factor in dict.fromkeys(row.factor for row in rows):
            chosen = [row for row in rows if (row.net, row.factor) == (net, factor)]
            cells = [f"{figure(chosen):.4g}" for _, figure in measures]
            table.append([net, f"{factor:g} std", *cells])
    return markdown(table)


def layers(rows: Sequence[Figures]) -> list[str]:
    """Markdown: bits a value of each layer at each bound."""
    names = [name for name in NAMES if any(name in row.sizes for row in rows)]
    table = [["layer", "kind", "MB", "bound", *names, "limit", "strict limit", "SZ3's best"]]
    for row in rows:
        bits = [
            f"{8 * row.sizes[name] / row.count:.3f}" if name in row.sizes else "" for name in names
        ]
        limits = [f"{row.limits[key] / row.count:.3f}" for key in ("plain", "plain, strict")]
        size = f"{row.raw_bytes / 1e6:.1f}"
        setting = row.settings.get("SZ3 best", "")
        table.append([row.layer, row.kind, size, f"{row.factor:g}", *bits, *limits, setting])
    return markdown(table)


def picture(rows: Sequence[Figures], path: Path) -> None:
    """Draw bits a value over the bound, a panel a net. Needs matplotlib."""
    import matplotlib as mpl  # noqa: PLC0415 - an optional dependency

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    nets = list(dict.fromkeys(row.net for row in rows))
    figure, panels = plt.subplots(
        1, len(nets), figsize=(3.4 * len(nets) + 0.6, 4.2), squeeze=False, layout="constrained"
    )
    for net, panel in zip(nets, panels[0]):
        factors = sorted({row.factor for row in rows if row.net == net})
        groups = [[row for row in rows if (row.net, row.factor) == (net, f)] for f in factors]
        values = [sum(row.count for row in group) for group in groups]
        for name in CURVES:
            if name in groups[0][0].sizes:
                bits = [8 * total(group, name) / n for group, n in zip(groups, values)]
                panel.plot(factors, bits, marker="o", label="ours" if name == "plain" else name)
        for limit, style in (("plain", "k:"), ("plain, strict", "k--")):
            bits = [sum(row.limits[limit] for row in group) / n for group, n in zip(groups, values)]
            label = "entropy limit" if limit == "plain" else "strict limit"
            panel.plot(factors, bits, style, marker=".", label=label)
        panel.set(title=net, xscale="log", xlabel="bound / std of the non-zeros")
        panel.set_xticks(factors, [f"{factor:g}" for factor in factors], minor=False)
        panel.set_xticks([], minor=True)
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("bits a value")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    figure.savefig(path, dpi=150)
    plt.close(figure)
