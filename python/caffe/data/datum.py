"""Datum records to arrays and back, pixels as bytes or as an encoded image file.

Arrays are C x H x W; colours are in the order blue, green, red.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import NamedTuple, Union

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError
from PIL import Image, UnidentifiedImageError

from caffe.proto import caffe_pb2

Pixels = Union[bytes, npt.NDArray[np.uint8], npt.NDArray[np.float32]]

_MAX_INT32 = 2**31 - 1


class Record(NamedTuple):
    """One image: C * H * W values in C order, their shape and the label."""

    pixels: Pixels
    shape: tuple[int, int, int]
    label: int


def parse_record(value: bytes, force_color: bool = False, force_gray: bool = False) -> Record:
    """Read the bytes of a Datum.

    Args:
        value: a serialised Datum.
        force_color: decode encoded images to three channels.
        force_gray: decode encoded images to one channel.

    Raises:
        ValueError: not a Datum, or its values do not fit its shape, or the image cannot be decoded.
    """
    datum = caffe_pb2.Datum()
    try:
        datum.ParseFromString(value)
    except DecodeError as error:
        raise ValueError("the record is no Datum") from error
    return datum_record(datum, force_color, force_gray)


def datum_record(
    datum: caffe_pb2.Datum, force_color: bool = False, force_gray: bool = False
) -> Record:
    """Return the image in `datum`, decoded where it is encoded.

    Raises:
        ValueError: the values do not fit the shape, or the image cannot be decoded.
    """
    if datum.encoded:
        pixels = decode_image(datum.data, force_color, force_gray)
        channels, height, width = pixels.shape
        return Record(pixels, (channels, height, width), datum.label)
    shape = (datum.channels, datum.height, datum.width)
    if min(shape) < 1:
        raise ValueError(f"the record has shape {times(shape)}, which holds nothing")
    count = shape[0] * shape[1] * shape[2]
    held = len(datum.data) or len(datum.float_data)
    if held != count:
        raise ValueError(
            f"the record holds {held} values, its shape {times(shape)} needs {count}"
            + ("; is it an encoded image that is not marked so?" if len(datum.data) else "")
        )
    if len(datum.data):
        return Record(datum.data, shape, datum.label)
    return Record(np.array(datum.float_data, dtype=np.float32), shape, datum.label)


def datum_to_array(datum: caffe_pb2.Datum) -> npt.NDArray[np.uint8] | npt.NDArray[np.float32]:
    """Return the image in `datum` as C x H x W, uint8 or float32.

    Raises:
        ValueError: the values do not fit the shape, or the image cannot be decoded.
    """
    record = datum_record(datum)
    if isinstance(record.pixels, bytes):
        return np.frombuffer(record.pixels, dtype=np.uint8).reshape(record.shape)
    return record.pixels.reshape(record.shape)


def array_to_datum(image: npt.ArrayLike, label: int | None = None) -> caffe_pb2.Datum:
    """Return a Datum with `image`, C x H x W: uint8 as bytes, anything else as floats.

    Raises:
        ValueError: not three axes, or the label is no 32-bit integer.
    """
    array = np.asarray(image)
    if array.ndim != 3:
        raise ValueError(f"an image has three axes (channels, height, width), not {array.ndim}")
    datum = caffe_pb2.Datum(channels=array.shape[0], height=array.shape[1], width=array.shape[2])
    if array.dtype == np.uint8:
        datum.data = array.tobytes()
    else:
        datum.float_data.extend(array.astype(np.float32).ravel().tolist())
    if label is not None:
        if not -_MAX_INT32 - 1 <= label <= _MAX_INT32:
            raise ValueError(f"label {label} is no 32-bit integer")
        datum.label = label
    return datum


def encoded_datum(content: bytes, label: int | None = None) -> caffe_pb2.Datum:
    """Return a Datum that holds the image file `content` as it is.

    Raises:
        ValueError: `content` is no image.
    """
    channels, height, width = decode_image(content).shape
    datum = caffe_pb2.Datum(channels=channels, height=height, width=width, encoded=True)
    datum.data = content
    if label is not None:
        datum.label = label
    return datum


def decode_image(
    content: bytes, force_color: bool = False, force_gray: bool = False
) -> npt.NDArray[np.uint8]:
    """Decode an image file to C x H x W bytes: three channels (BGR) or one.

    Gray images (16 bits too) stay one channel unless `force_color`; alpha is dropped, palettes and
    CMYK become colours.

    Raises:
        ValueError: no image, a damaged one, or both kinds are forced.
    """
    if not content:
        raise ValueError("cannot decode an image of 0 bytes: it is empty")
    try:
        with Image.open(io.BytesIO(content)) as image:
            image.load()
            return image_array(image, force_color, force_gray)
    except UnidentifiedImageError:
        raise ValueError(
            f"cannot decode the image of {len(content)} bytes: no known format"
        ) from None
    except Exception as error:  # decoders raise of every kind on damaged files
        raise ValueError(f"cannot decode the image of {len(content)} bytes: {error}") from error


def image_array(
    image: Image.Image, force_color: bool = False, force_gray: bool = False
) -> npt.NDArray[np.uint8]:
    """Return a Pillow image as C x H x W bytes: three channels (BGR) or one.

    Raises:
        ValueError: both kinds are forced.
    """
    if force_color and force_gray:
        raise ValueError("force_color and force_gray exclude each other")
    image.info.pop("transparency", None)  # Pillow would warn that it is lost
    gray = image.mode in ("1", "L", "LA", "La", "I", "F") or image.mode.startswith("I;16")
    if image.mode == "I" or image.mode.startswith("I;16"):
        # Pillow would clip 16 bits to 8; the upper 8 are what the picture shows.
        wide = np.asarray(image).astype(np.int64)
        image = Image.fromarray(np.clip(wide >> 8, 0, 255).astype(np.uint8))
    if force_gray or (gray and not force_color):
        return np.asarray(image.convert("L"), dtype=np.uint8)[np.newaxis]
    colours = np.asarray(image.convert("RGB"), dtype=np.uint8)
    return np.ascontiguousarray(colours[:, :, ::-1].transpose(2, 0, 1))


def times(shape: Sequence[int]) -> str:
    """Return a shape as text, such as 3x227x227."""
    return "x".join(str(size) for size in shape)
