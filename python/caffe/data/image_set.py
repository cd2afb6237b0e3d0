"""Lists of images to databases: what convert_imageset does."""

from __future__ import annotations

import io
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from caffe.data.datum import array_to_datum, decode_image, encoded_datum
from caffe.data.image_list import Entry, read_image_list
from caffe.data.lmdb_writer import LmdbWriter
from caffe.names import suggestion
from caffe.progress import Progress
from caffe.proto import caffe_pb2 as pb

_MOST_KEY_BYTES = 511  # LMDB's
_JPEG_QUALITY = 95  # OpenCV's default, of 100


@dataclass
class ImageSetOptions:
    """What becomes of the images.

    Attributes:
        size: (height, width) to resize to; None leaves them.
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


@dataclass
class Conversion:
    """What came of a list."""

    count: int = 0  # records written
    skipped: list[str] = field(default_factory=list)  # a line a file: where, and why


def convert_imageset(
    root: str | Path,
    list_file: str | Path,
    out: str | Path,
    options: ImageSetOptions | None = None,
    *,
    shuffle_seed: int | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> Conversion:
    """Write the images that `list_file` names, with their labels, to an LMDB at `out`.

    The keys are the number in the list and the path, as in BVLC Caffe. The database is there when
    all is done, or not at all.

    Args:
        root: folder that the paths are relative to.
        list_file: see `read_image_list`.
        out: folder of the database.
        options: what becomes of the images.
        shuffle_seed: shuffle the order with this seed; None keeps it.
        strict: stop at the first image that cannot be read, instead of leaving it out.
        overwrite: replace a database that is there.

    Returns:
        How many records were written, and which files were left out.

    Raises:
        FileNotFoundError, FileExistsError: the list is missing, or the output is there already.
        ValueError: a bad line, no image that can be read, sizes that differ if they are checked;
            if strict, an unreadable or missing image too.
    """
    options = options or ImageSetOptions()
    entries = read_image_list(list_file)
    if shuffle_seed is not None:
        random.Random(shuffle_seed).shuffle(entries)
    done = Conversion()
    first: tuple[int, ...] | None = None
    with LmdbWriter(out, overwrite) as writer, Progress(len(entries), "images") as progress:
        for number, entry in enumerate(entries):
            progress.update(number)
            where = f"{list_file}:{entry.line}: '{entry.path}'"
            try:
                datum = _datum(Path(root) / entry.path, entry, options)
            except (OSError, ValueError) as error:
                reason = _reason(where, error)
                if strict:
                    raise type(error)(reason) from error
                done.skipped.append(reason)
                continue
            shape = (datum.channels, datum.height, datum.width)
            first = first or shape
            if options.check_size and shape != first:
                raise ValueError(
                    f"{where} is {shape[1]}x{shape[2]}, the first image {first[1]}x{first[2]}; "
                    "resize them to one size"
                )
            key = f"{number:08}_{entry.path}".encode(errors="surrogateescape")
            writer.put(key[:_MOST_KEY_BYTES], datum.SerializeToString())
            done.count += 1
        if not done.count:
            raise ValueError(
                f"none of the {len(entries)} images can be read; the first: {done.skipped[0]}"
            )
    return done


def images_to_lmdb(
    root: str | Path,
    list_file: str | Path,
    out: str | Path,
    *,
    size: tuple[int, int] | None = None,
    gray: bool = False,
    shuffle_seed: int | None = None,
    overwrite: bool = False,
) -> int:
    """Write images of one size to an LMDB at `out`; every image must be readable.

    Arguments and errors are those of convert_imageset(), strict and with sizes checked.

    Returns:
        The number of records.
    """
    options = ImageSetOptions(size=size, gray=gray, check_size=True)
    done = convert_imageset(
        root,
        list_file,
        out,
        options,
        shuffle_seed=shuffle_seed,
        strict=True,
        overwrite=overwrite,
    )
    return done.count


def _reason(where: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{where} does not exist below the root folder"
    text = error.strerror if isinstance(error, OSError) and error.strerror else error
    return f"{where}: {text}"


def _datum(path: Path, entry: Entry, options: ImageSetOptions) -> pb.Datum:
    content = path.read_bytes()
    pixels = decode_image(content, force_color=not options.gray, force_gray=options.gray)
    resize = options.size is not None and pixels.shape[1:] != options.size
    if resize and options.size is not None:
        pixels = _resized(pixels, options.size)
    if not options.encoded:
        return array_to_datum(pixels, entry.label)
    with Image.open(io.BytesIO(content)) as image:
        written_as = image.format or ""
    form = _pillow_format(options.encode_type) if options.encode_type else written_as
    if form == written_as and not resize and len(decode_image(content)) == len(pixels):
        return encoded_datum(content, entry.label)
    return encoded_datum(_encoded(pixels, form), entry.label)


def _resized(pixels: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    channels = [
        np.asarray(Image.fromarray(channel).resize((size[1], size[0]), Image.Resampling.BILINEAR))
        for channel in pixels
    ]
    return np.stack(channels)


def _encoded(pixels: npt.NDArray[np.uint8], form: str) -> bytes:
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
