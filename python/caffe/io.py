"""Images in and out of nets, and arrays in and out of messages: pycaffe's caffe.io.

Images are float32, height x width x channels, from 0 to 1, colours in the order red, green, blue;
`Transformer` turns them into what a net's input wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from caffe import log
from caffe.data.datum import array_to_datum, datum_to_array
from caffe.file_kind import require_file
from caffe.names import suggestion
from caffe.proto import caffe_pb2
from caffe.resample import resize_axis
from caffe.stored_blob import blob_to_array

__all__ = [
    "Transformer",
    "array_to_blobproto",
    "array_to_datum",
    "arraylist_to_blobprotovector_str",
    "blobproto_to_array",
    "blobprotovector_str_to_arraylist",
    "datum_to_array",
    "load_image",
    "oversample",
    "resize_image",
]

FloatArray = npt.NDArray[np.float32]

_LUMINANCE = np.array([0.2125, 0.7154, 0.0721], dtype=np.float32)  # of R, G, B: ITU-R BT.709


# -- messages --------------------------------------------------------------------------------------


def blobproto_to_array(blob: caffe_pb2.BlobProto, return_diff: bool = False) -> FloatArray:
    """Return a blob's values, or its gradient, in the blob's shape.

    Raises ValueError where their number does not fit the shape.
    """
    if not return_diff:
        return blob_to_array(blob)
    turned = caffe_pb2.BlobProto()
    turned.CopyFrom(blob)
    del turned.data[:], turned.double_data[:]
    turned.data.extend(blob.double_diff or blob.diff)
    return blob_to_array(turned)


def array_to_blobproto(
    arr: npt.ArrayLike, diff: npt.ArrayLike | None = None
) -> caffe_pb2.BlobProto:
    """Return a blob of the shape and values of `arr`, with a gradient if one is given.

    Raises ValueError for a gradient of another shape.
    """
    array = np.asarray(arr, dtype=np.float32)
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(array.shape)
    blob.data.extend(array.ravel().tolist())
    if diff is not None:
        gradient = np.asarray(diff, dtype=np.float32)
        if gradient.shape != array.shape:
            raise ValueError(f"the gradient has shape {gradient.shape}, the values {array.shape}")
        blob.diff.extend(gradient.ravel().tolist())
    return blob


def arraylist_to_blobprotovector_str(arraylist: Iterable[npt.ArrayLike]) -> bytes:
    """Return arrays as the bytes of a BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend(array_to_blobproto(array) for array in arraylist)
    return vector.SerializeToString()


def blobprotovector_str_to_arraylist(str: bytes) -> list[FloatArray]:
    """Return the arrays of a serialised BlobProtoVector.

    Raises DecodeError for other bytes, ValueError where values do not fit a shape.
    """
    vector = caffe_pb2.BlobProtoVector.FromString(str)
    return [blob_to_array(blob) for blob in vector.blobs]


# -- images ----------------------------------------------------------------------------------------


def load_image(filename: str | Path, color: bool = True) -> FloatArray:
    """Load an image file, as float32 from 0 to 1.

    Gray images become three equal channels if `color`; alpha is dropped; 16 bits stay 16 bits deep.

    Returns:
        H x W x 3 (red, green, blue), or H x W x 1 (luminance) if not `color`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no image that Pillow can read.
    """
    path = require_file(filename, "image")
    try:
        with Image.open(path) as image:
            image.load()
            values = _image_values(image)
    except UnidentifiedImageError:
        raise ValueError(f"image '{filename}' is of no known format") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"image '{filename}' cannot be decoded: {error}") from error
    if color:
        return np.repeat(values, 3, axis=2) if values.shape[2] == 1 else values
    return values if values.shape[2] == 1 else (values @ _LUMINANCE)[:, :, np.newaxis]


