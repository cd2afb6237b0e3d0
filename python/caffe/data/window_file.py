"""Window files: images, and the boxes in each that a detector is trained on.

    # <number of the image>
    <path>
    <channels>
    <height>
    <width>
    <number of windows>
    <class> <overlap> <x1> <y1> <x2> <y2>      one line a window; the corners belong to it

A window overlaps an object of its class by `overlap`, 0 to 1. Empty lines do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

_COLUMNS = 6
_KINDS = (1, 3)  # channels that images are decoded to


class WindowImage(NamedTuple):
    """One image of a window file, and the line that names it."""

    path: str
    shape: tuple[int, int, int]  # channels, height, width
    line: int


class Windows(NamedTuple):
    """Windows, one a row."""

    image: IntArray  # number of its image
    label: IntArray
    boxes: IntArray  # N x 4: x1, y1, x2, y2

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.image)


class WindowFile:
    """The content of a window file.

    Args:
        path: the file.
        fg_threshold: windows that overlap by this or more are foreground.
        bg_threshold: of the others, those that overlap by less are background, with label 0.

    Attributes:
        images: by number.
        foreground, background: the windows of either kind.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a line that is no such thing, a window outside its image, foreground without a
            class, or images of several numbers of channels; with the line's number.
    """

    def __init__(self, path: str | Path, fg_threshold: float, bg_threshold: float) -> None:
        """Read the file; see the class."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"window file '{path}' does not exist")
        self._path = path
        self._lines = _Lines(path)
        self.images: list[WindowImage] = []
        tables, owners = [], []
        while self._lines.more():
            image, table = self._read_image(fg_threshold)
            owners.append(np.full(len(table), len(self.images), np.int64))
            tables.append(table)
            self.images.append(image)
        if not self.images:
            raise ValueError(f"window file '{path}' is empty")
        table, owner = np.concatenate(tables), np.concatenate(owners)
        # Thresholds are float32 in the options; so is what is compared with them.
        overlap = table[:, 1].astype(np.float32)
        front = overlap >= np.float32(fg_threshold)
        back = ~front & (overlap < np.float32(bg_threshold))
        whole = table.astype(np.int64)
        self.foreground = Windows(owner[front], whole[front, 0], whole[front, 2:])
        self.background = Windows(owner[back], np.zeros(back.sum(), np.int64), whole[back, 2:])

    def _read_image(self, fg_threshold: float) -> tuple[WindowImage, npt.NDArray[np.float64]]:
        head = self._lines.take("a line '# NUMBER'")
        if not head.startswith("#"):
            raise self._lines.error("a line '# NUMBER', which begins an image", head)
        path = self._lines.take("the path of an image")
        line = self._lines.number
        channels, height, width = (
            self._lines.whole(what, 1) for what in ("channels", "height", "width")
        )
        image = WindowImage(path, (channels, height, width), line)
        if channels not in _KINDS or channels != (self.images or [image])[0].shape[0]:
            raise ValueError(
                f"{self._path}:{line}: image '{path}' has {channels} channels; needed are 1 or 3, "
                "the same for all images"
            )
        count = self._lines.whole("the number of windows", 0)
        rows = [(self._lines.take("a window"), self._lines.number) for _ in range(count)]
        table = self._table(rows)
        self._check(table, image, [number for _, number in rows], fg_threshold)
        return image, table

    def _table(self, rows: list[tuple[str, int]]) -> npt.NDArray[np.float64]:
        """Return the numbers in these lines, given with their own numbers."""
        cells = [row.split() for row, _ in rows]
        try:
            table = np.array(cells, dtype=np.float64).reshape(len(rows), _COLUMNS)
        except ValueError:
            for row, line in rows:
                if len(row.split()) != _COLUMNS or not all(map(_is_number, row.split())):
                    raise ValueError(
                        f"{self._path}:{line}: expected 'class overlap x1 y1 x2 y2', got '{row}'"
                    ) from None
            raise
        return table

    def _check(
        self,
        table: npt.NDArray[np.float64],
        image: WindowImage,
        lines: list[int],
        fg_threshold: float,
    ) -> None:
        _, height, width = image.shape
        label, overlap, x1, y1, x2, y2 = table.T
        inside = (x1 >= 0) & (x1 <= x2) & (x2 < width) & (y1 >= 0) & (y1 <= y2) & (y2 < height)
        faults = {
            "class and corners need to be whole numbers": np.any(
                table[:, [0, 2, 3, 4, 5]] % 1 != 0, axis=1
            ),
            f"the window does not lie in its image, {height} high and {width} wide": ~inside,
            "a window of the foreground needs a class of 1 or more": (
                (overlap.astype(np.float32) >= np.float32(fg_threshold)) & (label < 1)
            ),
        }
        for fault, found in faults.items():
            if found.any():
                row = int(np.argmax(found))
                numbers = " ".join(f"{number:g}" for number in table[row])
                raise ValueError(f"{self._path}:{lines[row]}: {fault}: '{numbers}'")


class _Lines:
    """The lines of a file that are not empty, one after the other."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        text = Path(path).read_bytes().decode("utf-8-sig", "surrogateescape")
        self._rest = self._filled(text)
        self._next = next(self._rest, None)
        self.number = 0  # of the line that was taken last

    @staticmethod
    def _filled(text: str) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, line.strip()

    def more(self) -> bool:
        return self._next is not None

    def take(self, what: str) -> str:
        """Return the next line; ValueError, with what was expected, where the file ends."""
        if self._next is None:
            raise ValueError(f"{self._path}: ends after line {self.number}, before {what}")
        self.number, line = self._next
        self._next = next(self._rest, None)
        return line

    def whole(self, what: str, least: int) -> int:
        """Return the whole number in the next line; ValueError unless it is `least` or more."""
        line = self.take(what)
        if not line.isdecimal() or int(line) < least:
            raise self.error(f"{what}, a whole number of {least} or more", line)
        return int(line)

    def error(self, expected: str, line: str) -> ValueError:
        return ValueError(f"{self._path}:{self.number}: expected {expected}, got '{line}'")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
