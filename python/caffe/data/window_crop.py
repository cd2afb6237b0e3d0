"""Where a window of an image comes to lie in the square that a net sees.

With context the window is widened around its centre, so that in the square `pad` pixels on each
side are context; square windows are first widened to the longer of their sides. What then lies
outside of the image is left empty in the square. Each axis by itself, with half the side h:

    first, last = round(centre -+ h s),  s = crop / (crop - 2 pad)
    offset      = round(pixels before the image * crop / (last - first + 1))
    size        = round(pixels inside the image * crop / (last - first + 1)),  at most crop - offset
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """One axis: pixels first..last of the image become `size` pixels from `offset` on."""

    first: int
    last: int
    size: int
    offset: int


def place(
    box: Sequence[int],
    height: int,
    width: int,
    crop: int,
    pad: int = 0,
    square: bool = False,
    mirror: bool = False,
) -> tuple[Span, Span]:
    """Return the spans of a window, vertical and horizontal.

    Args:
        box: x1, y1, x2, y2 in the image; the corners belong to it.
        height: of the image.
        width: of the image.
        crop: side of the square; more than 2 * pad.
        pad: context on each side, in pixels of the square.
        square: keep the proportions of what is seen.
        mirror: what is seen will be mirrored, so the empty parts left and right change places.
    """
    x1, y1, x2, y2 = (int(corner) for corner in box)
    if not pad and not square:
        return Span(y1, y2, crop, 0), Span(x1, x2, crop, 0)
    halves = ((y2 - y1 + 1) / 2, (x2 - x1 + 1) / 2)
    if square:
        halves = (max(halves), max(halves))
    scale = crop / (crop - 2 * pad)
    rows = _span(y1 + (y2 - y1 + 1) / 2, halves[0] * scale, height, crop, False)
    columns = _span(x1 + (x2 - x1 + 1) / 2, halves[1] * scale, width, crop, mirror)
    return rows, columns


def _span(centre: float, half: float, length: int, crop: int, mirror: bool) -> Span:
    first, last = _round(centre - half), _round(centre + half)
    ratio = crop / (last - first + 1)
    before, after = max(0, -first), max(0, last - length + 1)
    first, last = first + before, last - after
    # Rounding must leave room for one pixel at least, however little of the image is seen.
    offset = min(_round((after if mirror else before) * ratio), crop - 1)
    size = max(1, min(_round((last - first + 1) * ratio), crop - offset))
    return Span(first, last, size, offset)


def _round(value: float) -> int:
    """Round halves away from zero, as C does."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))
