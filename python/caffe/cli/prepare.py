"""`caffe prepare`: databases of images, and means of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from caffe import prepare
from caffe.cli.common import OVERWRITE, STRICT, image_size, report_skipped
from caffe.cli.flags import Flag, Flags, UsageError, parse
from caffe.data.class_folders import Prepared
from caffe.names import suggestion

USAGE = """caffe prepare WHAT FLAGS, where WHAT is
  dogs          IMAGES_TAR_OR_FOLDER [data/dogs] [-train_list FILE -test_list FILE]
                [-train_share 0.85] [-seed N] IMAGE_FLAGS
  imagenet      TRAIN VAL [examples/imagenet] [-val_list FILE] [-synset_words FILE]
                [-ids FILE] [-seed N] IMAGE_FLAGS
  folder        FOLDER OUT [-labels FILE] [-train_share 0.85] [-seed N] IMAGE_FLAGS
  cifar10       TAR_OR_FOLDER [data/cifar10] [-overwrite]
  mnist         FOLDER [data/mnist] [-overwrite]
  fashion-mnist [-source FOLDER] [-out data/fashion_mnist] [-overwrite]
  idx           FOLDER OUT [-name mnist] [-overwrite]
  images        -root FOLDER -list FILE -out LMDB [-resize_height N -resize_width N] [-gray]
                [-shuffle] [-seed N] [-overwrite]
  mean          LMDB FILE.binaryproto
