"""LSTM: a layer of long short-term memory, over T steps of N sequences.

Bottoms, tops and z are described in recurrent.py; z has 4D values, which go into the gates of
LSTMUnit; the states are h and c.

    h_t, c_t = LSTMUnit(c_(t-1), z_t, cont_t)      y_t = h_t

Parameters: W_x 4D x I, b 4D, W_s 4D x J with a static input, W_h 4D x D.
Backward reads: x, y and a static input within a bound, cont and states that are bottoms exactly.
Keeps the gates and the first c between the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import multiply
from caffe.layer_types.builtin import MANY, FloatArray
from caffe.layer_types.lstm_unit import Gates, gates, next_cell, step_back
from caffe.layer_types.recurrent import Recurrent


class LSTM(Recurrent):
    """The LSTM layer; see the module."""

    bottom_count = (2, MANY)
    top_count = (1, MANY)
    states = 2
    gate_count = 4

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write y, and the last states."""
        z = self.project(bottom)
        cont = bottom[1].data[:, :, np.newaxis]
        weights = self.blobs[self._hidden_index].data
        h, c = self.initial_states(bottom)
        if self.saves:
            self.saved["h"], self.saved["c"] = np.array(h), np.array(c)
            self.saved["gates"] = np.empty_like(z)
        y = top[0].data
        for t in range(len(z)):
            multiply(cont[t] * h, weights, z[t], transpose_b=True, accumulate=True)
            values = gates(z[t])
            c = next_cell(values, c, cont[t])
            h = values.o * np.tanh(c)
            y[t] = h
            if self.saves:
                np.concatenate(values, axis=1, out=self.saved["gates"][t])
        self.final_states(top, [h, c])

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write the gradients of the bottoms, add to those of the blobs."""
        y, dy = top[0].data, top[0].diff
        cont = bottom[1].data[:, :, np.newaxis]
        weights = self.blobs[self._hidden_index].data
        steps = [Gates(*np.split(values, 4, axis=1)) for values in self.saved["gates"]]
        cells = [self.saved["c"]]
        for t, values in enumerate(steps):
            cells.append(next_cell(values, cells[-1], cont[t]))
        dh: FloatArray = np.zeros_like(cells[0])
        dc: FloatArray = np.zeros_like(cells[0])
        if self.exposed:
            dh, dc = top[1].diff[0], top[2].diff[0]
        dz = np.empty_like(self.saved["gates"])
        back = np.empty_like(cells[0])
        for t in reversed(range(len(steps))):
            dz[t], dc = step_back(steps[t], cells[t], cells[t + 1], cont[t], dc, dh + dy[t])
            multiply(dz[t], weights, back)
            dh = cont[t] * back
        before = cont * np.concatenate([self.saved["h"][np.newaxis], y[:-1]])
        self.project_back(bottom, propagate_down, dz, before)
        self.states_back(bottom, propagate_down, [dh, dc])
