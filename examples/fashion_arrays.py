"""The images of an LMDB as arrays: what fine_tuning.py and siamese.py train on.

    python examples/fashion_arrays.py data/fashion_mnist/fashion_mnist_test_lmdb

prints how many images of each class there are.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import lmdb
import numpy as np

import caffe
from caffe.proto import caffe_pb2 as pb


def read(database: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Return all images, float32, N x channels x height x width from 0 to 1, and their N labels."""
    images, labels = [], []
    with lmdb.open(str(database), readonly=True, lock=False) as file, file.begin() as transaction:
        for _, record in transaction.cursor():
            datum = pb.Datum.FromString(record)
            images.append(caffe.io.datum_to_array(datum))
            labels.append(datum.label)
    return np.stack(images).astype(np.float32) / 255, np.array(labels, np.float32)


def read_both(folder: str | Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the images and labels of a folder's `*_train_lmdb` and `*_test_lmdb`.

    FileNotFoundError where one is missing.
    """
    found = []
    for part in ("train", "test"):
        databases = list(Path(folder).glob(f"*_{part}_lmdb"))
        if not databases:
            raise FileNotFoundError(
                f"no *_{part}_lmdb in '{folder}'; caffe prepare fashion-mnist makes some"
            )
        found.append(read(databases[0]))
    return found


def main(words: Sequence[str] | None = None) -> dict[int, int]:
    """Count; returns class -> number of images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", help="folder of an LMDB")
    given = parser.parse_args(words)
    images, labels = read(given.database)
    classes, counts = np.unique(labels.astype(int), return_counts=True)
    print(f"{len(images)} images of {' x '.join(map(str, images.shape[1:]))}")
    for label, count in zip(classes, counts):
        print(f"class {label}: {count}")
    return dict(zip(classes.tolist(), counts.tolist()))


if __name__ == "__main__":
    main()
