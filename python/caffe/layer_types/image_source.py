"""What the layers Data and ImageData share: images read ahead, and transformed into the top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from caffe.data.datum import Pixels, times
from caffe.data.prefetch import Prefetcher
from caffe.data.transform import Transformer, random_key
from caffe.layer_types.builtin import BuiltIn

_MOST_PREFETCH = 256

ImageShape = tuple[int, int, int]


class Batch(NamedTuple):
    """Images as they are stored, their labels, and the number of the first over all passes."""

    images: list[Pixels]
    shapes: list[ImageShape]
    labels: npt.NDArray[np.float32]
    first_index: int


class Reader(Protocol):
    """Reads and decodes batches; all that the prefetch thread knows of the layer."""

    first_shape: ImageShape  # of the first image
    seed: int  # what the order of images follows from

    def __len__(self) -> int:
        """Return the number of images."""

    def produce(self, position: int) -> tuple[Batch, int]:
        """Return the batch that starts at `position`, and the position after it."""

    def close(self) -> None:
        """Let go of files."""


class ImageSource(BuiltIn):
    """Base class of Data and ImageData. Position p is the p-th image, counted over all passes."""

    differentiable_bottoms = 0
    backward_reads_data = False
    bottom_count = (0, 0)
    top_count = (1, 2)

    def start(
        self, make_reader: Callable[[int], Reader], batch_size: int, rand_skip: int, options: str
    ) -> None:
        """Open the source and look at its first image.

        Args:
            make_reader: opens the source, given the position to begin at.
            batch_size: images in a batch.
            rand_skip: the most images to leave out at the start.
            options: the name of the layer's own options, for messages.

        Raises ValueError for options that make no sense, and whatever make_reader() raises.
        """
        if batch_size < 1:
            raise ValueError(f"{options} needs a batch_size of 1 or more")
        self._batch_size = batch_size
        self._transformer = Transformer(
            self.layer_param.transform_param, self.phase, self.random_seed, self.name
        )
        prefetch = checked_prefetch(self.layer_param.data_param.prefetch)
        begin = 0
        if rand_skip:
            begin = random_key(self.random_seed, f"{self.name}/rand_skip") % (rand_skip + 1)
        self._reader = make_reader(begin)
        self._source_shape = self._reader.first_shape
        try:
            self._shape = self._transformer.output_shape(self._source_shape)
        except BaseException:
            self._reader.close()
            raise
        self._has_shape = False
        self._prefetcher: Prefetcher[Batch] = Prefetcher(self._reader.produce, prefetch, begin)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops: N x C x H x W, and N.

        Without a crop, H and W are those of the next batch's images. Raises as forward() does.
        """
        if self._has_shape and not self.layer_param.transform_param.crop_size:
            self._follow_seed()
            shape = self._prefetcher.peek().shapes[0]
            if shape != self._source_shape:
                self._shape = self._transformer.output_shape(shape)
                self._source_shape = shape
        self._has_shape = True
        top[0].reshape(self._batch_size, *self._shape)
        if len(top) > 1:
            top[1].reshape(self._batch_size)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the next batch.

        Raises:
            ValueError: a damaged image, or one of another size than its batch; says which.
            OSError: a file cannot be read.
        """
        self._follow_seed()
        batch = self._prefetcher.get()
        self._transformer.transform(batch.images, batch.shapes, batch.first_index, top[0].data)
        if len(top) > 1:
            top[1].data[...] = batch.labels

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""

    def _follow_seed(self) -> None:
        """A restored solver state may have changed the seed: what was read ahead is of the old."""
        if self._reader.seed != self.random_seed:
            self._prefetcher.close()
            self._reader.seed = self.random_seed
        self._transformer.reseed(self.random_seed)

    @property
    def position(self) -> int:
        """Number of the next batch's first image, counted over all passes; for solver states."""
        return self._prefetcher.position

    @position.setter
    def position(self, value: int) -> None:
        self._prefetcher.position = value

    @property
    def epoch(self) -> int:
        """Passes over the source completed before the next batch."""
        return self.position // len(self._reader)

    def close(self) -> None:
        """Stop reading and close the source. Closing twice does no harm."""
        if hasattr(self, "_prefetcher"):
            self._prefetcher.close()
        if hasattr(self, "_reader"):
            self._reader.close()

    def __del__(self) -> None:
        """Close, where nobody did."""
        self.close()


def checked_prefetch(batches: int) -> int:
    """Return how many batches to read ahead; ValueError for none or very many."""
    if not 1 <= batches <= _MOST_PREFETCH:
        raise ValueError(
            f"data_param has prefetch {batches}, needs 1 to {_MOST_PREFETCH}: batches that are "
            "read ahead, and held in memory"
        )
    return batches


def check_size(where: str, shape: ImageShape, first: ImageShape, crop: int, remedy: str) -> None:
    """Make sure that an image fits the first of its batch.

    Args:
        where: what the image is called.
        shape: of the image.
        first: of the batch's first image.
        crop: crop_size; with one, only the number of channels must be the same.
        remedy: what to do where the sizes differ, unless that is a matter of the crop.

    Raises:
        ValueError: it does not fit; says both shapes.
    """
    if crop and crop > min(shape[1:]):
        remedy = f"no side may be below crop_size {crop}"
    elif shape[0] == first[0] and (crop or shape == first):
        return
    raise ValueError(
        f"{where}: the image is {times(shape)}, the first of its batch {times(first)}; {remedy}"
    )
