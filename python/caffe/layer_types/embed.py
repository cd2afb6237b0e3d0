"""Embed: looks rows of a learned table up by index.

Bottom: indices from 0 to input_dim - 1, any shape. Top: that shape and num_output behind it.

    y[i] = W[index[i]] + b      dW[k] = the sum of dy[i] over the i with index k      db = sum(dy)

Parameters: W input_dim x num_output, b num_output with bias_term. Indices take no gradient.
Backward reads: the indices, exactly, where W learns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import BuiltIn, Reads
from caffe.layer_types.labels import add_rows, row_indices


class Embed(BuiltIn):
    """The Embed layer; see the module."""

    differentiable_bottoms = 0

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the table; ValueError unless both its sizes are given."""
        param = self.layer_param.embed_param
        if param.num_output < 1 or param.input_dim < 1:
            raise ValueError(
                f"embed_param has num_output {param.num_output} and input_dim {param.input_dim}, "
                "needs both to be 1 or more"
            )
        self.blobs.add_blob(param.input_dim, param.num_output)
        if param.bias_term:
            self.blobs.add_blob(param.num_output)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shape of the top."""
        top[0].reshape(*bottom[0].shape, self.layer_param.embed_param.num_output)

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """The indices, where the table learns."""
        return ({0: Quality.EXACT} if learns[0] else {}), {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the rows; ValueError for an index that is no row."""
        indices = row_indices(bottom[0].data, self.layer_param.embed_param.input_dim)
        rows = top[0].data.reshape(len(indices), -1)
        np.take(self.blobs[0].data, indices, axis=0, out=rows)
        if len(self.blobs) > 1:
            rows += self.blobs[1].data

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Add to the gradients of W and b."""
        param = self.layer_param.embed_param
        rows = top[0].diff.reshape(-1, param.num_output)
        if self.learns[0]:
            add_rows(self.blobs[0].diff, row_indices(bottom[0].data, param.input_dim), rows)
        if len(self.blobs) > 1 and self.learns[1]:
            self.blobs[1].diff[...] += rows.sum(axis=0)
