"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None where none is alike.

    Case counts for nothing: `convolution` finds `Convolution`.
    """
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.lower().replace("_", ""), candidate)
    wanted = name.lower().replace("_", "")
    if wanted in folded:
        return folded[wanted]
    found = difflib.get_close_matches(wanted, list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def suggestion(name: str, known: Iterable[str], most: int = 12) -> str:
    """Return the tail of an error message about an unknown `name`.

    The nearest known name is offered; where none is near, all of them if they are at most `most`.

    Returns:
        "; did you mean 'x'?", "; known: a, b, c" or "".
    """
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"; did you mean '{near}'?"
    if 0 < len(names) <= most:
        return f"; known: {', '.join(names)}"
    return ""