def _image_values(image: Image.Image) -> FloatArray:
    if image.mode == "F":
        return np.asarray(image, dtype=np.float32)[:, :, np.newaxis]
    if image.mode == "I" or image.mode.startswith("I;16"):
        return np.asarray(image, dtype=np.float32)[:, :, np.newaxis] / np.float32(65535)
    gray = image.mode in ("1", "L", "LA", "La")
    pixels = np.asarray(image.convert("L" if gray else "RGB"), dtype=np.float32)
    values = pixels / np.float32(255)
    return values[:, :, np.newaxis] if gray else values


def resize_image(im: npt.ArrayLike, new_dims: Sequence[int], interp_order: int = 1) -> FloatArray:
    """Resize an image by interpolation.

    Args:
        im: H x W x K, any number of channels.
        new_dims: (height, width).
        interp_order: 0 for the nearest pixel, 1 for linear, 3 for cubic interpolation.

    Returns:
        float32, new_dims x K.

    Raises:
        ValueError: no such image, sizes below 1, another order.
    """
    image = np.asarray(im, dtype=np.float32)
    if image.ndim != 3:
        raise ValueError(f"an image is H x W x channels, not of shape {image.shape}")
    height, width = (int(size) for size in new_dims)
    rows = resize_axis(image, 0, height, interp_order)
    resized = resize_axis(rows, 1, width, interp_order)
    return resized.copy() if resized is image else resized


