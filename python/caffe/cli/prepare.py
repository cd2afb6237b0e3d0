"""`caffe prepare`: databases of images, and means of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from caffe import prepare
from caffe.cli.common import OVERWRITE, image_size, no_arguments
from caffe.cli.flags import Flag, Flags, UsageError, parse
from caffe.names import suggestion

_SOURCE = Flag("source", "", "folder with the four idx files (.gz or not)")
USAGE = """caffe prepare WHAT FLAGS, where WHAT is
  fashion-mnist [-source FOLDER] [-out data/fashion_mnist] [-overwrite]
  idx           -source FOLDER -out FOLDER [-name mnist] [-overwrite]
  images        -root FOLDER -list FILE -out LMDB [-resize_height N -resize_width N] [-gray]
                [-shuffle] [-seed N] [-overwrite]
  mean          -source LMDB -out FILE.binaryproto"""
FLAGS: tuple[Flag, ...] = ()


class _Target(NamedTuple):
    run: Callable[[Flags], None]
    flags: tuple[Flag, ...]


def run_words(words: Sequence[str]) -> int:
    """Run `caffe prepare WHAT FLAGS`, given the words behind `prepare`.

    Raises:
        UsageError: a word or flag that is missing or unknown.
        ValueError, OSError, RuntimeError: what is wrong with the sources.
    """
    if not words or words[0].startswith("-"):
        raise UsageError(f"what shall be prepared? One of {', '.join(_TARGETS)}")
    what = words[0].replace("_", "-")
    if what not in _TARGETS:
        raise UsageError(f"cannot prepare '{words[0]}'{suggestion(what, _TARGETS)}")
    target = _TARGETS[what]
    flags = parse(words[1:], target.flags)
    no_arguments(flags)
    target.run(flags)
    return 0


def _needed(flags: Flags, *names: str) -> None:
    for name in names:
        if not flags.text(name):
            raise UsageError(f"flag -{name} is needed (caffe help prepare)")


def _fashion_mnist(flags: Flags) -> None:
    for path in prepare.fashion_mnist(
        flags.text("out"), flags.text("source") or None, flags.on("overwrite")
    ):
        print(path)


def _idx(flags: Flags) -> None:
    _needed(flags, "source", "out")
    for path in prepare.idx(
        flags.text("source"), flags.text("out"), flags.text("name"), flags.on("overwrite")
    ):
        print(path)


def _images(flags: Flags) -> None:
    _needed(flags, "root", "list", "out")
    count = prepare.images_to_lmdb(
        flags.text("root"),
        flags.text("list"),
        flags.text("out"),
        size=image_size(flags),
        gray=flags.on("gray"),
        shuffle_seed=flags.number("seed") if flags.on("shuffle") else None,
        overwrite=flags.on("overwrite"),
    )
    print(f"{flags.text('out')}: {count} images")


def _mean(flags: Flags) -> None:
    _needed(flags, "source", "out")
    prepare.mean(flags.text("source"), flags.text("out"))
    print(flags.text("out"))


_TARGETS = {
    "fashion-mnist": _Target(
        _fashion_mnist,
        (_SOURCE, Flag("out", "data/fashion_mnist", "folder of the databases"), OVERWRITE),
    ),
    "idx": _Target(
        _idx,
        (
            _SOURCE,
            Flag("out", "", "folder of the databases"),
            Flag("name", "mnist", "their names start with it"),
            OVERWRITE,
        ),
    ),
    "images": _Target(
        _images,
        (
            Flag("root", "", "folder that the list's paths are relative to"),
            Flag("list", "", "text file, one 'path label' a line"),
            Flag("out", "", "folder of the database"),
            Flag("resize_height", 0, "resize all images to this height"),
            Flag("resize_width", 0, "and to this width"),
            Flag("gray", False, "one channel"),
            Flag("shuffle", False, "shuffle the order"),
            Flag("seed", 1, "of the shuffle"),
            OVERWRITE,
        ),
    ),
    "mean": _Target(
        _mean,
        (
            Flag("source", "", "folder of an LMDB"),
            Flag("out", "", "the .binaryproto file to write"),
        ),
    ),
}
