"""Error bounds: how wrong each kept activation may be.

FIXED takes the bound from prototxt. ADAPTIVE sets it so that the error which compression causes in
a layer's weight gradient has a standard deviation of sigma_factor times the mean momentum of its
weights (the COMET paper's rule; docs/error-bounds.md derives the form used here):

    eb = sqrt(3) * sigma / (rms(dy) * sqrt(N * P * R)),    sigma = sigma_factor * m

N * P products summed in one weight gradient, R the share of non-zeros, m the mean momentum in units
of the gradient. Knows statistics and bounds, not tensors' lives or the wire format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from caffe._core import Tensor
from caffe._core.layers import BoundRule, Quality
from caffe._core.store import Form, Statistics, StoredActivation, statistics_of
from caffe.memory_plan import BackwardReader, SavedValue, Zeros
from caffe.proto import caffe_pb2 as pb
from caffe.recomputation import Way

Compression = pb.CompressionParameter

#: Of a step of a recipe: what it multiplies an error by.
FactorOf = Callable[[tuple[int, Way]], float]

#: Share of a new measurement in a smoothed statistic.
SMOOTHING = 0.5
#: A refresh moves a bound by at most this factor: one odd batch must not rule until the next.
MOST_CHANGE = 4.0
#: Values that reach the data gradient otherwise than normalised get the cap over this.
PROPAGATED_DIVISOR = 3.0
#: A change of the learning rate from one iteration to the next that is more than creeping.
RATE_STEP = 0.05
#: No bound falls below this share of the non-zeros' std: float32 itself is not much finer.
LEAST_SHARE = 1e-6


def nonzero_std(statistics: Statistics) -> float:
    """Return the standard deviation of the non-zero values; 0 where there are none."""
    if statistics.nonzeros == 0:
        return 0.0
    mean = statistics.sum / statistics.nonzeros
    return math.sqrt(max(statistics.sum_squares / statistics.nonzeros - mean * mean, 0.0))


def positive_share(statistics: Statistics) -> float:
    """Return the share of values above 0, as if they were normally distributed."""
    mean = statistics.sum / statistics.count
    std = math.sqrt(max(statistics.sum_squares / statistics.count - mean * mean, 0.0))
    return 0.5 * math.erfc(-mean / (std * math.sqrt(2))) if std > 0 else float(mean > 0)


def read_share(reader: BackwardReader, statistics: Statistics, nonzero_share: float) -> float:
    """Return the share of what a reader sees that is not 0; 1 where the saved value does not tell.

    Args:
        reader: who reads.
        statistics: of the saved value that what it reads is worked out from.
        nonzero_share: of that value.
    """
    if reader.zeros == Zeros.NEGATIVE:
        return positive_share(statistics)
    return nonzero_share if reader.zeros == Zeros.SAME else 1.0


def fixed_bound(compression: pb.CompressionParameter, statistics: Statistics) -> float:
    """Absolute bound that error_bound means for data of these statistics.

    A value without spread (all zeros, one constant) gets bound 0: it costs nothing to keep exactly.
    """
    if compression.bound_type == Compression.ABS:
        return compression.error_bound
    if compression.bound_type == Compression.REL:
        return compression.error_bound * (statistics.max - statistics.min)
    return compression.error_bound * nonzero_std(statistics)


def gradient_bound(
    sigma: float, rms_gradient: float, terms: int, nonzero_share: float
) -> float | None:
    """Bound that gives the weight gradient an error of standard deviation `sigma`.

    Args:
        sigma: wanted standard deviation, in units of the gradient.
        rms_gradient: root mean square of the output's gradient over batch and positions.
        terms: products summed in one weight gradient, N * P.
        nonzero_share: R, the share of inputs that are not exactly zero.

    Returns:
        The bound, or None where the statistics give none (a zero or a non-finite one among them).
    """
    noise = rms_gradient * math.sqrt(terms * nonzero_share)
    if not (math.isfinite(sigma) and math.isfinite(noise)) or sigma <= 0 or noise <= 0:
        return None
    return math.sqrt(3.0) * sigma / noise


def gradient_error(bound: float, rms_gradient: float, terms: int, nonzero_share: float) -> float:
    """Return the standard deviation of the weight gradient's error that a bound causes.

    The formula of gradient_bound(), the other way round, with its arguments.
    """
    return bound / math.sqrt(3.0) * rms_gradient * math.sqrt(terms * nonzero_share)


def paper_bound(
    sigma: float, a: float, mean_abs_gradient: float, batch: int, nonzero_share: float
) -> float | None:
    """Return the bound in the paper's form, sigma = a * mean|dy| * sqrt(N * R) * eb.

    Returns None as gradient_bound() does.
    """
    noise = a * mean_abs_gradient * math.sqrt(batch * nonzero_share)
    if not (math.isfinite(sigma) and math.isfinite(noise)) or sigma <= 0 or noise <= 0:
        return None
    return sigma / noise


@dataclass
class GradientStatistics:
    """What one layer's backward passes showed since the last refresh, and smoothed before."""

    sum_squares: float = 0.0  # of rms(dy), or mean|dy| with paper_a
    passes: int = 0
    terms: int = 0
    batch: int = 0
    magnitude: float = 0.0  # smoothed rms(dy) or mean|dy|
    momentum: float = 0.0  # smoothed m

    def take(self, momentum: float) -> None:
        """Fold the passes seen since the last call into the smoothed figures."""
        if self.passes:
            self.magnitude = _smooth(self.magnitude, math.sqrt(self.sum_squares / self.passes))
        self.momentum = _smooth(self.momentum, momentum)
        self.sum_squares = 0.0
        self.passes = 0


