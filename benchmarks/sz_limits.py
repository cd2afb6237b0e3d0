"""Bits that no coder of a class can go below: the yardstick of sz_bench.py beside the rivals.

The class is that of coders which take one quantised code after the other and know how often each
occurs, in each of a few contexts. Its limit is the number of values times the entropy of the codes,
given the context, plus the cost of saying those frequencies, without which a limit of many contexts
would be too low for few values: (distinct codes - 1) / 2 * log2(values) bits a context (Rissanen,
1986: what any code for an unknown distribution pays).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

MOST_CODES = 1 << 20  # range of codes that is still counted in a table
CONTEXT_CODE = 3  # a neighbour's |code| from here on is one context; with its sign, two


@dataclass(frozen=True)
class Limit:
    """Bits for all values of one array, of the best coder of each class."""

    order0: float  # no context
    order1: float  # 16 contexts: size of the codes to the left and above, 0, 1, 2 or more
    signed: float  # 49 contexts: the same with their signs
    predicted: float  # codes less what their neighbours predict, in 16 contexts of such differences

    @property
    def bits(self) -> float:
        """The limit that has a target: of order 0 and 1."""
        return min(self.order0, self.order1)

    @property
    def strict_bits(self) -> float:
        """The lowest of all, with signs and prediction."""
        return min(self.bits, self.signed, self.predicted)


def codes(values: np.ndarray, bound: float) -> np.ndarray:
    """Return round(value / 2 bound), which is exact within the bound."""
    return np.rint(values / np.float64(2 * bound)).astype(np.int32)


def sign_codes(values: np.ndarray, bound: float) -> np.ndarray:
    """Return codes that keep the sign: sign * ceil(|value| / 2 bound)."""
    scaled = np.ceil(np.abs(values / np.float64(2 * bound)))
    return (np.sign(values) * scaled).astype(np.int32)


def limit(coded: np.ndarray) -> Limit:
    """Return the limits for an array of codes; neighbours are those in the last two axes.

    Raises:
        ValueError: the codes span more than MOST_CODES.
    """
    planes = coded.reshape(-1, *coded.shape[-2:])
    return Limit(
        order0=conditional_bits(planes, np.zeros_like(planes)),
        order1=conditional_bits(planes, _sizes_around(planes)),
        signed=conditional_bits(planes, _signs_around(planes)),
        predicted=min(conditional_bits(d, _sizes_around(d)) for d in _differences(planes)),
    )


def conditional_bits(symbols: np.ndarray, contexts: np.ndarray) -> float:
    """Return count * H(symbol | context) + cost of the frequencies, in bits.

    Args:
        symbols: integers.
        contexts: integers from 0, of the same shape.
    """
    low = int(symbols.min())
    size = int(symbols.max()) - low + 1
    if size > MOST_CODES:
        raise ValueError(f"codes span {size} values, the limit counts {MOST_CODES} at most")
    cells = (contexts.astype(np.int64) * size + (symbols - low)).ravel()
    counts = np.bincount(cells)
    counts = np.pad(counts, (0, -len(counts) % size)).reshape(-1, size).astype(np.float64)
    totals = counts.sum(axis=1)
    used = totals > 0
    entropy = (_x_log2(totals) - _x_log2(counts).sum(axis=1)).sum()
    distinct = (counts > 0).sum(axis=1)
    table = ((distinct[used] - 1) / 2 * np.log2(totals[used])).sum()
    return float(entropy + table)


def _sizes_around(planes: np.ndarray) -> np.ndarray:
    """Return 4 * min(|left|, 3) + min(|above|, 3)."""
    size = np.minimum(np.abs(planes), CONTEXT_CODE).astype(np.int8)
    return (CONTEXT_CODE + 1) * _left(size) + _above(size)


def _signs_around(planes: np.ndarray) -> np.ndarray:
    """Return 7 * left + above, both cut to -3 .. 3, shifted to start from 0."""
    cut = np.clip(planes, -CONTEXT_CODE, CONTEXT_CODE).astype(np.int8)
    base = 2 * CONTEXT_CODE + 1
    return base * (_left(cut) + CONTEXT_CODE) + _above(cut) + CONTEXT_CODE


def _differences(planes: np.ndarray) -> Iterator[np.ndarray]:
    """Give the codes less the one above, and less the median of left, above and their plane.

    The median is the predictor of LOCO-I (Weinberger, Seroussi and Sapiro, 2000).
    """
    left, above = _left(planes), _above(planes)
    yield planes - above
    plane = left + above - _left(above)
    low, high = np.minimum(left, above), np.maximum(left, above)
    yield planes - np.clip(plane, low, high)


def _left(planes: np.ndarray) -> np.ndarray:
    """Return each code's neighbour to the left; outside a plane all is 0."""
    result = np.zeros_like(planes)
    result[..., 1:] = planes[..., :-1]
    return result


def _above(planes: np.ndarray) -> np.ndarray:
    """Return each code's neighbour above; outside a plane all is 0."""
    result = np.zeros_like(planes)
    result[..., 1:, :] = planes[..., :-1, :]
    return result


def _x_log2(x: np.ndarray) -> np.ndarray:
    return x * np.log2(np.maximum(x, 1))
