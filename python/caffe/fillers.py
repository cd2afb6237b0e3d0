"""Fillers: the first values of learnable blobs, and of DummyData's tops."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from caffe.names import suggestion
from caffe.proto import caffe_pb2

#: Names of all fillers, as in FillerParameter.type.
NAMES = (
    "constant",
    "gaussian",
    "positive_unitball",
    "uniform",
    "xavier",
    "msra",
    "bilinear",
)
#: Fillers that draw random numbers.
RANDOM = frozenset(NAMES) - {"constant", "bilinear"}

_Array = npt.NDArray[np.float32]


def fill(
    array: _Array,
    param: caffe_pb2.FillerParameter,
    rng: np.random.Generator,
    fan_in: float | None = None,
    fan_out: float | None = None,
) -> None:
    """Overwrite `array` with what `param` asks for.

    Args:
        array: any shape, float32.
        param: type and options of the filler.
        rng: source of random numbers; one on Philox gives the same values on every machine.
        fan_in: inputs of each output; by default the count over axis 0, as Caffe counts.
        fan_out: outputs of each input; by default the count over axis 1, as Caffe counts.

    Raises:
        ValueError: unknown type, or options or a shape that do not fit it.
    """
    check(param)
    if array.size == 0:
        return
    if param.type == "constant":
        array[...] = param.value
    elif param.type == "uniform":
        array[...] = rng.uniform(param.min, param.max, array.shape)
    elif param.type == "gaussian":
        _gaussian(array, param, rng)
    elif param.type == "positive_unitball":
        _positive_unitball(array, rng)
    elif param.type == "bilinear":
        _bilinear(array)
    else:
        default_in, default_out = fans(array.shape)
        fan = _fan(
            param,
            default_in if fan_in is None else fan_in,
            default_out if fan_out is None else fan_out,
        )
        if param.type == "xavier":
            limit = math.sqrt(3 / fan)
            array[...] = rng.uniform(-limit, limit, array.shape)
        else:
            array[...] = rng.normal(0, math.sqrt(2 / fan), array.shape)


def check(param: caffe_pb2.FillerParameter) -> None:
    """Make sure that `param` is a filler that can be carried out on some shape.

    Raises:
        ValueError: unknown type (the nearest is named), or impossible options.
    """
    if param.type not in NAMES:
        raise ValueError(f"unknown filler '{param.type}'{suggestion(param.type, NAMES)}")
    if param.type == "gaussian" and param.std < 0:
        raise ValueError(f"filler gaussian has std {param.std:g}, needs 0 or more")
    if param.type == "uniform" and param.min > param.max:
        raise ValueError(f"filler uniform has min {param.min:g} above max {param.max:g}")
    if param.sparse >= 0 and param.type != "gaussian":
        raise ValueError(f"filler {param.type} cannot be sparse; only gaussian can")


def fans(shape: tuple[int, ...]) -> tuple[float, float]:
    """Return (fan_in, fan_out) of a weight blob: its count over axis 0 and over axis 1."""
    count = math.prod(shape)
    fan_in = count / shape[0] if shape and shape[0] else count
    fan_out = count / shape[1] if len(shape) > 1 and shape[1] else count
    return fan_in, fan_out


def _fan(param: caffe_pb2.FillerParameter, fan_in: float, fan_out: float) -> float:
    if param.variance_norm == caffe_pb2.FillerParameter.FAN_OUT:
        return fan_out
    if param.variance_norm == caffe_pb2.FillerParameter.AVERAGE:
        return (fan_in + fan_out) / 2
    return fan_in


def _gaussian(array: _Array, param: caffe_pb2.FillerParameter, rng: np.random.Generator) -> None:
    array[...] = rng.normal(param.mean, param.std, array.shape)
    if param.sparse >= 0:
        # So that each output has `sparse` inputs in the mean; Caffe divides by the outputs' number.
        outputs = array.shape[0] if array.ndim else 1
        keep = min(param.sparse / outputs, 1.0)
        array *= rng.random(array.shape) < keep


def _positive_unitball(array: _Array, rng: np.random.Generator) -> None:
    values = rng.random(array.shape)
    rows = values.reshape(array.shape[0] if array.ndim else 1, -1)
    rows /= rows.sum(axis=1, keepdims=True)
    array[...] = values


def _bilinear(array: _Array) -> None:
    """Fill with the kernel that makes a Deconvolution interpolate bilinearly."""
    if array.ndim != 4 or array.shape[2] != array.shape[3]:
        raise ValueError(
            f"filler bilinear needs four axes and square kernels, the blob has shape {array.shape}"
        )
    size = array.shape[3]
    factor = math.ceil(size / 2)
    centre = (2 * factor - 1 - factor % 2) / (2 * factor)
    weights = 1 - np.abs(np.arange(size) / factor - centre)
    array[...] = np.outer(weights, weights)