def oversample(images: Sequence[npt.ArrayLike], crop_dims: Sequence[int]) -> FloatArray:
    """Crop images at the four corners and the centre, and mirror these crops.

    Args:
        images: H x W x K each, all of one size.
        crop_dims: (height, width) of the crops.

    Returns:
        float32, 10 N x crop_dims x K: for each image five crops, then the five mirrored.

    Raises:
        ValueError: no images, or crops larger than they are.
    """
    if not len(images):
        raise ValueError("there are no images to crop")
    first = np.asarray(images[0])
    height, width = first.shape[:2]
    crop_height, crop_width = (int(size) for size in crop_dims)
    if not (0 < crop_height <= height and 0 < crop_width <= width):
        raise ValueError(f"cannot crop {crop_height}x{crop_width} from images {height}x{width}")
    corners = [(y, x) for y in (0, height - crop_height) for x in (0, width - crop_width)]
    places = [*corners, ((height - crop_height) // 2, (width - crop_width) // 2)]
    crops = np.empty((10 * len(images), crop_height, crop_width, first.shape[2]), dtype=np.float32)
    for number, image in enumerate(images):
        values = np.asarray(image, dtype=np.float32)
        for index, (y, x) in enumerate(places):
            crop = values[y : y + crop_height, x : x + crop_width]
            crops[10 * number + index] = crop
            crops[10 * number + index + 5] = crop[:, ::-1]
    return crops


# -- inputs of nets --------------------------------------------------------------------------------


class Transformer:
    """Turns images into what a net's inputs want, and back.

    The order of the steps is fixed, whatever the order of the calls that set them: resize to the
    input's height and width, transpose, swap channels, times raw_scale, minus mean, times
    input_scale. A step that is not set is left out.
    """

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        """Take the shapes of the net's inputs, N x C x H x W: {"data": net.blobs["data"].shape}."""
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose: dict[str, tuple[int, ...]] = {}
        self.channel_swap: dict[str, tuple[int, ...]] = {}
        self.raw_scale: dict[str, float] = {}
        self.mean: dict[str, FloatArray] = {}
        self.input_scale: dict[str, float] = {}

    def _shape(self, in_: str) -> tuple[int, ...]:
        """Return the shape of an input; ValueError if there is none of that name."""
        if in_ not in self.inputs:
            raise ValueError(
                f"'{in_}' is not one of the net's inputs{suggestion(in_, self.inputs)}"
            )
        return self.inputs[in_]

    def preprocess(self, in_: str, data: npt.ArrayLike) -> FloatArray:
        """Return `data`, one image, as the input `in_` wants it: float32, C x H x W.

        Raises ValueError for an unknown input, or an image that does not fit it.
        """
        shape = self._shape(in_)
        image = np.array(data, dtype=np.float32)
        if image.ndim != len(shape) - 1:
            raise ValueError(
                f"input '{in_}' of shape {shape} takes an image of {len(shape) - 1} axes, "
                f"not of shape {image.shape}"
            )
        if image.shape[:2] != shape[2:] and len(shape) == 4:
            image = resize_image(image, shape[2:])
        if in_ in self.transpose:
            image = image.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            image = image[list(self.channel_swap[in_])]
        if in_ in self.raw_scale:
            image *= self.raw_scale[in_]
        if in_ in self.mean:
            image -= self.mean[in_]
        if in_ in self.input_scale:
            image *= self.input_scale[in_]
        return image

    def deprocess(self, in_: str, data: npt.ArrayLike) -> FloatArray:
        """Undo preprocess(), but for the resizing.

        Args:
            in_: name of the input.
            data: C x H x W, or with batch axes of size 1 before.

        Returns:
            float32, H x W x C if a transpose is set.
        """
        axes = len(self._shape(in_)) - 1
        image = np.array(data, dtype=np.float32)
        while image.ndim > axes and image.shape[0] == 1:
            image = image[0]
        if in_ in self.input_scale:
            image /= self.input_scale[in_]
        if in_ in self.mean:
            image += self.mean[in_]
        if in_ in self.raw_scale:
            image /= self.raw_scale[in_]
        if in_ in self.channel_swap:
            image = image[np.argsort(self.channel_swap[in_])]
        if in_ in self.transpose:
            image = image.transpose(np.argsort(self.transpose[in_]))
        return image

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """Set the order of axes: (2, 0, 1) turns H x W x C into C x H x W.

        Raises ValueError for an order that is no permutation of the image's axes.
        """
        self.transpose[in_] = _permutation(order, len(self._shape(in_)) - 1, "transpose: axes")

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """Set the order of channels: (2, 1, 0) turns RGB, as load_image() reads, into BGR.

        Raises ValueError for an order that is no permutation of the input's channels.
        """
        self.channel_swap[in_] = _permutation(order, self._shape(in_)[1], "channel swap: channels")

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """Set the factor before the mean: 255 where the net learned bytes and images are 0 to 1."""
        self._shape(in_)
        self.raw_scale[in_] = float(scale)

    def set_mean(self, in_: str, mean: npt.ArrayLike) -> None:
        """Set the mean to subtract, in the input's order of channels and scale.

        Args:
            in_: name of the input.
            mean: one value a channel, or an image C x H x W (H x W for one channel). An image of
                another height or width is resized to the input's, with a warning.

        Raises:
            ValueError: another number of channels or axes; both shapes are named.
        """
        shape = self._shape(in_)
        values = np.array(mean, dtype=np.float32)
        if values.ndim == 1:
            values = values[:, np.newaxis, np.newaxis]
        elif values.ndim == 2:
            values = values[np.newaxis]
        elif values.ndim == 4 and values.shape[0] == 1:
            values = values[0]
        if values.ndim != 3 or values.shape[0] != shape[1]:
            raise ValueError(
                f"mean of shape {np.shape(mean)} does not fit input '{in_}' of shape {shape}: "
                f"it needs {shape[1]} values, or an image of {shape[1]} channels"
            )
        if values.shape[1:] not in ((1, 1), shape[2:]):
            log.warning(
                f"the mean is {values.shape[1]}x{values.shape[2]}, input '{in_}' "
                f"{shape[2]}x{shape[3]}: it is resized; a mean a channel would do as well"
            )
            values = resize_image(values.transpose(1, 2, 0), shape[2:]).transpose(2, 0, 1)
        self.mean[in_] = values

    def set_input_scale(self, in_: str, scale: float) -> None:
        """Set the factor after the mean."""
        self._shape(in_)
        self.input_scale[in_] = float(scale)


def _permutation(order: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    given = tuple(int(index) for index in order)
    if sorted(given) != list(range(count)):
        raise ValueError(f"{what} {given} are no order of 0 to {count - 1}")
    return given
