"""ImageData: image files and labels that a text file lists, one "path label" a line.

Tops: data (N x C x H x W, transformed) and, if wanted, label (N). What follows the last blank or
tab of a line is the label, a whole number; paths may hold blanks. Relative paths are relative to
`root_folder`, or else to the working directory. Images are read and decoded in the background, in
several threads; `is_color` decides whether they have three channels (blue, green, red) or one;
alpha is dropped, of 16 bits the upper 8 are taken, of an animation the first picture. Without
`new_height` and `new_width`, and without a crop, the images of a batch must be of one size, those
of the next may be of another. `shuffle` draws a new order for each pass. The number of batches read
ahead is `prefetch` in `data_param`. Backward reads: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe.data.image_file import Pixels, decode, decoding_threads, read_file, resize, rooted
from caffe.data.image_list import Entry, read_image_list
from caffe.data.order import Order
from caffe.layer_types.image_source import Batch, ImageShape, ImageSource, check_size
from caffe.proto import caffe_pb2


class _Reader:
    """Reads and decodes batches of image files."""

    def __init__(self, param: caffe_pb2.LayerParameter, name: str, seed: int, begin: int) -> None:
        self.seed = seed
        self._param = param.image_data_param
        self._crop = param.transform_param.crop_size
        self._entries = read_image_list(self._param.source)
        self._order = Order(len(self._entries), name, self._param.shuffle)
        self._threads = decoding_threads()
        try:
            first = self._load(self._entries[self._order.record(begin, seed)])
        except BaseException:
            self.close()
            raise
        self.first_shape = _shape(first)

    def __len__(self) -> int:
        return len(self._entries)

    def produce(self, position: int) -> tuple[Batch, int]:
        """Return the batch that starts at `position`, and the position after it."""
        end = position + self._param.batch_size
        chosen = [
            self._entries[self._order.record(place, self.seed)] for place in range(position, end)
        ]
        images = list(self._threads.map(self._load, chosen))
        shapes = [_shape(image) for image in images]
        for entry, shape in zip(chosen, shapes):
            remedy = "set new_height and new_width, or crop_size"
            check_size(self._where(entry), shape, shapes[0], self._crop, remedy)
        labels = np.array([entry.label for entry in chosen], dtype=np.float32)
        return Batch(list(images), shapes, labels, position), end

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown()

    def _load(self, entry: Entry) -> Pixels:
        path, where = rooted(self._param.root_folder, entry.path), self._where(entry)
        image = decode(read_file(path, where), path, where, self._param.is_color)
        if self._param.new_height:
            image = resize(image, self._param.new_height, self._param.new_width)
        return image

    def _where(self, entry: Entry) -> str:
        return f"{self._param.source}:{entry.line}"


class ImageData(ImageSource):
    """The ImageData layer; see the module."""

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the list and the first image.

        Raises:
            OSError: the list or the first image cannot be read.
            ValueError: options that make no sense, a bad line in the list, or a damaged image.
        """
        param, transform = self.layer_param.image_data_param, self.layer_param.transform_param
        if not param.source:
            raise ValueError('image_data_param needs a source: a list of lines "path label"')
        if bool(param.new_height) != bool(param.new_width):
            raise ValueError(
                f"image_data_param has new_height {param.new_height} and new_width "
                f"{param.new_width}; set both, or neither"
            )
        if transform.force_gray if param.is_color else transform.force_color:
            raise ValueError(
                f"transform_param's {'force_gray' if param.is_color else 'force_color'} contradicts"
                f" image_data_param's is_color: {str(param.is_color).lower()}, which decides"
            )
        self.start(
            lambda begin: _Reader(self.layer_param, self.name, self.random_seed, begin),
            param.batch_size,
            param.rand_skip,
            "image_data_param",
        )


def _shape(image: Pixels) -> ImageShape:
    channels, height, width = image.shape
    return channels, height, width
