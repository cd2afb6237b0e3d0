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
CONTEXT_CODE = 3  # a neighbour's |code| from here on is one context


@dataclass(frozen=True)
class Limit:
    """Bits for all values of one array, of the best coder of each class."""

    order0: float  # no context
    order1: float  # 16 contexts: size of the codes to the left and above, 0, 1, 2 or more
    predicted: float  # codes less a neighbour's, in the same contexts of such differences

    @property
    def bits(self) -> float:
        """The limit that sz_bench.py compares with: without prediction."""
        return min(self.order0, self.order1)

    @property
    def strict_bits(self) -> float:
        """The lowest of the three."""
        return min(self.bits, self.predicted)


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
        order1=conditional_bits(planes, _contexts(planes)),
        predicted=min(conditional_bits(d, _contexts(d)) for d in _differences(planes)),
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


def _contexts(planes: np.ndarray) -> np.ndarray:
    """Return 4 * min(|left|, 3) + min(|above|, 3); outside a plane all is 0."""
    size = np.minimum(np.abs(planes), CONTEXT_CODE).astype(np.int8)
    result = np.zeros_like(size)
    result[..., 1:] += (CONTEXT_CODE + 1) * size[..., :-1]
    result[..., 1:, :] += size[..., :-1, :]
    return result


def _differences(planes: np.ndarray) -> Iterator[np.ndarray]:
    """Give the codes less the one to the left, the one above, and the plane through both."""
    above = planes.copy()
    above[..., 1:, :] -= planes[..., :-1, :]
    yield above
    left = planes.copy()
    left[..., 1:] -= planes[..., :-1]
    yield left
    both = above.copy()
    both[..., 1:] -= above[..., :-1]
    yield both


def _x_log2(x: np.ndarray) -> np.ndarray:
    return x * np.log2(np.maximum(x, 1))
