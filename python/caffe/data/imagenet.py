"""ImageNet's classification task (Russakovsky et al., 2015): synsets, and the labels of val."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from caffe.data.image_list import Entry, read_lines
from caffe.data.image_tree import ImageTree
from caffe.data.matlab import read_table

_SYNSET = re.compile(r"n\d{8}")


def read_words(path: str | Path) -> dict[str, str]:
    """Return synset -> the whole line, in the order of the labels, of a synset_words.txt.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a line that does not begin with a synset, or one that occurs twice.
    """
    words: dict[str, str] = {}
    for number, line in read_lines(path):
        synset = line.split()[0]
        if not _SYNSET.fullmatch(synset):
            raise ValueError(f"{path}:{number}: expected 'n01440764 words', got '{line}'")
        if synset in words:
            raise ValueError(f"{path}:{number}: synset {synset} occurs twice")
        words[synset] = line
    return words


def read_ids(path: str | Path) -> dict[int, str]:
    """Return id -> synset: of the development kit's meta.mat, or of a text file, from 1 on.

    Raises:
        FileNotFoundError: no such file.
        ImportError: a .mat file, and scipy is not installed.
        ValueError: a damaged file.
    """
    if Path(path).suffix == ".mat":
        return read_table(path, "synsets", "ILSVRC2012_ID", "WNID")
    return dict(enumerate(read_words(path), 1))


def label_validation(
    tree: ImageTree, truth: str | Path, synsets: Sequence[str], ids: str | Path = ""
) -> tuple[list[Entry], list[str]]:
    """Label the images of val.

    Args:
        tree: its images.
        truth: lines "file label" with labels from 0 in the order of `synsets` (Caffe's val.txt) or
            "file synset"; or a line for each file, as they are sorted, which is a synset or an id
            (the development kit's ILSVRC2012_validation_ground_truth.txt).
        synsets: in the order of their labels.
        ids: what ids mean, see read_ids(); they are numbered in another order than labels.

    Returns:
        The images as they are listed, and what is left out: which, and why.

    Raises:
        FileNotFoundError, ImportError, ValueError: a list is missing, needs scipy, or has a line
            that makes no sense; ids without their meaning.
    """
    labels = {synset: label for label, synset in enumerate(synsets)}
    lines = read_lines(truth)
    named = any(len(line.split()) > 1 for _, line in lines)
    if not named and len(lines) != len(tree.files):
        raise ValueError(
            f"'{truth}' has {len(lines)} lines, '{tree.root}' {len(tree.files)} files: a list "
            "without names needs as many"
        )
    meaning: dict[str, str] = {}
    if not named and any(line.isdecimal() for _, line in lines):
        if not ids:
            raise ValueError(
                f"'{truth}' has ids of the development kit, which are no labels: give its meta.mat "
                "(-ids), or a list of lines 'file label' such as Caffe's val.txt"
            )
        meaning = {str(number): synset for number, synset in read_ids(ids).items()}
    paths = {posixpath.basename(path): path for path in tree.files}
    paths.update(zip(tree.files, tree.files))
    entries, skipped = [], []
    for at, (number, line) in enumerate(lines):
        name, text = line.rsplit(maxsplit=1) if named else (tree.files[at], line)
        label = labels.get(meaning.get(text, text))
        if label is None and named and text.isdecimal() and int(text) < len(labels):
            label = int(text)
        if label is None:
            raise ValueError(
                f"{truth}:{number}: '{text}' is none of the {len(labels)} classes, by number from "
                "0 or by synset"
            )
        if name in paths:
            entries.append(Entry(paths[name], label, number))
        else:
            skipped.append(f"{truth}:{number}: '{name}' does not exist below '{tree.root}'")
    listed = {entry.path for entry in entries}
    skipped += [f"{tree.where(path)}: is not listed" for path in tree.files if path not in listed]
    return entries, skipped