@dataclass
class ValueBound:
    """The bound of one kept value, and the statistics of its content."""

    bound: float | None = None  # None until the first refresh
    nonzero_share: float = 0.0  # smoothed, as is std
    std: float = 0.0
    seen: Statistics | None = None  # of the last save


@dataclass
class Momentum:
    """What the solver knows of one layer's weights at a refresh."""

    mean: float  # mean momentum in units of the gradient; 0 where there is none
    sharers: int = 1  # layers that share these weights


def _smooth(old: float, new: float) -> float:
    if not math.isfinite(new):
        return old
    return new if old == 0 else old + SMOOTHING * (new - old)


@dataclass
class ErrorBounds:
    """Sets the bound of every value that is kept within one. Implements executor.BoundSource."""

    iter_size: int = 1
    values: dict[int, ValueBound] = field(default_factory=dict)  # by root value index
    gradients: dict[int, GradientStatistics] = field(default_factory=dict)  # by layer index
    collecting: bool = False  # in this iteration, at whose end the bounds are refreshed
    _use_mean_abs: dict[int, bool] = field(default_factory=dict)  # by layer index

    def reset(self) -> None:
        """Forget all bounds and statistics."""
        self.values.clear()
        self.gradients.clear()
        self._use_mean_abs.clear()

    def watch(self, saved_values: Iterable[SavedValue]) -> None:
        """Take note of the values to bound, once the plan is made."""
        for saved in saved_values:
            if saved.form != Form.BOUNDED:
                continue
            self.values.setdefault(saved.value.index, ValueBound())
            for reader in saved.readers:
                if _by_formula(reader):
                    self.gradients.setdefault(reader.layer, GradientStatistics())
                    self._use_mean_abs[reader.layer] = reader.compression.paper_a > 0

    # -- what the executor asks and tells ----------------------------------------------------------

    def bound(self, saved: SavedValue, tensor: Tensor, factor_of: FactorOf) -> float:
        """Absolute error bound for this value, about to be compressed."""
        state = self.values[saved.value.index]
        if state.bound is not None:
            return state.bound
        statistics = statistics_of(tensor)
        return min(
            _first_bound(reader, statistics, _factor(reader, factor_of)) for reader in saved.readers
        )

    def saw_stored(self, saved: SavedValue, stored: StoredActivation) -> None:
        """Keep the statistics that compressing gave."""
        self.values[saved.value.index].seen = stored.statistics

    def wants_gradient(self, layer: int) -> bool:
        """Whether this backward pass should measure the layer's output gradient."""
        return self.collecting and layer in self.gradients

    def saw_gradient(self, layer: int, gradient: Tensor, terms: int, batch: int) -> None:
        """Measure the output gradient of a layer whose weights learn."""
        statistics = self.gradients[layer]
        magnitude = gradient.mean_abs() if self._use_mean_abs[layer] else gradient.rms()
        statistics.sum_squares += magnitude * magnitude
        statistics.passes += 1
        statistics.terms = terms
        statistics.batch = batch

    # -- refresh -----------------------------------------------------------------------------------

    def refresh(
        self,
        saved_values: Iterable[SavedValue],
        momentum_of: Callable[[int], Momentum],
        factor_of: FactorOf,
    ) -> None:
        """Set every ADAPTIVE bound anew from what was seen since the last refresh.

        Args:
            saved_values: the plan's.
            momentum_of: layer index -> what the solver knows of its weights.
            factor_of: step of a recipe -> what it multiplies an error by.
        """
        saved_values = list(saved_values)
        sharers = {}
        for layer, statistics in self.gradients.items():
            momentum = momentum_of(layer)
            statistics.take(momentum.mean)
            sharers[layer] = momentum.sharers
        shares = self._budget_shares(saved_values)
        for saved in saved_values:
            if saved.form == Form.BOUNDED and any(map(_adaptive, saved.readers)):
                self._refresh_value(saved, sharers, factor_of, shares.get(saved.value.index, 1.0))

    def _budget_shares(self, saved_values: Sequence[SavedValue]) -> dict[int, float]:
        """Root value index -> what its sigma_factor is multiplied by, so that the net keeps least.

        The sum over the values of the squared factors stays what it is with one factor for all.
        Halving a bound costs a bit for each non-zero, so under that sum the bytes are least where
        a squared factor is in proportion to the value's non-zeros.
        """
        counts: dict[int, float] = {}
        for saved in saved_values:
            seen = self.values[saved.value.index].seen if saved.form == Form.BOUNDED else None
            readers = [reader for reader in saved.readers if _by_formula(reader)]
            if seen is not None and readers and readers[0].compression.budget:
                counts[saved.value.index] = float(seen.nonzeros)
        mean = sum(counts.values()) / max(len(counts), 1)
        return {index: math.sqrt(count / mean) for index, count in counts.items() if count > 0}

    def _refresh_value(
        self,
        saved: SavedValue,
        sharers: dict[int, int],
        factor_of: FactorOf,
        budget_share: float,
    ) -> None:
        state = self.values[saved.value.index]
        if state.seen is None or state.seen.nonzeros == 0:
            return  # nothing to go by: the old bound stays
        state.std = _smooth(state.std, nonzero_std(state.seen))
        share = state.seen.nonzeros / state.seen.count
        state.nonzero_share = _smooth(state.nonzero_share, share)
        bounds = [
            self._reader_bound(reader, state, sharers, _factor(reader, factor_of), budget_share)
            for reader in saved.readers
            if reader.quality != Quality.SIGN  # signs are exact whatever the bound
        ]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds) or not known:
            return  # a reader without statistics, or of signs alone: the old bound stays
        bound = max(min(known), LEAST_SHARE * state.std)
        if not math.isfinite(bound) or bound <= 0:
            return
        if state.bound is not None and state.bound > 0:
            bound = min(max(bound, state.bound / MOST_CHANGE), state.bound * MOST_CHANGE)
        state.bound = bound

    def _reader_bound(
        self,
        reader: BackwardReader,
        state: ValueBound,
        sharers: dict[int, int],
        factor: float,
        budget_share: float,
    ) -> float | None:
        compression = reader.compression
        if compression.mode == Compression.FIXED:
            assert state.seen is not None
            return _fixed_bound(reader, state.seen, factor)
        cap = _relative(reader, compression.bound_cap, state.std, factor)
        if reader.rule == BoundRule.NORMALISED:
            return cap
        if reader.rule == BoundRule.PROPAGATED:
            return cap / PROPAGATED_DIVISOR
        assert state.seen is not None
        share = read_share(reader, state.seen, state.nonzero_share)
        statistics = self.gradients[reader.layer]
        sigma = compression.sigma_factor * budget_share
        sigma *= statistics.momentum * math.sqrt(self.iter_size)
        sigma /= math.sqrt(sharers[reader.layer])
        if compression.paper_a > 0:
            bound = paper_bound(
                sigma,
                compression.paper_a,
                statistics.magnitude,
                statistics.batch,
                share,
            )
        else:
            bound = gradient_bound(sigma, statistics.magnitude, statistics.terms, share)
        return None if bound is None else min(bound / factor, cap)


