"""LSTMUnit: one step of an LSTM, without its weights.

Bottoms: c_prev 1 x N x D; x 1 x N x 4D, what goes into the gates i, f, o and g, in that order;
cont 1 x N, 0 where a sequence begins. Tops: c and h, 1 x N x D.

    i, f, o = 1 / (1 + e^-x)      g = tanh(x)
    c = cont * f * c_prev + i * g      h = o * tanh(c)
    dc += dh * o * (1 - tanh(c)^2)      dc_prev = dc * cont * f
    di, df, do, dg = dc * g, dc * cont * c_prev, dh * tanh(c), dc * i, each times its gate's slope

cont takes no gradient. Backward reads: c_prev and x, within a bound, and cont, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, FloatArray, Reads


class Gates(NamedTuple):
    """The gates' values, each N x D."""

    i: FloatArray
    f: FloatArray
    o: FloatArray
    g: FloatArray


def gates(x: FloatArray) -> Gates:
    """Return the gates for what goes into them, N x 4D."""
    size = x.shape[1] // 4
    open_share = 0.5 * np.tanh(0.5 * x[:, : 3 * size]) + 0.5  # the sigmoid, without overflow
    i, f, o = np.split(open_share, 3, axis=1)
    return Gates(i, f, o, np.tanh(x[:, 3 * size :]))


def next_cell(values: Gates, c_prev: FloatArray, cont: FloatArray) -> FloatArray:
    """Return c, N x D; cont is N x 1."""
    return np.asarray(cont * values.f * c_prev + values.i * values.g)


def step_back(
    values: Gates,
    c_prev: FloatArray,
    c: FloatArray,
    cont: FloatArray,
    dc: FloatArray,
    dh: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the gradients of x, N x 4D, and of c_prev, from those of c and h."""
    i, f, o, g = values
    bent = np.tanh(c)
    dc = dc + dh * o * (1 - bent * bent)
    dx = np.concatenate(
        [
            dc * g * i * (1 - i),
            dc * cont * c_prev * f * (1 - f),
            dh * bent * o * (1 - o),
            dc * i * (1 - g * g),
        ],
        axis=1,
    )
    return dx, dc * cont * f


class LSTMUnit(BuiltIn):
    """The LSTMUnit layer; see the module."""

    bottom_count = (3, 3)
    top_count = (2, 2)
    differentiable_bottoms = 2

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops; ValueError unless the bottoms fit each other."""
        cell, x, cont = (tuple(blob.shape) for blob in bottom)
        if len(cell) != 3 or cell[0] != 1:
            raise ValueError(f"c_prev has shape {cell}, needs 1 x N x D")
        if x != (1, cell[1], 4 * cell[2]) or cont != (1, cell[1]):
            raise ValueError(
                f"x has shape {x} and cont {cont}; a c_prev of shape {cell} needs "
                f"{(1, cell[1], 4 * cell[2])} and {(1, cell[1])}"
            )
        for blob in top:
            blob.reshape(*cell)

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """All bottoms."""
        return {0: Quality.BOUNDED, 1: Quality.BOUNDED, 2: Quality.EXACT}, {}

    def _step(self, bottom: Sequence[Any]) -> tuple[Gates, FloatArray, FloatArray, FloatArray]:
        """Return the gates, c_prev, cont and c."""
        values = gates(bottom[1].data[0])
        c_prev, cont = bottom[0].data[0], bottom[2].data[0][:, np.newaxis]
        return values, c_prev, cont, next_cell(values, c_prev, cont)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write c and h."""
        values, _, _, c = self._step(bottom)
        top[0].data[0] = c
        top[1].data[0] = values.o * np.tanh(c)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write the gradients of c_prev and x."""
        values, c_prev, cont, c = self._step(bottom)
        dx, dc_prev = step_back(values, c_prev, c, cont, top[0].diff[0], top[1].diff[0])
        for index, gradient in enumerate((dc_prev, dx)):
            if propagate_down[index]:
                bottom[index].diff[0] = gradient
