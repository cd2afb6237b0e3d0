"""Making databases: the functions behind `caffe prepare` and `caffe convert_imageset`.

Of a set, all databases are there when it is done, or none. Images are decoded in several threads.
"""

from __future__ import annotations

import random
from pathlib import Path

from caffe.atomic_file import write_atomically
from caffe.atomic_folder import staged
from caffe.data import cifar10 as _cifar10
from caffe.data import dogs as _dogs
from caffe.data import fashion_mnist as _fashion_mnist
from caffe.data import imagenet as _imagenet
from caffe.data.class_folders import (
    LABELS_FILE,
    MEAN_FILE,
    Prepared,
    label_files,
    split,
    write_sets,
)
from caffe.data.idx import SETS, convert_folder
from caffe.data.image_list import read_lines
from caffe.data.image_records import ImageSetOptions
from caffe.data.image_set import convert_imageset, images_to_lmdb
from caffe.data.image_tree import open_tree
from caffe.data.lmdb_source import LmdbSource
from caffe.data.mean import MeanSum, compute_mean
from caffe.proto import caffe_pb2 as pb

__all__ = [
    "ImageSetOptions",
    "Prepared",
    "cifar10",
    "convert_imageset",
    "dogs",
    "fashion_mnist",
    "folder",
    "idx",
    "imagenet",
    "images_to_lmdb",
    "mean",
    "mnist",
    "write_mean",
]

#: What nets such as CaffeNet are trained on.
SQUARES = ImageSetOptions(size=(256, 256))


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


def mnist(source: str | Path, out: str | Path, overwrite: bool = False) -> list[Path]:
    """Make <out>/mnist_train_lmdb and mnist_test_lmdb; see idx()."""
    return idx(source, out, "mnist", overwrite)


def cifar10(source: str | Path, out: str | Path, overwrite: bool = False) -> Prepared:
    """Make <out>/cifar10_train_lmdb, cifar10_test_lmdb, mean.binaryproto and labels.txt.

    As in BVLC Caffe, the channels are in the order of the files: red, green, blue.

    Args:
        source: cifar-10-binary.tar.gz, or a folder with its files.
        out: folder of what is made.
        overwrite: replace what is there.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or an output is there already.
        ValueError: damaged files, or the pickled ones for Python.
    """
    target, result = Path(out), Prepared(classes=_cifar10.CLASSES)
    names = {part: f"cifar10_{part}_lmdb" for part in _cifar10.SETS}
    files = [*names.values(), MEAN_FILE, LABELS_FILE]
    with staged(target, files, overwrite) as folder:
        content = _cifar10.read_files(source)
        total = MeanSum()
        for part, name in names.items():
            added = total if part == "train" else None
            count = _cifar10.write_set(content, part, folder / name, added)
            result.databases[target / name] = count
        write_atomically(folder / MEAN_FILE, total.blob().SerializeToString())
        if _cifar10.LABELS in content:
            lines = content[_cifar10.LABELS].decode(errors="replace").split()
            write_atomically(folder / LABELS_FILE, "".join(f"{x}\n" for x in lines).encode())
        result.files = [target / name for name in files if (folder / name).exists()]
    return result


