"""Image files to records: decoded, resized, and stored as pixels or as image files."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from caffe.data.datum import array_to_datum, decode_image, encoded_datum
from caffe.data.image_file import Pixels, resize
from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb

_JPEG_QUALITY = 95  # OpenCV's default, of 100


@dataclass
class ImageSetOptions:
    """What becomes of the images.

    Attributes:
        size: (height, width) to resize to, as `image_file.resize` does; None leaves them.
        gray: one channel instead of three.
        check_size: refuse images of another size than the first.
        encoded: store image files rather than pixels.
        encode_type: format to store them in (png, jpg); that of the file by default. A file that
            needs no change is stored as it is.
    """

    size: tuple[int, int] | None = None
    gray: bool = False
    check_size: bool = False
    encoded: bool = False
    encode_type: str = ""

    def __post_init__(self) -> None:
        """Refuse what makes no sense (ValueError)."""
        if self.size is not None and min(self.size) < 1:
            raise ValueError(f"cannot resize images to {self.size[0]}x{self.size[1]}")
        if self.encode_type and not self.encoded:
            raise ValueError("encode_type has a meaning with encoded only")
        if self.encode_type:
            _pillow_format(self.encode_type)


def make_record(content: bytes, label: int, options: ImageSetOptions) -> tuple[pb.Datum, Pixels]:
    """Return the record of an image file, and its pixels: C x H x W, BGR or gray.

    Raises:
        ValueError: no image, a damaged one, or one that cannot be written in its own format.
    """
    pixels = decode_image(content, force_color=not options.gray, force_gray=options.gray)
    resized = options.size is not None and pixels.shape[1:] != options.size
    if options.size is not None:
        pixels = resize(pixels, *options.size)
    if not options.encoded:
        return array_to_datum(pixels, label), pixels
    with Image.open(io.BytesIO(content)) as image:
        written_as = image.format or ""
    form = _pillow_format(options.encode_type) if options.encode_type else written_as
    if form != written_as or resized or len(decode_image(content)) != len(pixels):
        content = _encoded(pixels, form)
    return encoded_datum(content, label), pixels


def _encoded(pixels: Pixels, form: str) -> bytes:
    """Return C x H x W pixels (BGR or gray) as an image file of a format of Pillow's."""
    if form not in Image.SAVE:
        raise ValueError(f"{form} images cannot be written; give an encode_type such as png")
    gray = len(pixels) == 1
    image = Image.fromarray(pixels[0] if gray else np.moveaxis(pixels[::-1], 0, 2).copy())
    file = io.BytesIO()
    image.save(file, form, **({"quality": _JPEG_QUALITY} if form == "JPEG" else {}))
    return file.getvalue()


def _pillow_format(kind: str) -> str:
    """Return Pillow's name of a format from a file's ending. ValueError for one it cannot write."""
    ending = f".{kind.lower()}"
    endings = {
        known: form for known, form in Image.registered_extensions().items() if form in Image.SAVE
    }
    if ending not in endings:
        raise ValueError(
            f"cannot store images as '{kind}'{suggestion(kind, [e[1:] for e in endings], 0)}"
        )
    return endings[ending]
