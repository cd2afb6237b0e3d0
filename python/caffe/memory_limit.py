"""Sizes of memory as people write them."""

from __future__ import annotations

import math
import re

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_LIMIT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def parse_limit(text: str) -> int:
    """Return the bytes that "2G", "1.5 GiB", "800M" or "100000" mean; units are powers of 1024.

    Raises ValueError for anything else, and for 0.
    """
    match = _LIMIT.fullmatch(text)
    size = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if not 1 <= size < math.inf:
        raise ValueError(
            f"memory_limit is '{text}', needs to be a size such as 2G, 800M or 1.5 GiB"
        )
    return int(size)