and IMAGE_FLAGS are [-size 256] [-gray] [-encode_type jpg] [-strict] [-overwrite]"""
FLAGS: tuple[Flag, ...] = ()

_OUT = Flag("out", "", "folder of the databases")
_SEED = Flag("seed", 1, "of all that is drawn at random")
_SHARE = Flag("train_share", 0.85, "of each class to train on")
_IMAGES = (
    Flag("size", "256", "of the images: N, or HEIGHTxWIDTH"),
    Flag("gray", False, "one channel"),
    Flag("encode_type", "", "store files of this format (jpg, png) rather than pixels"),
    STRICT,
    OVERWRITE,
)


class _Target(NamedTuple):
    """One thing to prepare.

    Attributes:
        run: does it.
        places: the flags that words without a dash stand for, in their order.
        flags: all flags.
        needed: those that need a value.
    """

    run: Callable[[Flags], None]
    places: tuple[str, ...]
    flags: tuple[Flag, ...]
    needed: tuple[str, ...]


def run_words(words: Sequence[str]) -> int:
    """Run `caffe prepare WHAT FLAGS`, given the words behind `prepare`.

    Raises:
        UsageError: a word or flag that is missing or unknown.
        ValueError, OSError, RuntimeError, ImportError: what is wrong with the sources.
    """
    if not words or words[0].startswith("-"):
        raise UsageError(f"what shall be prepared? One of {', '.join(_TARGETS)}")
    what = words[0].replace("_", "-")
    if what not in _TARGETS:
        raise UsageError(f"cannot prepare '{words[0]}'{suggestion(what, _TARGETS)}")
    target = _TARGETS[what]
    flags = parse(words[1:], target.flags)
    free = [name for name in target.places if name not in flags.given]
    if len(flags.arguments) > len(free):
        raise UsageError(f"unexpected argument '{flags.arguments[len(free)]}' (caffe help prepare)")
    flags.values.update(zip(free, flags.arguments))
    for name in target.needed:
        if not flags.text(name):
            raise UsageError(f"flag -{name} is needed (caffe help prepare)")
    target.run(flags)
    return 0


def _options(flags: Flags) -> prepare.ImageSetOptions:
    sides = flags.text("size").lower().split("x")
    if len(sides) > 2 or not all(side.isdecimal() and int(side) for side in sides):
        raise UsageError(f"flag -size is '{flags.text('size')}', needs N or HEIGHTxWIDTH")
    return prepare.ImageSetOptions(
        size=(int(sides[0]), int(sides[-1])),
        gray=flags.on("gray"),
        encoded=bool(flags.text("encode_type")),
        encode_type=flags.text("encode_type"),
    )


def _share(flags: Flags) -> float:
    value = flags.values["train_share"]
    assert isinstance(value, float)
    return value


def _report(done: Prepared) -> None:
    report_skipped(done.skipped, sum(done.databases.values()) + len(done.skipped))
    for line in done.summary():
        print(line)


def _dogs(flags: Flags) -> None:
    _report(
        prepare.dogs(
            flags.text("source"),
            flags.text("out"),
            options=_options(flags),
            train_share=_share(flags),
            seed=flags.number("seed"),
            train_list=flags.text("train_list") or None,
            test_list=flags.text("test_list") or None,
            strict=flags.on("strict"),
            overwrite=flags.on("overwrite"),
        )
    )


def _imagenet(flags: Flags) -> None:
    _report(
        prepare.imagenet(
            flags.text("train"),
            flags.text("val"),
            flags.text("out"),
            val_list=flags.text("val_list") or None,
            synset_words=flags.text("synset_words") or None,
            ids=flags.text("ids"),
            options=_options(flags),
            seed=flags.number("seed"),
            strict=flags.on("strict"),
            overwrite=flags.on("overwrite"),
        )
    )


def _folder(flags: Flags) -> None:
    _report(
        prepare.folder(
            flags.text("source"),
            flags.text("out"),
            options=_options(flags),
            train_share=_share(flags),
            seed=flags.number("seed"),
            labels=flags.text("labels") or None,
            strict=flags.on("strict"),
            overwrite=flags.on("overwrite"),
        )
    )


def _cifar10(flags: Flags) -> None:
    _report(prepare.cifar10(flags.text("source"), flags.text("out"), flags.on("overwrite")))


def _mnist(flags: Flags) -> None:
    for path in prepare.mnist(flags.text("source"), flags.text("out"), flags.on("overwrite")):
        print(path)


def _fashion_mnist(flags: Flags) -> None:
    for path in prepare.fashion_mnist(
        flags.text("out"), flags.text("source") or None, flags.on("overwrite")
    ):
        print(path)


def _idx(flags: Flags) -> None:
    for path in prepare.idx(
        flags.text("source"), flags.text("out"), flags.text("name"), flags.on("overwrite")
    ):
        print(path)


def _images(flags: Flags) -> None:
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
    prepare.mean(flags.text("source"), flags.text("out"))
    print(flags.text("out"))


_IDX_SOURCE = Flag("source", "", "folder with the four idx files (.gz or not)")
_TO = ("source", "out")
_TARGETS = {
    "dogs": _Target(
        _dogs,
        _TO,
        (
            Flag("source", "", "images.tar of Stanford Dogs, or a folder with what it holds"),
            replace(_OUT, default="data/dogs"),
            Flag("train_list", "", "official split: train_list.mat, or a text file of paths"),
            Flag("test_list", "", "and test_list.mat"),
            _SHARE,
            _SEED,
            *_IMAGES,
        ),
        _TO,
    ),
    "imagenet": _Target(
        _imagenet,
        ("train", "val", "out"),
        (
            Flag("train", "", "folder of folders of synsets, or ILSVRC2012_img_train.tar"),
            Flag("val", "", "folder of images, or ILSVRC2012_img_val.tar"),
            replace(_OUT, default="examples/imagenet"),
            Flag("val_list", "", "labels of val; without it, they lie in folders of synsets"),
            Flag("synset_words", "", "lines 'n01440764 words' in the order of the labels"),
            Flag("ids", "", "meta.mat, where the val_list is the development kit's"),
            _SEED,
            *_IMAGES,
        ),
        ("train", "val", "out"),
    ),
    "folder": _Target(
        _folder,
        _TO,
        (
            Flag("source", "", "folder with a folder for each class"),
            _OUT,
            Flag("labels", "", "file with a class's folder a line, in the order of the labels"),
            _SHARE,
            _SEED,
            *_IMAGES,
        ),
        _TO,
    ),
    "cifar10": _Target(
        _cifar10,
        _TO,
        (
            Flag("source", "", "cifar-10-binary.tar.gz, or a folder with its files"),
            replace(_OUT, default="data/cifar10"),
            OVERWRITE,
        ),
        _TO,
    ),
    "mnist": _Target(
        _mnist, _TO, (_IDX_SOURCE, replace(_OUT, default="data/mnist"), OVERWRITE), _TO
    ),
    "fashion-mnist": _Target(
        _fashion_mnist,
        (),
        (_IDX_SOURCE, replace(_OUT, default="data/fashion_mnist"), OVERWRITE),
        (),
    ),
    "idx": _Target(
        _idx,
        _TO,
        (_IDX_SOURCE, _OUT, Flag("name", "mnist", "their names start with it"), OVERWRITE),
        _TO,
    ),
    "images": _Target(
        _images,
        (),
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
        ("root", "list", "out"),
    ),
    "mean": _Target(
        _mean,
        _TO,
        (
            Flag("source", "", "folder of an LMDB"),
            Flag("out", "", "the .binaryproto file to write"),
        ),
        _TO,
    ),
}
