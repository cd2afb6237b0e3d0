"""What LSTM and RNN have in common: blobs, shapes, and the arithmetic that needs no state.

Bottoms: x, T x N x ..., I values a step and sequence; cont, T x N, 0 where a sequence begins, else
1; optionally a static input, N x ..., J values, the same in every step; with expose_hidden the
states before the first step, 1 x N x D each. Tops: y, T x N x D; with expose_hidden the states
after the last step, 1 x N x D each.

What goes into a step is z_t = W_x x_t + b (+ W_s s) + W_h (cont_t * h_before), h the first state.
Without expose_hidden, each forward pass starts from the states that the one before ended with, as
in Caffe; gradients do not go back into an earlier pass. The states are no part of a snapshot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality, multiply
from caffe.layer_types.builtin import BuiltIn, FloatArray, Reads


class Recurrent(BuiltIn):
    """Base class of the recurrent layers."""

    #: Number of states; the first one is what W_h reads.
    states: int
    #: Values of z for each of the D outputs.
    gate_count: int

    def __init__(self) -> None:
        """Start from states of zero."""
        super().__init__()
        self._carried: list[FloatArray] = []

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the blobs W_x, b, W_s with a static input, and W_h.

        Raises:
            ValueError: num_output is 0, or the number of blobs does not fit.
        """
        param = self.layer_param.recurrent_param
        self.size = param.num_output
        if self.size < 1:
            raise ValueError("recurrent_param has num_output 0, needs 1 or more")
        self.exposed = self.states if param.expose_hidden else 0
        self.has_static = len(bottom) == 3 + self.exposed
        if len(bottom) - self.has_static != 2 + self.exposed or len(top) != 1 + self.exposed:
            raise ValueError(
                f"has {len(bottom)} bottoms and {len(top)} tops, needs {2 + self.exposed} bottoms "
                f"(one more with a static input) and {1 + self.exposed} tops"
            )
        _check_sequence(bottom)
        width = self.gate_count * self.size
        self.blobs.add_blob(width, math.prod(bottom[0].shape[2:]))
        self.blobs.add_blob(width)
        if self.has_static:
            self.blobs.add_blob(width, math.prod(bottom[2].shape[1:]))
        self.blobs.add_blob(width, self.size)

    @property
    def _hidden_index(self) -> int:
        """Which blob W_h is."""
        return 3 if self.has_static else 2

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops; ValueError unless the bottoms fit each other."""
        _check_sequence(bottom)
        steps, batch = bottom[0].shape[:2]
        inputs = math.prod(bottom[0].shape[2:])
        if inputs != self.blobs[0].shape[1]:
            raise ValueError(
                f"a step of x has {inputs} values, but the weights are for {self.blobs[0].shape[1]}"
            )
        if self.has_static:
            static = tuple(bottom[2].shape)
            if not static or static[0] != batch or math.prod(static[1:]) != self.blobs[2].shape[1]:
                raise ValueError(
                    f"the static input has shape {static}, needs {batch} sequences of "
                    f"{self.blobs[2].shape[1]} values"
                )
        state = (1, batch, self.size)
        for index in range(len(bottom) - self.exposed, len(bottom)):
            if tuple(bottom[index].shape) != state:
                raise ValueError(
                    f"bottom {index}, a state, has shape {tuple(bottom[index].shape)}, needs "
                    f"{state}"
                )
        top[0].reshape(steps, batch, self.size)
        for blob in top[1:]:
            blob.reshape(*state)

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """Inputs and outputs within a bound, cont and the states, which are small, exactly."""
        bottoms = {1: Quality.EXACT}
        if learns[0]:
            bottoms[0] = Quality.BOUNDED
        if self.has_static and learns[2]:
            bottoms[2] = Quality.BOUNDED
        for index in range(len(wanted) - self.exposed, len(wanted)):
            bottoms[index] = Quality.EXACT
        return bottoms, {0: Quality.BOUNDED}

    # -- for derived classes -----------------------------------------------------------------------

    def initial_states(self, bottom: Sequence[Any]) -> list[FloatArray]:
        """Return the states before the first step, N x D each."""
        if self.exposed:
            return [blob.data[0] for blob in bottom[len(bottom) - self.exposed :]]
        batch = bottom[0].shape[1]
        if not self._carried or self._carried[0].shape != (batch, self.size):
            self._carried = [np.zeros((batch, self.size), np.float32) for _ in range(self.states)]
        return self._carried

    def final_states(self, top: Sequence[Any], states: Sequence[FloatArray]) -> None:
        """Hand on the states after the last step: to tops, or to the next pass."""
        if self.exposed:
            for blob, state in zip(top[1:], states):
                blob.data[0] = state
        else:
            self._carried = [np.array(state) for state in states]

    def project(self, bottom: Sequence[Any]) -> FloatArray:
        """Return the part of z that needs no state, T x N x width."""
        steps, batch = bottom[0].shape[:2]
        x = bottom[0].data.reshape(steps * batch, -1)
        z = np.empty((steps, batch, self.blobs[1].count), np.float32)
        multiply(x, self.blobs[0].data, z.reshape(steps * batch, -1), transpose_b=True)
        z += self.blobs[1].data
        if self.has_static:
            part = np.empty(z.shape[1:], np.float32)
            static = bottom[2].data.reshape(batch, -1)
            multiply(static, self.blobs[2].data, part, transpose_b=True)
            z += part
        return z

    def project_back(
        self,
        bottom: Sequence[Any],
        propagate_down: Sequence[bool],
        dz: FloatArray,
        before: FloatArray,
    ) -> None:
        """Pass dz, T x N x width, on to blobs and bottoms.

        `before` is what W_h read in each step, T x N x D.
        """
        steps, batch, width = dz.shape
        flat = dz.reshape(steps * batch, width)
        if self.learns[1]:
            self.blobs[1].diff[...] += flat.sum(axis=0)
        if self.learns[self._hidden_index]:
            self.add_product(flat, before.reshape(steps * batch, -1), self._hidden_index)
        self._input_back(bottom, propagate_down, 0, flat)
        if propagate_down[1]:
            bottom[1].diff[...] = 0  # where sequences begin is not learned
        if self.has_static:
            self._input_back(bottom, propagate_down, 2, dz.sum(axis=0))

    def _input_back(
        self, bottom: Sequence[Any], propagate_down: Sequence[bool], index: int, dz: FloatArray
    ) -> None:
        """Pass dz, rows x width, on to bottom `index` and the blob of that index, its weights."""
        if self.learns[index]:
            self.add_product(dz, bottom[index].data.reshape(len(dz), -1), index)
        if propagate_down[index]:
            multiply(dz, self.blobs[index].data, bottom[index].diff.reshape(len(dz), -1))

    def add_product(self, rows: FloatArray, inputs: FloatArray, blob: int) -> None:
        """Add what rows of output gradients and of inputs give to a weight blob's gradient."""
        multiply(rows, inputs, self.blobs[blob].diff, transpose_a=True, accumulate=True)

    def states_back(
        self, bottom: Sequence[Any], propagate_down: Sequence[bool], gradients: Sequence[Any]
    ) -> None:
        """Write the gradients of the states before the first step, where they are bottoms."""
        for index, gradient in zip(range(len(bottom) - self.exposed, len(bottom)), gradients):
            if propagate_down[index]:
                bottom[index].diff[0] = gradient


def _check_sequence(bottom: Sequence[Any]) -> None:
    x, cont = tuple(bottom[0].shape), tuple(bottom[1].shape)
    if len(x) < 2 or cont != x[:2]:
        raise ValueError(
            f"x has shape {x} and cont {cont}; needs steps x sequences x ... and steps x sequences"
        )
    if x[0] < 1:
        raise ValueError(f"x has shape {x}: no steps")
