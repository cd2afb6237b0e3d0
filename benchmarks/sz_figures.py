"""What sz_bench.py measures of one array at one bound."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np

import sz_limits
import sz_rivals
from sz_jpeg import jpeg_of_rms

DITHER_SEED = 1


@dataclass(frozen=True)
class Layer:
    """An array and where it comes from."""

    net: str
    name: str
    kind: str  # as sz_activations.py names them, or "field"
    values: np.ndarray

    @property
    def deviation(self) -> float:
        """Standard deviation of the non-zeros, the unit of the bounds."""
        return float(self.values[self.values != 0].std(dtype=np.float64))


@dataclass(frozen=True)
class Check:
    """What a stream promised and did not keep; all 0, or sz is broken."""

    violations: int  # values off by more than the bound
    zeros: int  # zeros that came back as something else
    signs: int  # values of another sign, where the sign was to be kept


@dataclass(frozen=True)
class Dither:
    """How the error of a dithered stream depends on what it belongs to; non-zeros alone."""

    count: int
    correlation: float  # of error and value
    mean: float  # error, in bounds


@dataclass
class Figures:
    """Sizes are in bytes, limits in bits of the whole array."""

    net: str
    layer: str
    kind: str
    shape: tuple[int, ...]
    factor: float  # bound in standard deviations of the non-zeros
    bound: float
    sizes: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)  # of the rivals that have some
    limits: dict[str, float] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    dither: Dither | None = None
    jpeg_rms: float = 0.0  # JPEG's error over ours

    @property
    def count(self) -> int:
        """Values of the array."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def raw_bytes(self) -> int:
        """Bytes of the array."""
        return 4 * self.count

    @property
    def trained_bytes(self) -> int:
        """Size of the stream that training keeps: with signs where a ReLU's mask is read."""
        return self.sizes.get("sign kept", self.sizes["plain"])

    def as_json(self) -> dict[str, object]:
        """Everything as plain dictionaries."""
        return asdict(self)


def measure(layer: Layer, factor: float, *, dithers: bool, rivals: bool) -> Figures:
    """Compress an array at `factor` standard deviations of its non-zeros by everything.

    Args:
        layer: float32 values with at least two axes, some of them not 0.
        factor: bound in that unit.
        dithers: measure dithered streams too.
        rivals: measure the rivals too.
    """
    values = layer.values
    # As float32 has it, so that no contestant rounds the bound to its own advantage.
    bound = float(np.float32(factor * layer.deviation))
    figures = Figures(layer.net, layer.name, layer.kind, values.shape, factor, bound)
    restored = _measure_ours(figures, values, bound, dithers)
    codes = sz_limits.codes(values, bound)
    limit = sz_limits.limit(codes)
    figures.limits = {"plain": limit.bits, "plain, strict": limit.strict_bits}
    if "sign kept" in figures.sizes:
        signed = sz_limits.limit(sz_limits.sign_codes(values, bound))
        figures.limits |= {"sign kept": signed.bits, "sign kept, strict": signed.strict_bits}
    if rivals:
        _measure_rivals(figures, values, restored, codes)
    return figures


def _measure_ours(figures: Figures, values: np.ndarray, bound: float, dithers: bool) -> np.ndarray:
    """Return what the plain stream restores."""
    codecs = [sz_rivals.ours()]
    if figures.kind == "bn_output":
        codecs.append(sz_rivals.ours(keep_sign=True))
    if dithers:
        codecs.append(sz_rivals.ours(dither=DITHER_SEED))
    results = {}
    for codec in codecs:
        stream = codec.compress(values, bound)
        results[codec.name] = codec.expand(stream, values.shape)
        figures.sizes[codec.name] = len(stream)
        keeps_sign = codec.name == "sign kept"
        figures.checks[codec.name] = check(values, results[codec.name], bound, keeps_sign)
    if dithers:
        figures.dither = dependence(values, results["dithered"], bound)
    return results["plain"]


def _measure_rivals(
    figures: Figures, values: np.ndarray, restored: np.ndarray, codes: np.ndarray
) -> None:
    sz3 = sz_rivals.best_sz3(values, figures.bound)
    zfp = sz_rivals.best_zfp(values, figures.bound)
    jpeg = jpeg_of_rms(values, restored)
    figures.sizes |= {
        "SZ3 best": sz3.best.bytes,
        "SZ3 on axes": sz3.on_axes.bytes,
        "SZ3 default": sz3.default,
        "zfp": zfp.bytes,
        "zstd": sz_rivals.zstd_bytes(codes),
        "JPEG": jpeg.bytes,
    }
    figures.settings = {
        "SZ3 best": sz3.best.setting,
        "SZ3 on axes": sz3.on_axes.setting,
        "zfp": zfp.setting,
        "JPEG": f"quality {jpeg.quality}",
    }
    error = float(np.sqrt(np.mean(np.square(restored - values, dtype=np.float64))))
    figures.jpeg_rms = jpeg.rms / error if error else float("inf")


def check(values: np.ndarray, restored: np.ndarray, bound: float, keeps_sign: bool) -> Check:
    """Count what does not hold; differences are taken in double precision, so exactly."""
    error = np.abs(np.subtract(restored, values, dtype=np.float64))
    signs = np.sign(values) != np.sign(restored)
    return Check(
        violations=int(np.count_nonzero(~(error <= bound))),
        zeros=int(np.count_nonzero((values == 0) & (restored != 0))),
        signs=int(np.count_nonzero(signs)) if keeps_sign else 0,
    )


def dependence(values: np.ndarray, restored: np.ndarray, bound: float) -> Dither:
    """Correlate error and value over the non-zeros."""
    x = values[values != 0].astype(np.float64)
    error = restored[values != 0] - x
    spread = error.std() * x.std()
    covariance = np.mean(error * (x - x.mean()))
    correlation = float(covariance / spread) if spread else 0.0
    return Dither(len(x), correlation, float(error.mean() / bound))