def _fixed_bound(reader: BackwardReader, statistics: Statistics, factor: float) -> float:
    """Bound of the saved value that keeps error_bound in the value that the reader sees."""
    compression = reader.compression
    if compression.bound_type == Compression.ABS:
        return compression.error_bound / factor
    if compression.bound_type == Compression.STD:
        return _relative(reader, compression.error_bound, nonzero_std(statistics), factor)
    return fixed_bound(compression, statistics)


def _first_bound(reader: BackwardReader, statistics: Statistics, factor: float) -> float:
    """Bound of a value while no refresh has set one: ADAPTIVE begins within its cap."""
    compression = reader.compression
    if compression.mode != Compression.ADAPTIVE or compression.HasField("error_bound"):
        return _fixed_bound(reader, statistics, factor)
    share = compression.bound_cap / PROPAGATED_DIVISOR
    return _relative(reader, share, nonzero_std(statistics), factor)


def _relative(reader: BackwardReader, share: float, std: float, factor: float) -> float:
    """Bound that is this share of a std, which a value and what follows from it have alike.

    A normalised value that is worked out from a Scale's output has a std of 1 in each channel,
    where the output's std also has what the channels' offsets differ.
    """
    bound = share * std
    if reader.rule == BoundRule.NORMALISED and reader.path:
        bound = min(bound, share / factor)
    return bound


