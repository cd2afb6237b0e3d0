"""Resizing arrays of floats by interpolation, in NumPy alone.

Sample i of n, of an axis that had m, lies at (i + 1/2) m/n - 1/2; beyond the edge the edge goes on.
Nothing is averaged when an axis shrinks, as in the versions of scikit-image of pycaffe's time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
_Weights = npt.NDArray[np.float64]


def _nearest(part: _Weights) -> list[tuple[int, _Weights]]:
    upper = (part >= 0.5).astype(np.float64)
    return [(0, 1 - upper), (1, upper)]


def _linear(part: _Weights) -> list[tuple[int, _Weights]]:
    return [(0, 1 - part), (1, part)]


def _cubic(part: _Weights) -> list[tuple[int, _Weights]]:
    """Cubic convolution of Keys (1981), a = -1/2: exact for parabolas."""
    t, t2, t3 = part, part**2, part**3
    return [
        (-1, (-t + 2 * t2 - t3) / 2),
        (0, (2 - 5 * t2 + 3 * t3) / 2),
        (1, (t + 4 * t2 - 3 * t3) / 2),
        (2, (t3 - t2) / 2),
    ]


#: Order -> weights of the samples around a place, from how far it is from the one below (0 to 1).
_KERNELS: dict[int, Callable[[_Weights], list[tuple[int, _Weights]]]] = {
    0: _nearest,
    1: _linear,
    3: _cubic,
}


def resize_axis(
    array: FloatArray | npt.NDArray[np.uint8], axis: int, size: int, order: int
) -> FloatArray:
    """Return `array` with `size` samples along `axis`, as floats.

    Args:
        array: any shape, not empty; bytes need not be turned into floats before.
        axis: the axis to resize.
        size: its new size, 1 or more.
        order: 0 takes the nearest sample, 1 is linear, 3 is cubic.

    Raises:
        ValueError: another order, or a size below 1.
    """
    if order not in _KERNELS:
        raise ValueError(f"interpolation of order {order} is not offered: 0, 1 or 3")
    old = array.shape[axis]
    if size < 1 or old < 1:
        raise ValueError(f"cannot resize {old} samples to {size}: both need to be 1 or more")
    if size == old:
        return array.astype(np.float32, copy=False)
    place = (np.arange(size) + 0.5) * (old / size) - 0.5
    below = np.floor(place)
    shape = [1] * array.ndim
    shape[axis] = size
    result = np.zeros([*array.shape[:axis], size, *array.shape[axis + 1 :]], dtype=np.float32)
    for offset, weight in _KERNELS[order](place - below):
        index = np.clip(below.astype(np.int64) + offset, 0, old - 1)
        result += array.take(index, axis) * weight.reshape(shape).astype(np.float32)
    return result
