"""Silence: reads blobs that nobody else does, so that they are no outputs of the net.

Bottoms: any. Tops: none.

    dx = 0

Backward reads: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe.layer_types.builtin import MANY, BuiltIn


class Silence(BuiltIn):
    """The Silence layer; see the module."""

    bottom_count = (1, MANY)
    top_count = (0, 0)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Do nothing."""

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write zeros."""
        for blob, wanted in zip(bottom, propagate_down):
            if wanted:
                blob.diff[...] = 0