def _factor(reader: BackwardReader, factor_of: FactorOf) -> float:
    """Return what multiplies an error between the saved value and the one that is read."""
    return max(math.prod(factor_of(step) for step in reader.path), LEAST_SHARE)


def _adaptive(reader: BackwardReader) -> bool:
    return reader.compression.mode == Compression.ADAPTIVE


def _by_formula(reader: BackwardReader) -> bool:
    return _adaptive(reader) and reader.rule == BoundRule.GRADIENT


@dataclass
class RefreshSchedule:
    """When bounds are refreshed: after iterations 1, 2, 4, 8, ... and then every `interval`.

    After a step of the learning rate the momentum holds the old rate for a while: no refresh for
    3 / (1 - momentum) iterations, then one at once. Iterations count from 1.
    """

    interval: int
    next: int = 1
    last_rate: float | None = None

    def rate_is(self, iteration: int, rate: float, momentum: float) -> None:
        """Say which learning rate iteration `iteration` uses, before asking due()."""
        if self.last_rate is not None and _is_step(self.last_rate, rate):
            self.next = iteration + math.ceil(3 / max(1 - momentum, 1e-3))
        self.last_rate = rate

    def due(self, iteration: int) -> bool:
        """Whether bounds are refreshed at the end of this iteration."""
        return iteration >= self.next

    def done(self, iteration: int) -> None:
        """Plan the next refresh after the one of this iteration."""
        self.next = min(iteration * 2, iteration + self.interval)


def _is_step(old: float, new: float) -> bool:
    """Whether the rate jumps; policies that creep (inv, poly, exp) change it by little."""
    return new > 0 and (old <= 0 or abs(new / old - 1) > RATE_STEP)
