"""Parameter: a learned blob as a top.

No bottoms. Top: the blob, of `shape`.

    y = W      dW = dy

Parameters: W, which starts at zero unless weights are loaded, as in Caffe. Backward reads: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe.layer_types.builtin import BuiltIn


class Parameter(BuiltIn):
    """The Parameter layer; see the module."""

    bottom_count = (0, 0)

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Make the blob; ValueError without a shape."""
        if not self.layer_param.parameter_param.HasField("shape"):
            raise ValueError("parameter_param has no shape")
        self.blobs.add_blob(*self.layer_param.parameter_param.shape.dim)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Give the top the blob's shape."""
        top[0].reshape(*self.blobs[0].shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the blob."""
        top[0].data[...] = self.blobs[0].data

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Add to the blob's gradient."""
        if self.learns[0]:
            self.blobs[0].diff[...] += top[0].diff
