"""Batch transformation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

class TransformOptions:
    def __init__(self) -> None: ...
    crop_size: int
    random_crop: bool
    mirror: bool
    scale: float
    mean: list[float]
    random_key: int

def draw_window(
    options: TransformOptions, channels: int, height: int, width: int, index: int
) -> tuple[int, int, bool]: ...
def transform_batch(
    images: Sequence[Buffer | npt.NDArray[Any]],
    shapes: npt.NDArray[np.int64],
    options: TransformOptions,
    first_index: int,
    out: npt.NDArray[np.float32],
) -> None: ...
