"""Stanford Dogs (Khosla, Jayadevaprakash, Yao and Fei-Fei, 2011): 20,580 images of 120 breeds.

Images/n02085620-Chihuahua/n02085620_10074.jpg and so on, in a tar file or unpacked.
"""

from __future__ import annotations

from pathlib import Path

from caffe.data.class_folders import Classes
from caffe.data.image_list import Entry, read_lines
from caffe.data.image_tree import ImageTree
from caffe.data.matlab import read_strings

IMAGES = "Images"
CLASSES = 120


def read_list(path: str | Path) -> list[str]:
    """Return the paths in a list of images: train_list.mat, or a text file with one a line.

    Raises:
        FileNotFoundError: no such file.
        ImportError: a .mat file, and scipy is not installed.
        ValueError: a list without lines, or a damaged .mat file.
    """
    if Path(path).suffix == ".mat":
        return read_strings(path, "file_list")
    return [line for _, line in read_lines(path)]


def by_lists(
    tree: ImageTree, classes: Classes, train: str | Path, test: str | Path
) -> tuple[list[Entry], list[Entry]]:
    """Return the images that two lists name, in their order; adds to classes.skipped.

    Raises:
        FileNotFoundError, ImportError, ValueError: see read_list(); or an image is in both lists.
    """
    by_path = {entry.path: entry for entry in classes.entries}
    taken: dict[str, str | Path] = {}
    sets: list[list[Entry]] = []
    for source in (train, test):
        sets.append([])
        for path in read_list(source):
            if path in taken:
                raise ValueError(f"'{path}' is listed twice: in '{taken[path]}' and '{source}'")
            taken[path] = source
            if path in by_path:
                sets[-1].append(by_path[path])
            else:
                classes.skipped.append(f"{tree.where(path)}, listed in '{source}': does not exist")
    for path in by_path:
        if path not in taken:
            classes.skipped.append(f"{tree.where(path)}: is in neither list")
    return sets[0], sets[1]
