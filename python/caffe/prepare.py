"""Making databases: the functions behind `caffe prepare` and `caffe convert_imageset`."""

from __future__ import annotations

from pathlib import Path

from caffe.atomic_file import write_atomically
from caffe.data import fashion_mnist as _fashion_mnist
from caffe.data.idx import SETS, convert_folder
from caffe.data.image_records import ImageSetOptions
from caffe.data.image_set import convert_imageset, images_to_lmdb
from caffe.data.lmdb_source import LmdbSource
from caffe.data.mean import compute_mean
from caffe.proto import caffe_pb2 as pb

__all__ = [
    "ImageSetOptions",
    "convert_imageset",
    "fashion_mnist",
    "idx",
    "images_to_lmdb",
    "mean",
    "write_mean",
]


def fashion_mnist(
    out: str | Path, source: str | Path | None = None, overwrite: bool = False
) -> list[Path]:
    """Make <out>/fashion_mnist_train_lmdb (60,000 images) and fashion_mnist_test_lmdb (10,000).

    Args:
        out: folder of both databases; made where missing. Databases that are there stay.
        source: folder with the four idx files; without it, Debian's package, fetched if need be.
        overwrite: make databases that are there anew.

    Returns:
        The folders of the databases, training first.

    Raises:
        FileNotFoundError: the images cannot be found or fetched.
        RuntimeError: fetching failed.
        ValueError: damaged files.
    """
    targets = [Path(out) / f"fashion_mnist_{part}_lmdb" for part in SETS]
    if not overwrite and all(target.exists() for target in targets):
        for target in targets:
            LmdbSource(target).close()
        return targets
    return convert_folder(_fashion_mnist.find_source(source), out, "fashion_mnist", True)


def idx(source: str | Path, out: str | Path, name: str, overwrite: bool = False) -> list[Path]:
    """Make <out>/<name>_train_lmdb and <name>_test_lmdb from the four idx files in `source`.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or an output is there already.
        ValueError: damaged files.
    """
    return convert_folder(source, out, name, overwrite)


def mean(source: str | Path, out: str | Path, backend: str = "lmdb") -> None:
    """Write the mean of a database's images to the .binaryproto file `out`.

    Args:
        source: the database.
        out: the file; its folder is made where missing.
        backend: kind of database, lmdb or leveldb.

    Raises:
        FileNotFoundError: no database at `source`.
        ImportError: a LevelDB, and plyvel is not installed.
        ValueError: a damaged database, or images of several sizes.
    """
    write_mean(compute_mean(source, backend), out)


def write_mean(mean: pb.BlobProto, out: str | Path) -> None:
    """Write a mean to the .binaryproto file `out`. OSError where that fails."""
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, mean.SerializeToString())
