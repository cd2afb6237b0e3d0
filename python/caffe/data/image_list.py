"""Lists of image files with labels, one a line."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_MAX_INT32 = 2**31 - 1


class Entry(NamedTuple):
    """One line of a list: path as written, label, and the line's number."""

    path: str
    label: int
    line: int


def read_image_list(path: str | Path) -> list[Entry]:
    """Read lines "path label"; the path may hold blanks, and trailing blanks do no harm.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a line without an integer label, or no lines at all.
    """
    entries = []
    for number, line in read_lines(path):
        parts = line.rsplit(maxsplit=1)
        try:
            name, label = parts[0], int(parts[1])
        except (IndexError, ValueError):
            raise ValueError(
                f"{path}:{number}: expected 'path label' with an integer label, got '{line}'"
            ) from None
        if abs(label) > _MAX_INT32:
            raise ValueError(f"{path}:{number}: label {label} is no 32-bit integer")
        entries.append(Entry(name, label, number))
    return entries


def read_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return the lines of a list that are not empty, without blanks around, and their numbers.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no such lines.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"list of images '{path}' does not exist")
    # Windows' editors begin files with a mark of UTF-8. Names may hold what splitlines() splits at.
    text = Path(path).read_text(encoding="utf-8-sig", errors="surrogateescape")
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line]
    if not lines:
        raise ValueError(f"list of images '{path}' is empty")
    return lines
