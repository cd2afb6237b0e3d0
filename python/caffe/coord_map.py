"""Which pixel of one top lies where in another: pycaffe's coord_map, for nets of a NetSpec.

A map is (axis, a, b): coordinate x of one top's spatial axes, the first of which is `axis`, lies at
a x + b of the other. Convolution and pooling with window k (dilation included), padding p and
stride s take x to (x + p - (k - 1) / 2) / s; deconvolution takes it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from caffe.net_spec import Function, Top, layers

#: Layers whose tops lie on their bottoms, pixel by pixel.
PASS_THROUGH_LAYERS = frozenset(
    {
        "AbsVal",
        "BNLL",
        "BatchNorm",
        "Bias",
        "Clip",
        "Dropout",
        "ELU",
        "Eltwise",
        "Exp",
        "LRN",
        "Log",
        "MVN",
        "PReLU",
        "Power",
        "ReLU",
        "Scale",
        "Sigmoid",
        "Softmax",
        "Split",
        "Swish",
        "TanH",
        "Threshold",
    }
)
_WINDOWS = frozenset({"Convolution", "Deconvolution", "Im2col", "Pooling"})
_NOT_MAPPED = ("kernel_h", "kernel_w", "pad_h", "pad_w", "stride_h", "stride_w", "global_pooling")
_SPATIAL_AXIS = 1  # what layers have the axis before the first spatial one

Numbers = npt.NDArray[np.float64]


class UndefinedMapException(Exception):
    """A layer whose tops have no fixed place on its bottoms."""


class AxisMismatchException(Exception):
    """Layers on the way count spatial axes from different ones."""


class CropError(ValueError, AssertionError):
    """Two tops that no crop brings together; an AssertionError for those who know pycaffe."""


class CoordMap(NamedTuple):
    """x goes to a x + b, along the axes behind `axis`; None: no layer has said which."""

    ax: int | None
    a: Numbers
    b: Numbers


def _identity() -> CoordMap:
    return CoordMap(None, np.ones(1), np.zeros(1))


def _own(fn: Function, message: str) -> Mapping[str, Any]:
    """Return a layer's fields, given one by one or as its message."""
    found = fn.params.get(message, fn.params)
    if not isinstance(found, Mapping):
        raise TypeError(f"{fn.type_name}: {message} needs to be a dict to be mapped")
    return found


def _numbers(value: object) -> Numbers:
    return np.array(value, ndmin=1, dtype=np.float64)


def conv_params(fn: Function) -> tuple[int, Numbers, Numbers, Numbers]:
    """Return axis, strides, windows (with dilation) and paddings of a layer with a window.

    Raises UndefinedMapException where the layer gives sizes by height and width.
    """
    own = _own(fn, "pooling_param" if fn.type_name == "Pooling" else "convolution_param")
    for name in _NOT_MAPPED:
        if name in own:
            raise UndefinedMapException(f"{fn.type_name} with {name} cannot be mapped")
    if "kernel_size" not in own:
        raise UndefinedMapException(f"{fn.type_name} has no kernel_size")
    window = (_numbers(own["kernel_size"]) - 1) * _numbers(own.get("dilation", 1)) + 1
    stride, pad = _numbers(own.get("stride", 1)), _numbers(own.get("pad", 0))
    return int(own.get("axis", _SPATIAL_AXIS)), stride, window, pad


def crop_params(fn: Function) -> tuple[int, Numbers]:
    """Return the first axis that a Crop layer crops, and its offsets."""
    own = _own(fn, "crop_param")
    return int(own.get("axis", 2)), _numbers(own.get("offset", 0))


def coord_map(fn: Function) -> CoordMap:
    """Return where a layer puts the coordinates of its first bottom.

    Raises UndefinedMapException for a layer that does not keep places.
    """
    if fn.type_name in _WINDOWS:
        axis, stride, window, pad = conv_params(fn)
        if fn.type_name == "Deconvolution":
            return CoordMap(axis, stride, (window - 1) / 2 - pad)
        return CoordMap(axis, 1 / stride, (pad - (window - 1) / 2) / stride)
    if fn.type_name in PASS_THROUGH_LAYERS:
        return _identity()
    if fn.type_name == "Crop":
        axis, offset = crop_params(fn)
        return CoordMap(axis - 1, np.ones(1), -offset)
    raise UndefinedMapException(f"{fn.type_name} has no fixed map of coordinates")


def compose(base_map: CoordMap, next_map: CoordMap) -> CoordMap:
    """Return base_map after next_map: a1 (a2 x + b2) + b1.

    Raises AxisMismatchException where the maps have different axes.
    """
    ax1, a1, b1 = base_map
    ax2, a2, b2 = next_map
    if ax1 is not None and ax2 is not None and ax1 != ax2:
        raise AxisMismatchException(f"one map is of axis {ax1}, the other of axis {ax2}")
    return CoordMap(ax2 if ax1 is None else ax1, a1 * a2, a1 * b2 + b1)


def inverse(coord_map: CoordMap) -> CoordMap:
    """Return the map back: (x - b) / a."""
    ax, a, b = coord_map
    return CoordMap(ax, 1 / a, -b / a)


def _bottoms(top: Top) -> tuple[Top, ...]:
    """Return what gives a top its place; the second bottom of Crop gives only a size."""
    return top.fn.inputs[:1] if top.fn.type_name == "Crop" else top.fn.inputs


def _maps_to(top: Top) -> dict[Top, CoordMap]:
    """Return a map to `top` from each top before it that has one; nearest first."""
    found = {top: _identity()}
    frontier = [top]
    while frontier:
        reached = frontier.pop(0)
        try:
            step = coord_map(reached.fn)
        except UndefinedMapException:
            continue
        for bottom in _bottoms(reached):
            if bottom not in found:
                found[bottom] = compose(found[reached], step)
                frontier.append(bottom)
    return found


def coord_map_from_to(top_from: Top, top_to: Top) -> CoordMap:
    """Return the map (axis, a, b) from coordinates of one top to those of another.

    Raises:
        RuntimeError: no layers that keep places lead from both to a common top.
        AxisMismatchException: layers on the way count spatial axes from different ones.
    """
    from_maps, to_maps = _maps_to(top_from), _maps_to(top_to)
    for top, to_map in to_maps.items():
        if top in from_maps:
            return compose(to_map, inverse(from_maps[top]))
    raise RuntimeError("Could not compute map between tops; are they connected by spatial layers?")


def crop(top_from: Top, top_to: Top) -> Top:
    """Return a Crop layer that cuts `top_from` to the size of `top_to`, pixel on pixel.

    Raises:
        CropError: the tops are scaled differently, or the offset is negative or no whole number.
        RuntimeError: see coord_map_from_to().
    """
    ax, a, b = coord_map_from_to(top_from, top_to)
    if not np.allclose(a, 1):
        raise CropError(f"scale mismatch on crop (a = {a})")
    if not (b <= 0).all():
        raise CropError(f"cannot crop negative offset (b = {b})")
    if not np.allclose(np.round(b), b):
        raise CropError(f"cannot crop noninteger offset (b = {b})")
    axis = (_SPATIAL_AXIS if ax is None else ax) + 1
    offset = [int(value) for value in -np.round(b)]
    cropped: Top = layers.Crop(top_from, top_to, crop_param=dict(axis=axis, offset=offset))
    return cropped
