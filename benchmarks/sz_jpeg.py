"""JPEG of activations at a given error, for sz_bench.py.

JPEG has no bound: what can be held equal is the root mean square of the error. Each plane is scaled
to 8 bits by the range of its layer, so at tight bounds rounding to 8 bits alone may err more than
asked; the figure beside the size says by how much.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from sz_rivals import sample

BLOCK = 8  # pixels, of JPEG's transform
LONGEST = 65_000  # pixels, of a picture's side


@dataclass(frozen=True)
class Jpeg:
    """A layer as JPEG pictures."""

    quality: int
    bytes: int
    rms: float  # of the error, in the values' unit


def jpeg_of_rms(values: np.ndarray, restored: np.ndarray) -> Jpeg:
    """Return JPEG at the quality whose error is closest to that of `restored`.

    Args:
        values: N x C x H x W, or any shape whose last two axes are a plane.
        restored: what another compressor made of them; the same shape.

    The quality is searched on a sample.
    """
    part = sample(values)
    target = _rms(part - sample(restored))
    low, high = 1, 100  # the error at high is the first not above the target, or 100's
    while low < high:
        middle = (low + high) // 2
        if _encode(part, values, middle).rms <= target:
            high = middle
        else:
            low = middle + 1
    near = [_encode(part, values, quality) for quality in range(max(low - 1, 1), low + 1)]
    closest = min(near, key=lambda one: abs(np.log(max(one.rms, 1e-30) / max(target, 1e-30))))
    return _encode(values, values, closest.quality)


def _encode(values: np.ndarray, layer: np.ndarray, quality: int) -> Jpeg:
    """Encode `values` by the range of `layer`."""
    from PIL import Image  # noqa: PLC0415 - an optional rival

    low = float(layer.min())
    step = (float(layer.max()) - low) / 255 or 1.0
    size = 0
    squares = 0.0
    for picture, kept in _pictures(values):
        pixels = np.rint((picture - low) / step).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "JPEG", quality=quality, optimize=True)
        size += len(stream.getvalue())
        decoded = np.asarray(Image.open(stream), np.float32) * np.float32(step) + np.float32(low)
        squares += float(np.sum((decoded - picture)[kept] ** 2, dtype=np.float64))
    return Jpeg(quality, size, (squares / values.size) ** 0.5)


def _pictures(values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pictures, the planes one below the other, and masks of the pixels that are values.

    Planes are continued by their edge to whole blocks, so that no block sees two of them and
    the headers of many small files do not count.
    """
    single = values.shape[-2] == 1  # a matrix, kept as N x 1 x 1 x K
    planes = values.reshape(1, -1, values.shape[-1]) if single else values
    planes = planes.reshape(-1, *planes.shape[-2:])
    height, width = planes.shape[1:]
    padding = [(0, 0), (0, -height % BLOCK), (0, -width % BLOCK)]
    padded = np.pad(planes, padding, mode="edge")
    kept = np.pad(np.ones((1, height, width), bool), padding)
    tall, wide = padded.shape[1:]
    if max(tall, wide) > LONGEST:
        raise ValueError(f"a plane of {height} x {width} is too large for a JPEG picture")
    each = LONGEST // tall
    parts = [padded[start : start + each] for start in range(0, len(padded), each)]
    return [
        (part.reshape(-1, wide), np.broadcast_to(kept, part.shape).reshape(-1, wide))
        for part in parts
    ]


def _rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(error, dtype=np.float64))))
