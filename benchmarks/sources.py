"""Data layers of the benchmarks. A Python layer in prototxt names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

import caffe
from caffe.data import fashion_mnist
from caffe.data.idx import find_idx, read_idx
from photographs import Batches


class _Source(caffe.Layer):
    differentiable_bottoms = 0
    backward_reads_data = False

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing."""


class RandomBatch(_Source):
    """The same normally distributed batch again and again. param_str: "N C H W"."""

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Draw the batch."""
        shape = [int(word) for word in self.param_str.split()]
        rng = np.random.default_rng(1)
        self._data = rng.standard_normal(shape, dtype=np.float32)
        self._labels = rng.integers(0, 10, shape[0])

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes."""
        top[0].reshape(*self._data.shape)
        top[1].reshape(len(self._labels))

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Copy the batch."""
        top[0].data[...] = self._data
        top[1].data[...] = self._labels


class EnlargedFashion(_Source):
    """Fashion-MNIST's training images as 3 x SIDE x SIDE, less their mean. param_str: "N SIDE"."""

    MEAN = 73.0

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Find the images: Debian's package, or a copy of it."""
        self._batch, self._side = (int(word) for word in self.param_str.split())
        folder = fashion_mnist.find_source()
        self._images = read_idx(find_idx(folder, "train-images-idx3-ubyte"))
        self._labels = read_idx(find_idx(folder, "train-labels-idx1-ubyte"))
        self._next = 0

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes."""
        top[0].reshape(self._batch, 3, self._side, self._side)
        top[1].reshape(self._batch)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Enlarge the next images."""
        data = top[0].data
        for i in range(self._batch):
            index = (self._next + i) % len(self._images)
            image = Image.fromarray(self._images[index])
            enlarged = image.resize((self._side, self._side), Image.Resampling.BILINEAR)
            data[i] = np.asarray(enlarged, dtype=np.float32) - self.MEAN
            top[1].data[i] = self._labels[index]
        self._next += self._batch


class SmallFashion(_Source):
    """Fashion-MNIST's training images as 1 x 28 x 28 in [0, 1), as models/ has them.

    param_str: "N".
    """

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Find the images: Debian's package, or a copy of it."""
        self._batch = int(self.param_str)
        folder = fashion_mnist.find_source()
        images = read_idx(find_idx(folder, "train-images-idx3-ubyte"))
        self._images = images[:, None].astype(np.float32) / 256
        self._labels = read_idx(find_idx(folder, "train-labels-idx1-ubyte"))
        self._next = 0

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes."""
        top[0].reshape(self._batch, *self._images.shape[1:])
        top[1].reshape(self._batch)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Copy the next images."""
        chosen = np.arange(self._next, self._next + self._batch) % len(self._images)
        top[0].data[...] = self._images[chosen]
        top[1].data[...] = self._labels[chosen]
        self._next += self._batch


class Crops(_Source):
    """Batches of a file that photographs.write_crops() wrote. param_str: "N FILE"."""

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the file."""
        count, path = self.param_str.split(maxsplit=1)
        self._batches, self._count = Batches(path), int(count)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes."""
        top[0].reshape(self._count, *self._batches.shape)
        top[1].reshape(self._count)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Copy the next batch."""
        top[0].data[...], top[1].data[...] = self._batches.next(self._count)
