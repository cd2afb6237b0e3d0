"""RNN: a recurrent layer with one hidden state, over T steps of N sequences.

Bottoms, tops and z are described in recurrent.py; the state is h.

    h_t = tanh(z_t)      y_t = tanh(W_o h_t + b_o)

Parameters: W_x D x I, b D, W_s D x J with a static input, W_h D x D, W_o D x D, b_o D.
Backward reads: x, y and a static input within a bound, cont and states that are bottoms exactly.
Keeps h between the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import multiply
from caffe.layer_types.builtin import MANY, FloatArray
from caffe.layer_types.recurrent import Recurrent


class RNN(Recurrent):
    """The RNN layer; see the module."""

    bottom_count = (2, MANY)
    top_count = (1, MANY)
    states = 1
    gate_count = 1

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the blobs; ValueError as Recurrent.setup()."""
        super().setup(bottom, top)
        self.blobs.add_blob(self.size, self.size)
        self.blobs.add_blob(self.size)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write y, and the last state."""
        z = self.project(bottom)
        cont = bottom[1].data[:, :, np.newaxis]
        weights = self.blobs[self._hidden_index].data
        (first,) = self.initial_states(bottom)
        h = first
        for t in range(len(z)):
            multiply(cont[t] * h, weights, z[t], transpose_b=True, accumulate=True)
            h = np.tanh(z[t], out=z[t])  # z becomes the states
        y = top[0].data
        rows = y.reshape(-1, self.size)
        multiply(z.reshape(-1, self.size), self.blobs[-2].data, rows, transpose_b=True)
        rows += self.blobs[-1].data
        np.tanh(y, out=y)
        if self.saves:
            self.saved["h"] = np.concatenate([first[np.newaxis], z])
        self.final_states(top, [h])

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write the gradients of the bottoms, add to those of the blobs."""
        y = top[0].data
        cont = bottom[1].data[:, :, np.newaxis]
        weights = self.blobs[self._hidden_index].data
        before, h = self.saved["h"][:-1], self.saved["h"][1:]
        out = top[0].diff * (1 - y * y)
        rows = out.reshape(-1, self.size)
        if self.learns[-2]:
            self.add_product(rows, h.reshape(-1, self.size), -2)
        if self.learns[-1]:
            self.blobs[-1].diff[...] += rows.sum(axis=0)
        dz = np.empty_like(out)  # of h at first, from its own output
        multiply(rows, self.blobs[-2].data, dz.reshape(-1, self.size))
        back = np.empty_like(h[0])
        dh: FloatArray = top[1].diff[0] if self.exposed else np.zeros_like(h[0])
        for t in reversed(range(len(dz))):
            dz[t] = (dz[t] + dh) * (1 - h[t] * h[t])
            multiply(dz[t], weights, back)
            dh = cont[t] * back
        self.project_back(bottom, propagate_down, dz, cont * before)
        self.states_back(bottom, propagate_down, [dh])
