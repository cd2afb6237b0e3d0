"""Image files: read, decoded and resized in several threads, with errors that name the file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.data.datum import decode_image
from caffe.resample import resize_axis

Pixels = npt.NDArray[np.uint8]

_MOST_THREADS = 8


def decoding_threads() -> ThreadPoolExecutor:
    """Return threads to decode with: Pillow works without Python's lock."""
    return ThreadPoolExecutor(decoding_thread_count(), thread_name_prefix="decode")


def decoding_thread_count() -> int:
    """Return how many they are: one a core, up to eight."""
    return min(len(os.sched_getaffinity(0)), _MOST_THREADS)


def rooted(root: str, name: str) -> Path:
    """Return the file `name` below `root`; as in Caffe, below it even if it begins with a slash."""
    return Path(f"{root}/{name}") if root else Path(name)


def read_file(path: Path, where: str) -> bytes:
    """Return a file's content.

    Args:
        path: the file.
        where: which line of which list names it, for messages.

    Raises:
        OSError: of the kind that reading raised; says where, which file and why.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{where}: the file '{path}' does not exist") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(f"{where}: cannot read the file '{path}': {reason}") from error


def decode(content: bytes, path: Path, where: str, color: bool) -> Pixels:
    """Return the image in a file's content as C x H x W: three channels (BGR), or one.

    Raises:
        ValueError: no image, or a damaged one; says where and which file.
    """
    try:
        return decode_image(content, force_color=color, force_gray=not color)
    except ValueError as error:
        raise ValueError(f"{where}: '{path}': {error}") from error


def resize(image: Pixels, height: int, width: int) -> Pixels:
    """Return `image`, C x H x W, in another size: linear between pixels, rounded.

    Pixel i of n, where there were m, is taken at (i + 1/2) m/n - 1/2. Nothing is averaged where an
    image shrinks. This is OpenCV's default, which BVLC Caffe uses; the layers ImageData and
    WindowData and all that makes databases resize so.
    """
    if image.shape[1:] == (height, width):
        return image
    floats = resize_axis(resize_axis(image, 1, height, 1), 2, width, 1)
    return np.clip(np.rint(floats), 0, 255).astype(np.uint8)
