"""Datum records: raw, as floats, and encoded in every form that Pillow reads."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from caffe.data import datum
from caffe.proto import caffe_pb2

RNG = np.random.default_rng(0)


def encoded(image, form="PNG"):
    stream = io.BytesIO()
    image.save(stream, form)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_arrays_come_back(dtype):
    image = RNG.integers(0, 255, (3, 4, 5)).astype(dtype)
    message = datum.array_to_datum(image, 7)
    again = datum.datum_to_array(message)
    assert (message.label, again.dtype) == (7, dtype)
    np.testing.assert_array_equal(again, image)


def test_raw_record_is_not_copied_into_an_array():
    value = datum.array_to_datum(np.zeros((1, 2, 3), np.uint8), 4).SerializeToString()
    record = datum.parse_record(value)
    assert record == (bytes(6), (1, 2, 3), 4)


def test_colours_are_blue_green_red():
    pixels = RNG.integers(0, 255, (4, 5, 3)).astype(np.uint8)
    message = datum.encoded_datum(encoded(Image.fromarray(pixels)), 1)
    assert (message.channels, message.height, message.width) == (3, 4, 5)
    np.testing.assert_array_equal(
        datum.datum_to_array(message), pixels[:, :, ::-1].transpose(2, 0, 1)
    )


@pytest.mark.parametrize(
    ("mode", "channels"),
    [("L", 1), ("1", 1), ("LA", 1), ("RGB", 3), ("RGBA", 3), ("P", 3), ("I;16", 1)],
)
def test_every_mode_becomes_one_channel_or_three(mode, channels):
    if mode == "I;16":
        image = Image.fromarray(np.full((4, 5), 0x1234, np.uint16))
    else:
        image = Image.new("L", (5, 4), 255).convert(mode)
    content = encoded(image)
    assert datum.decode_image(content).shape == (channels, 4, 5)
    assert datum.decode_image(content, force_color=True).shape == (3, 4, 5)
    assert datum.decode_image(content, force_gray=True).shape == (1, 4, 5)


def test_sixteen_bits_keep_the_upper_eight():
    content = encoded(Image.fromarray(np.full((2, 2), 0x1234, np.uint16)))
    assert (datum.decode_image(content) == 0x12).all()


def test_cmyk_jpeg():
    content = encoded(Image.new("CMYK", (5, 4)), "JPEG")
    assert (datum.decode_image(content) == 255).all()


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (caffe_pb2.Datum(channels=1, height=2, width=2, data=b"abc"), "holds 3 values, its shape"),
        (caffe_pb2.Datum(channels=0, height=2, width=2), "holds nothing"),
        (caffe_pb2.Datum(channels=-1, height=-2, width=2, data=b"abcd"), "holds nothing"),
        (caffe_pb2.Datum(channels=1, height=2, width=2, float_data=[1.0]), "holds 1 values"),
        (
            caffe_pb2.Datum(channels=2**31 - 1, height=2**31 - 1, width=2**31 - 1, data=b"a"),
            "needs 9903520300447984150353281023",
        ),
        (caffe_pb2.Datum(encoded=True, data=b"no image"), "cannot decode"),
        (caffe_pb2.Datum(encoded=True), "cannot decode an image of 0 bytes: it is empty"),
        # Pillow raises NotImplementedError here
        (
            caffe_pb2.Datum(encoded=True, data=b"DDS \x7c\0\0\0" + bytes(120)),
            "cannot decode the image of 128 bytes",
        ),
        (
            caffe_pb2.Datum(encoded=True, data=encoded(Image.new("RGB", (90, 90)))[:60]),
            "cannot decode",
        ),
    ],
)
def test_bad_records(message, error):
    with pytest.raises(ValueError, match=error):
        datum.parse_record(message.SerializeToString())


def test_no_datum():
    with pytest.raises(ValueError, match="no Datum"):
        datum.parse_record(b"\xff\xff\xff")


def test_bad_arrays_and_labels():
    with pytest.raises(ValueError, match="three axes"):
        datum.array_to_datum(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="32-bit"):
        datum.array_to_datum(np.zeros((1, 2, 2)), 2**31)
