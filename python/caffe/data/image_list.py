"""Lists of image files with labels, one a line, and their conversion to LMDB."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from caffe.data.datum import array_to_datum, decode_image
from caffe.data.lmdb_writer import LmdbWriter

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
    if not Path(path).is_file():
        raise FileNotFoundError(f"list of images '{path}' does not exist")
    entries = []
    text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        parts = line.strip().rsplit(maxsplit=1)
        try:
            name, label = parts[0], int(parts[1])
        except (IndexError, ValueError):
            raise ValueError(
                f"{path}:{number}: expected 'path label' with an integer label, "
                f"got '{line.strip()}'"
            ) from None
        if abs(label) > _MAX_INT32:
            raise ValueError(f"{path}:{number}: label {label} is no 32-bit integer")
        entries.append(Entry(name, label, number))
    if not entries:
        raise ValueError(f"list of images '{path}' is empty")
    return entries


def images_to_lmdb(
    root: str | Path,
    list_file: str | Path,
    out: str | Path,
    *,
    size: tuple[int, int] | None = None,
    gray: bool = False,
    shuffle_seed: int | None = None,
    overwrite: bool = False,
) -> int:
    """Decode the images that `list_file` names and write them to an LMDB at `out`.

    Args:
        root: folder that the paths are relative to.
        list_file: see `read_image_list`.
        out: folder of the database.
        size: (height, width) to resize to; without it, all images must be of one size.
        gray: one channel instead of three.
        shuffle_seed: shuffle the order with this seed; None keeps it.
        overwrite: replace a database that is there.

    Returns:
        The number of records.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or the output is there already.
        ValueError: a bad line, an unreadable image, or sizes that differ.
    """
    entries = read_image_list(list_file)
    if shuffle_seed is not None:
        random.Random(shuffle_seed).shuffle(entries)
    first: tuple[int, ...] | None = None
    with LmdbWriter(out, overwrite) as writer:
        for i, entry in enumerate(entries):
            where = f"{list_file}:{entry.line}: '{entry.path}'"
            pixels = _load(Path(root) / entry.path, where, size, gray)
            if first is None:
                first = pixels.shape
            elif pixels.shape != first:
                raise ValueError(
                    f"{where} is {pixels.shape[1]}x{pixels.shape[2]}, the first image "
                    f"{first[1]}x{first[2]}; resize them to one size"
                )
            datum = array_to_datum(pixels, entry.label)
            writer.put(
                f"{i:08}_{entry.path}".encode(errors="surrogateescape")[:511],
                datum.SerializeToString(),
            )
    return len(entries)


def _load(
    path: Path, where: str, size: tuple[int, int] | None, gray: bool
) -> npt.NDArray[np.uint8]:
    try:
        pixels = decode_image(path.read_bytes(), force_color=not gray, force_gray=gray)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{where} does not exist below the root folder") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    if size is None or pixels.shape[1:] == size:
        return pixels
    channels = [
        np.asarray(Image.fromarray(channel).resize((size[1], size[0]), Image.Resampling.BILINEAR))
        for channel in pixels
    ]
    return np.stack(channels)
