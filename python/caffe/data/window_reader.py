"""Draws windows and cuts them out of their images; see the layer WindowData."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from caffe.data.datum import times
from caffe.data.image_file import Pixels, decode, decoding_threads, read_file, resize, rooted
from caffe.data.transform import random_key, read_mean
from caffe.data.window_crop import place
from caffe.data.window_file import WindowFile
from caffe.proto import caffe_pb2

FloatArray = npt.NDArray[np.float32]

_SEQUENCE_WORD = 3  # the word of Philox's counter that tells batches apart


class WindowBatch(NamedTuple):
    """N x C x crop_size x crop_size, and N."""

    data: FloatArray
    labels: FloatArray


class _Sample(NamedTuple):
    """A window that was drawn."""

    image: int
    label: int
    box: tuple[int, int, int, int]
    mirror: bool


class WindowReader:
    """Makes batches; all that the prefetch thread knows of the layer.

    Args:
        param: the layer's.
        name: of the layer; layers of different names draw different windows.
        seed: what is drawn follows from it; may be set anew between batches.

    Raises:
        FileNotFoundError: the window file or the mean_file does not exist.
        ValueError: a bad line, too few windows of either kind, or a mean that does not fit.
    """

    def __init__(self, param: caffe_pb2.LayerParameter, name: str, seed: int) -> None:
        """Read the window file; see the class."""
        self.seed = seed
        self._name = name
        self._param = param.window_data_param
        self._transform = param.transform_param
        self._crop = self._transform.crop_size
        self._windows = WindowFile(
            self._param.source, self._param.fg_threshold, self._param.bg_threshold
        )
        self.channels = self._windows.images[0].shape[0]
        self._mean = _mean(self._transform, self.channels)
        # The product is float32, as in Caffe: 0.7 of 10 are 7.
        self._fg_count = int(
            np.float32(self._param.batch_size) * np.float32(self._param.fg_fraction)
        )
        for kind, windows, count in (
            ("foreground", self._windows.foreground, self._fg_count),
            ("background", self._windows.background, self._param.batch_size - self._fg_count),
        ):
            if count and not len(windows):
                raise ValueError(
                    f"'{self._param.source}' has no windows of the {kind}, each batch needs "
                    f"{count}: see fg_threshold, bg_threshold and fg_fraction"
                )
        self._files: dict[int, bytes] = {}  # by number of the image, where they are kept
        self._threads = decoding_threads()

    def produce(self, position: int) -> tuple[WindowBatch, int]:
        """Return the batch that starts at `position`, and the position after it."""
        samples = self._draw(position)
        images = list(self._threads.map(self._cut, samples))
        labels = np.array([sample.label for sample in samples], dtype=np.float32)
        return WindowBatch(np.stack(images), labels), position + len(samples)

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown()

    def _draw(self, position: int) -> list[_Sample]:
        counter = [0] * (_SEQUENCE_WORD + 1)
        counter[_SEQUENCE_WORD] = position
        key = random_key(self.seed, f"{self._name}/windows")
        rng = np.random.Generator(np.random.Philox(key=key, counter=counter))
        fg_count, batch = self._fg_count, self._param.batch_size
        samples = []
        for windows, count in (
            (self._windows.background, batch - fg_count),
            (self._windows.foreground, fg_count),
        ):
            for row in rng.integers(0, max(len(windows), 1), count):
                x1, y1, x2, y2 = windows.boxes[row].tolist()
                mirror = self._transform.mirror and bool(rng.integers(2))
                samples.append(
                    _Sample(
                        int(windows.image[row]), int(windows.label[row]), (x1, y1, x2, y2), mirror
                    )
                )
        return samples

    def _cut(self, sample: _Sample) -> FloatArray:
        image = self._load(sample.image)
        crop = self._crop
        rows, columns = place(
            sample.box,
            image.shape[1],
            image.shape[2],
            crop,
            self._param.context_pad,
            self._param.crop_mode == "square",
            sample.mirror,
        )
        part = image[:, rows.first : rows.last + 1, columns.first : columns.last + 1]
        part = resize(part, rows.size, columns.size)
        if sample.mirror:
            part = part[:, :, ::-1]
        spot = (
            slice(None),
            slice(rows.offset, rows.offset + rows.size),
            slice(columns.offset, columns.offset + columns.size),
        )
        result = np.zeros((self.channels, crop, crop), dtype=np.float32)
        result[spot] = (part - self._mean[spot]) * np.float32(self._transform.scale)
        return result

    def _load(self, number: int) -> Pixels:
        image = self._windows.images[number]
        where = f"{self._param.source}:{image.line}"
        path = rooted(self._param.root_folder, image.path)
        content = self._files.get(number)
        if content is None:
            content = read_file(path, where)
            if self._param.cache_images:
                self._files[number] = content
        pixels = decode(content, path, where, color=self.channels == 3)
        if pixels.shape != image.shape:
            raise ValueError(
                f"{where}: '{path}' is {times(pixels.shape)}, the window file says "
                f"{times(image.shape)}"
            )
        return pixels


def _mean(transform: caffe_pb2.TransformationParameter, channels: int) -> FloatArray:
    """Return what to subtract from the square, C x crop_size x crop_size."""
    crop = transform.crop_size
    values = np.array(transform.mean_value, dtype=np.float32)
    if transform.mean_file:
        if len(values):
            raise ValueError("mean_file and mean_value exclude each other")
        mean = read_mean(transform.mean_file)
        if mean.ndim == 3 and mean.shape[0] == channels and crop <= min(mean.shape[1:]):
            top, left = ((side - crop) // 2 for side in mean.shape[1:])
            return mean[:, top : top + crop, left : left + crop]
        if mean.size != channels:
            raise ValueError(
                f"the mean in '{transform.mean_file}' has shape {times(mean.shape)}; needed are "
                f"{channels} channels of {crop}x{crop} or more, or one value per channel"
            )
        values = mean.ravel()
    if len(values) not in (0, 1, channels):
        raise ValueError(
            f"{len(values)} mean_value for images of {channels} channels; give one, or one per "
            "channel"
        )
    shape = (channels, crop, crop)
    return np.broadcast_to(values[:, None, None] if len(values) else np.float32(0), shape)
