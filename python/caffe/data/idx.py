"""The idx format of MNIST and its relatives: read, and converted to LMDB."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.atomic_folder import staged
from caffe.data.datum import array_to_datum
from caffe.data.lmdb_writer import LmdbWriter
from caffe.progress import Progress

SETS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_UBYTE = 8


def read_idx(path: str | Path) -> npt.NDArray[np.uint8]:
    """Read an idx file of bytes, gzipped or not.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no idx file of bytes, or one that was cut off.
    """
    content = Path(path).read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"'{path}' is a damaged gzip file: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UBYTE or content[3] == 0:
        raise ValueError(f"'{path}' is no idx file of bytes")
    axes = content[3]
    header = 4 + 4 * axes
    shape = [
        int.from_bytes(content[i : i + 4], "big") for i in range(4, min(header, len(content)), 4)
    ]
    count = 1
    for size in shape:
        count *= size
    if len(content) != header + count:
        raise ValueError(
            f"'{path}' has {len(content)} bytes, its header asks for {header + count}; "
            "was it cut off?"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def find_idx(folder: str | Path, name: str) -> Path:
    """Return the file `name`, or `name`.gz, in `folder` or anywhere below it.

    Raises:
        FileNotFoundError: neither is there.
    """
    found = sorted(Path(folder).rglob(f"{name}*"))
    for path in found:
        if path.name in (name, f"{name}.gz"):
            return path
    raise FileNotFoundError(f"no file '{name}' or '{name}.gz' in '{folder}' or below it")


def idx_to_lmdb(images: str | Path, labels: str | Path, out: str | Path) -> int:
    """Convert a file of images (N x H x W) and one of labels (N) to an LMDB at `out`.

    Returns:
        The number of records.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or the output is there already.
        ValueError: the files are damaged or do not belong together.
    """
    pixels, classes = read_idx(images), read_idx(labels)
    if pixels.ndim != 3 or classes.shape != pixels.shape[:1]:
        raise ValueError(
            f"'{images}' has shape {pixels.shape} and '{labels}' {classes.shape}; needed are "
            "(N, height, width) and (N)"
        )
    with LmdbWriter(out) as writer, Progress(len(pixels), "images") as progress:
        for i in range(len(pixels)):
            progress.update(i)
            datum = array_to_datum(pixels[i : i + 1], int(classes[i]))
            writer.put(f"{i:08}", datum.SerializeToString())
    return len(pixels)


def convert_folder(source: str | Path, out: str | Path, name: str, overwrite: bool) -> list[Path]:
    """Convert the four idx files in `source` to <out>/<name>_train_lmdb and <name>_test_lmdb.

    Returns:
        The folders of the databases, training first.

    Raises:
        FileNotFoundError, FileExistsError, ValueError: see `idx_to_lmdb`.
    """
    names = [f"{name}_{part}_lmdb" for part in SETS]
    with staged(Path(out), names, overwrite) as part_folder:
        for made, (images, labels) in zip(names, SETS.values()):
            idx_to_lmdb(find_idx(source, images), find_idx(source, labels), part_folder / made)
    return [Path(out) / made for made in names]
