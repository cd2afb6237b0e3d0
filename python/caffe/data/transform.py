"""TransformationParameter: crop, mirror, mean and scale, done in one pass by the C++ core.

What is random depends on (seed, layer name, number of the image) alone, so a run that is resumed
sees the crops and mirrors that the uninterrupted one would have seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe import prototxt
from caffe._core import data as core
from caffe.data.datum import Pixels, times
from caffe.file_kind import require_file
from caffe.proto import caffe_pb2

TRAIN = caffe_pb2.TRAIN


class Transformer:
    """Turns batches of stored images into a net's input.

    Args:
        param: what to do: (pixel - mean) * scale, crop_size, mirror.
        phase: TRAIN crops at random places, TEST in the centre.
        seed: of the solver or net.
        name: of the layer; layers of different names draw different numbers.

    Raises:
        FileNotFoundError: there is no mean_file.
        ValueError: both mean_file and mean_value are given, or the mean_file holds no array.
    """

    def __init__(
        self,
        param: caffe_pb2.TransformationParameter,
        phase: int,
        seed: int = 0,
        name: str = "",
    ) -> None:
        """Read the mean; see the class."""
        if param.mean_file and param.mean_value:
            raise ValueError("mean_file and mean_value exclude each other")
        if param.force_color and param.force_gray:
            raise ValueError("force_color and force_gray exclude each other")
        self.param = param
        self._mean: npt.NDArray[np.float32] | None = None
        if param.mean_file:
            self._mean = read_mean(param.mean_file)
        self._options = core.TransformOptions()
        self._options.crop_size = param.crop_size
        self._options.random_crop = phase == TRAIN
        self._options.mirror = param.mirror
        self._options.scale = param.scale
        self._name = name
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Let what is random from now on follow from `seed`."""
        self._options.random_key = random_key(seed, self._name)

    def output_shape(self, shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the (channels, height, width) that an image of `shape` becomes.

        The mean is fitted to the image here, so call it once before `transform`.

        Raises:
            ValueError: the image is smaller than the crop, or does not fit the mean.
        """
        channels, height, width = shape
        crop = self.param.crop_size
        if crop > min(height, width):
            raise ValueError(
                f"crop_size {crop} is larger than the images ({height}x{width}); lower it, or "
                "store larger images"
            )
        self._options.mean = self._fit_mean(shape)
        return (channels, crop, crop) if crop else shape

    def transform(
        self,
        images: Sequence[Pixels],
        shapes: Sequence[tuple[int, int, int]],
        first_index: int,
        out: npt.NDArray[np.float32],
    ) -> None:
        """Transform images number first_index, first_index + 1, ... into `out`.

        Args:
            images: C * H * W bytes or floats each, in C order.
            shapes: (C, H, W) of each; all alike unless there is a crop_size.
            first_index: number of the first image, counted over all passes.
            out: N x C x height x width, contiguous; overwritten.

        Raises:
            ValueError: an image does not fit the first, the crop or the mean.
        """
        core.transform_batch(
            images, np.array(shapes, dtype=np.int64), self._options, first_index, out
        )

    def _fit_mean(self, shape: tuple[int, int, int]) -> list[float]:
        channels = shape[0]
        values = list(self.param.mean_value)
        if values:
            if len(values) not in (1, channels):
                raise ValueError(
                    f"{len(values)} mean_value for images of {channels} channels; give one, or one "
                    "per channel"
                )
            return values * channels if len(values) == 1 else values
        if self._mean is None:
            return []
        mean = self._mean
        if mean.shape == shape or mean.size == channels:
            return mean.ravel().tolist()
        raise ValueError(
            f"the mean in '{self.param.mean_file}' has shape {times(mean.shape)}, the images "
            f"{times(shape)}; compute it from these images (caffe prepare mean -source LMDB -out "
            "FILE), or give a mean_value per channel instead"
        )


def random_key(seed: int, name: str) -> int:
    """Return the 64-bit key of a layer's random numbers, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def read_mean(path: str | Path) -> npt.NDArray[np.float32]:
    """Read a mean from a .binaryproto or .npy file.

    Returns:
        The mean as it is stored: C x H x W, or one value per channel.

    Raises:
        FileNotFoundError: no such file; says how to make one.
        ValueError: the file holds no array.
    """
    try:
        require_file(path, "mean")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error}; make it with: caffe prepare mean -source LMDB -out {path}, or give a "
            "mean_value per channel instead"
        ) from error
    if Path(path).suffix == ".npy":
        try:
            mean = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"'{path}' is no NumPy file: {error}") from error
        return np.asarray(mean, dtype=np.float32)
    return blob_array(prototxt.read_blob(path), str(path))


def blob_array(blob: caffe_pb2.BlobProto, name: str) -> npt.NDArray[np.float32]:
    """Return the values of `blob` in its shape, without a leading batch axis of 1.

    Raises:
        ValueError: the values do not fit the shape.
    """
    values = np.array(blob.double_data or blob.data, dtype=np.float32)
    if blob.HasField("shape"):
        shape = tuple(blob.shape.dim)
    else:
        shape = (blob.num, blob.channels, blob.height, blob.width)
    count = 1
    for size in shape:
        count *= size
    if count != values.size or min(shape, default=1) < 0:
        raise ValueError(
            f"'{name}' holds {values.size} values, its shape {times(shape)} needs {count}"
        )
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    return values.reshape(shape)
