"""Im2col: lays out what each window of a convolution sees, as Convolution would read it.

Bottom: x, with channels along `axis` (1) and spatial axes behind it. Top: the axes before, then
channels * taps, then one place for each window; taps are kernel positions in row-major order.

    y[n, c * taps + t, p] = x[n, c, p stride - pad + t dilation], 0 in the padding
    dx = the sum of dy over all windows that see it

Options are convolution_param's kernel_size, stride, pad, dilation and axis.
Backward reads: nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from caffe._core.layers import BatchAxis
from caffe.layer_types.builtin import BuiltIn, canonical_axis
from caffe.layer_types.native import per_axis


class Im2col(BuiltIn):
    """The Im2col layer; see the module."""

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the options; ValueError where they contradict, or there is no kernel."""
        param = self.layer_param.convolution_param
        self._options = {
            "kernel_size": per_axis(param, "kernel_size", "kernel", list(param.kernel_size)),
            "stride": per_axis(param, "stride", "stride", list(param.stride)) or [1],
            "pad": per_axis(param, "pad", "pad", list(param.pad)) or [0],
            "dilation": list(param.dilation) or [1],
        }
        if not self._options["kernel_size"]:
            raise ValueError("has no kernel_size")

    def _option(self, name: str, axes: int) -> list[int]:
        values = self._options[name]
        if len(values) not in (1, axes):
            raise ValueError(
                f"has {len(values)} values of {name}, needs 1 or {axes}, one for each spatial axis"
            )
        least = 0 if name == "pad" else 1
        if min(values) < least:
            raise ValueError(f"{name} is {min(values)}, needs to be at least {least}")
        return values * axes if len(values) == 1 else values

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shape of the top; ValueError where options and bottom do not fit."""
        shape = tuple(bottom[0].shape)
        axis = canonical_axis(self.layer_param.convolution_param.axis, shape)
        spatial = shape[axis + 1 :]
        if not spatial:
            raise ValueError(f"bottom 0 of shape {shape} has no spatial axes behind axis {axis}")
        self._kernel = self._option("kernel_size", len(spatial))
        self._stride = self._option("stride", len(spatial))
        self._pad = self._option("pad", len(spatial))
        self._dilation = self._option("dilation", len(spatial))
        self._windows = []
        for size, kernel, stride, pad, dilation in zip(
            spatial, self._kernel, self._stride, self._pad, self._dilation
        ):
            reach = dilation * (kernel - 1) + 1
            if reach > size + 2 * pad:
                raise ValueError(
                    f"the kernel reaches over {reach} positions, but bottom 0 of shape {shape} has "
                    f"{size + 2 * pad} with padding"
                )
            self._windows.append((size + 2 * pad - reach) // stride + 1)
        outer = math.prod(shape[:axis])
        self._image = (outer, shape[axis], *spatial)
        self._columns = (outer, shape[axis], math.prod(self._kernel), *self._windows)
        self.batch_axis = BatchAxis.INDEPENDENT if axis else BatchAxis.COUPLED
        top[0].reshape(*shape[:axis], shape[axis] * self._columns[2], *self._windows)

    def _taps(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """For each tap: the windows that see the image there, and what they see, as indices."""
        spatial = self._image[2:]
        for number, tap in enumerate(itertools.product(*map(range, self._kernel))):
            windows, pixels = [], []
            for i, position in enumerate(tap):
                start = position * self._dilation[i] - self._pad[i]  # of the first window's pixel
                step = self._stride[i]
                first = max(0, -(start // step))
                last = min(self._windows[i], (spatial[i] - 1 - start) // step + 1)
                last = max(last, first)
                windows.append(slice(first, last))
                pixel = start + first * step
                pixels.append(slice(pixel, pixel + (last - first) * step, step))
            everything = slice(None)
            yield (everything, everything, number, *windows), (everything, everything, *pixels)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write what the windows see."""
        image = bottom[0].data.reshape(self._image)
        columns = top[0].data.reshape(self._columns)
        columns[...] = 0
        for windows, pixels in self._taps():
            columns[windows] = image[pixels]

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if not propagate_down[0]:
            return
        gradient = bottom[0].diff.reshape(self._image)
        columns = top[0].diff.reshape(self._columns)
        gradient[...] = 0
        for windows, pixels in self._taps():
            gradient[pixels] += columns[windows]
