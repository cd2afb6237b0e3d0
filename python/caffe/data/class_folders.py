"""Images in a folder for each class: numbered, split, and written as databases."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caffe.atomic_file import write_atomically
from caffe.atomic_folder import staged
from caffe.data.image_list import Entry
from caffe.data.image_records import ImageSetOptions
from caffe.data.image_set import Conversion, write_images
from caffe.data.image_tree import ImageTree
from caffe.data.lmdb_writer import LmdbWriter
from caffe.data.mean import MeanSum

MEAN_FILE = "mean.binaryproto"
LABELS_FILE = "labels.txt"


@dataclass
class Classes:
    """Labelled files.

    Attributes:
        names: of the classes, by label.
        entries: the images, class by class; paths are the tree's.
        skipped: what has no class, and classes that have no images: which, and why.
    """

    names: list[str]
    entries: list[Entry]
    skipped: list[str]


@dataclass
class Prepared:
    """What was made.

    Attributes:
        databases: folder -> number of records, training first.
        files: all files written: the databases, the mean and the list of labels.
        classes: how many there are.
        skipped: a line for each thing that was left out: which, and why.
        hidden: how many hidden files and folders were passed over.
    """

    databases: dict[Path, int] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    classes: int = 0
    skipped: list[str] = field(default_factory=list)
    hidden: int = 0

    def summary(self) -> list[str]:
        """Return lines that say what was made."""
        lines = [f"{path}: {count} images" for path, count in self.databases.items()]
        lines += [str(path) for path in self.files if path not in self.databases]
        hidden = f", {self.hidden} hidden files passed over" if self.hidden else ""
        return [*lines, f"{self.classes} classes, {len(self.skipped)} things left out{hidden}"]


def label_files(tree: ImageTree, names: Sequence[str] | None = None) -> Classes:
    """Label each file by the folder right below the root that it lies in, at any depth.

    Args:
        tree: the files.
        names: of the classes' folders, in the order of their labels; by default all of them, as
            they are sorted (by code points). An empty folder has a label too.

    Raises:
        ValueError: no folders, a name that occurs twice, or none of the folders is a class.
    """
    if not tree.folders:
        raise ValueError(f"'{tree.root}' has no folders: one for each class is needed")
    names = tree.folders if names is None else names
    labels = {name: label for label, name in enumerate(names)}
    if len(labels) != len(names):
        twice = next(name for label, name in enumerate(names) if labels[name] != label)
        raise ValueError(f"class '{twice}' is listed twice")
    found = Classes(list(names), [], list(tree.skipped))
    for folder in tree.folders:
        if folder not in labels:
            found.skipped.append(f"{tree.where(folder)}: the folder is not among the classes")
    filled = set()
    for path in tree.files:
        folder, slash, _ = path.partition("/")
        if not slash:
            found.skipped.append(f"{tree.where(path)}: lies in no folder of a class")
        elif folder in labels:
            filled.add(folder)
            found.entries.append(Entry(path, labels[folder], 0))
    for name in names:
        if name not in filled:
            found.skipped.append(f"class '{name}' has no images")
    if not filled:
        raise ValueError(f"none of the folders in '{tree.root}' is a class with images")
    return found


def split(classes: Classes, share: float, seed: int) -> tuple[list[Entry], list[Entry]]:
    """Draw what is trained on from each class; which ones follows from seed and names alone.

    Args:
        classes: the images.
        share: of each class for training, above 0, at most 1; rounded to whole images.
        seed: of the draw.

    Returns:
        Training, which is shuffled over all classes, and the rest, class by class.

    Raises:
        ValueError: a share out of range, or so near 0 or 1 that one of both would be empty.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share to train on is {share:g}, needs to be above 0 and at most 1")
    by_label = defaultdict(list)
    for entry in classes.entries:
        by_label[entry.label].append(entry)
    train: list[Entry] = []
    rest: list[Entry] = []
    for label, entries in sorted(by_label.items()):
        drawn = sorted(entries)
        random.Random(f"{seed}/{classes.names[label]}".encode(errors="surrogateescape")).shuffle(
            drawn
        )
        count = int(len(drawn) * share + 0.5)
        train += drawn[:count]
        rest += sorted(drawn[count:])
    if not train or (share < 1 and not rest):
        raise ValueError(
            f"{len(classes.entries)} images in {len(by_label)} classes are too few to split into "
            f"{share:g} and {1 - share:g}"
        )
    random.Random(seed).shuffle(train)
    return train, rest


def write_sets(
    out: Path,
    sets: Mapping[str, tuple[ImageTree, Sequence[Entry]]],
    labels: Sequence[str],
    skipped: Sequence[str],
    options: ImageSetOptions,
    *,
    strict: bool,
    overwrite: bool,
) -> Prepared:
    """Write databases, the mean of the first, and a list of the classes; all of it or nothing.

    Args:
        out: their folder.
        sets: name of a database -> its files and which of them.
        labels: lines of the list.
        skipped: what was left out so far.
        options: what becomes of the images; they get one size.
        strict: allow nothing to be left out.
        overwrite: replace what is there.

    Raises:
        FileExistsError: one of the outputs is there already.
        ValueError, OSError: no image that can be read, or any that cannot if strict; or the
            databases cannot be written.
    """
    if options.size is None:
        raise ValueError("images of a set, which have one mean, need one size: give it")
    names = [*sets, MEAN_FILE, LABELS_FILE]
    result = Prepared(classes=len(labels), skipped=list(skipped))
    with staged(out, names, overwrite) as part:
        if strict and skipped:
            raise ValueError(skipped[0])
        mean = MeanSum()
        for name, (tree, entries) in sets.items():
            added = None if result.databases else mean
            done = _write_set(part / name, tree, entries, options, strict, added)
            result.databases[out / name] = done.count
            result.skipped += done.skipped
        result.hidden = sum(tree.hidden for tree in {tree for tree, _ in sets.values()})
        write_atomically(part / MEAN_FILE, mean.blob().SerializeToString())
        text = "".join(f"{label}\n" for label in labels)
        write_atomically(part / LABELS_FILE, text.encode(errors="surrogateescape"))
    result.files = [out / name for name in names]
    return result


def _write_set(
    out: Path,
    tree: ImageTree,
    entries: Sequence[Entry],
    options: ImageSetOptions,
    strict: bool,
    mean: MeanSum | None,
) -> Conversion:
    with LmdbWriter(out) as writer:
        return write_images(
            entries,
            writer,
            options,
            read=lambda entry: tree.read(entry.path),
            where=lambda entry: tree.where(entry.path),
            strict=strict,
            mean=mean,
        )