def folder(
    source: str | Path,
    out: str | Path,
    *,
    options: ImageSetOptions = SQUARES,
    train_share: float = 0.85,
    seed: int = 1,
    labels: str | Path | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> Prepared:
    """Make <out>/train_lmdb, val_lmdb, mean.binaryproto and labels.txt from a folder a class.

    Args:
        source: folder with a folder for each class; images may lie in folders below that.
        out: folder of what is made.
        options: what becomes of the images; 256x256 in colour by default.
        train_share: of each class to train on, drawn at random; 1 makes no val_lmdb.
        seed: of the draw, and of the order in train_lmdb.
        labels: a file with a class's folder a line, in the order of their labels; by default, the
            classes are sorted.
        strict: fail where something would be left out.
        overwrite: replace what is there.

    Returns:
        What was made, and what was left out.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or an output is there already.
        ValueError: there are no classes or no images; if strict, anything that would be left out.
    """
    with open_tree(source) as tree:
        names = None if labels is None else [line for _, line in read_lines(labels)]
        classes = label_files(tree, names)
        train, val = split(classes, train_share, seed)
        sets = {"train_lmdb": (tree, train)}
        if val:
            sets["val_lmdb"] = (tree, val)
        return write_sets(
            Path(out),
            sets,
            classes.names,
            classes.skipped,
            options,
            strict=strict,
            overwrite=overwrite,
        )


def dogs(
    source: str | Path,
    out: str | Path,
    *,
    options: ImageSetOptions = SQUARES,
    train_share: float = 0.85,
    seed: int = 1,
    train_list: str | Path | None = None,
    test_list: str | Path | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> Prepared:
    """Make <out>/train_lmdb, val_lmdb, mean.binaryproto and labels.txt from Stanford Dogs.

    Args:
        source: images.tar, or a folder with what it holds.
        out: folder of what is made; models/caffenet_dogs reads data/dogs.
        options: what becomes of the images; 256x256 in colour by default.
        train_share: of each class to train on, drawn at random.
        seed: of the draw, and of the order in train_lmdb.
        train_list, test_list: the official split instead: train_list.mat and test_list.mat (needs
            scipy), or text files with a path a line.
        strict: fail where something would be left out, or there are not 120 classes.
        overwrite: replace what is there.

    Returns:
        What was made, and what was left out.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or an output is there already.
        ImportError: a .mat file, and scipy is not installed.
        ValueError: there are no classes or no images, or bad lists; if strict, anything that would
            be left out.
    """
    if (train_list is None) != (test_list is None):
        raise ValueError("give both train_list and test_list, or neither")
    with open_tree(source, _dogs.IMAGES) as tree:
        classes = label_files(tree)
        if len(classes.names) != _dogs.CLASSES:
            classes.skipped.append(
                f"{_dogs.CLASSES - len(classes.names)} classes: '{tree.root}' has "
                f"{len(classes.names)}, Stanford Dogs {_dogs.CLASSES}"
            )
        if train_list is not None and test_list is not None:
            train, val = _dogs.by_lists(tree, classes, train_list, test_list)
            random.Random(seed).shuffle(train)
        else:
            train, val = split(classes, train_share, seed)
        sets = {"train_lmdb": (tree, train), "val_lmdb": (tree, val)}
        return write_sets(
            Path(out),
            sets,
            classes.names,
            classes.skipped,
            options,
            strict=strict,
            overwrite=overwrite,
        )


def imagenet(
    train: str | Path,
    val: str | Path,
    out: str | Path,
    *,
    val_list: str | Path | None = None,
    synset_words: str | Path | None = None,
    ids: str | Path = "",
    options: ImageSetOptions = SQUARES,
    seed: int = 1,
    strict: bool = False,
    overwrite: bool = False,
) -> Prepared:
    """Make <out>/ilsvrc12_train_lmdb, ilsvrc12_val_lmdb, mean.binaryproto and labels.txt.

    Args:
        train: folder with a folder for each synset, or ILSVRC2012_img_train.tar, a tar of tars.
        val: the images of val, in a folder or ILSVRC2012_img_val.tar.
        out: folder of what is made; the nets in models read examples/imagenet.
        val_list: labels of val, see `caffe.data.imagenet.label_validation`; without it, they lie in
            folders of their synsets.
        synset_words: lines "n01440764 tench", in the order of the labels; by default, the synsets
            are sorted, which is Caffe's order too.
        ids: what the ids in a val_list of the development kit mean: its meta.mat (needs scipy), or
            a text file with the synset of id 1, 2 and so on.
        options: what becomes of the images; 256x256 in colour by default.
        seed: of the order in the training database.
        strict: fail where something would be left out.
        overwrite: replace what is there.

    Returns:
        What was made, and what was left out.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or an output is there already.
        ImportError: a .mat file, and scipy is not installed.
        ValueError: there are no classes or no images, or bad lists; if strict, anything that would
            be left out.
    """
    words = None if synset_words is None else _imagenet.read_words(synset_words)
    with open_tree(train) as train_tree, open_tree(val) as val_tree:
        classes = label_files(train_tree, None if words is None else list(words))
        if val_list is None:
            labelled = label_files(val_tree, classes.names)
            entries, skipped = labelled.entries, labelled.skipped
        else:
            entries, skipped = _imagenet.label_validation(val_tree, val_list, classes.names, ids)
            skipped = [*val_tree.skipped, *skipped]
        shuffled = list(classes.entries)
        random.Random(seed).shuffle(shuffled)
        sets = {
            "ilsvrc12_train_lmdb": (train_tree, shuffled),
            "ilsvrc12_val_lmdb": (val_tree, entries),
        }
        return write_sets(
            Path(out),
            sets,
            classes.names if words is None else list(words.values()),
            [*classes.skipped, *skipped],
            options,
            strict=strict,
            overwrite=overwrite,
        )


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
