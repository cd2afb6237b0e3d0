"""Tile: repeats its bottom along one axis.

Bottom: x. Top: x `tiles` times, one after the other along `axis`.

    y = [x, x, ...]      dx = the sum of dy over the tiles

Backward reads: nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import BatchAxis
from caffe.layer_types.builtin import BuiltIn, canonical_axis


class Tile(BuiltIn):
    """The Tile layer; see the module."""

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shape of the top; ValueError for no axis, or fewer than 1 tile."""
        shape = list(bottom[0].shape)
        tiles = self.layer_param.tile_param.tiles
        if tiles < 1:
            raise ValueError(f"tile_param has tiles {tiles}, needs 1 or more")
        axis = canonical_axis(self.layer_param.tile_param.axis, shape)
        self._tiled = (math.prod(shape[:axis]), tiles, math.prod(shape[axis:]))
        self.batch_axis = BatchAxis.INDEPENDENT if axis else BatchAxis.COUPLED
        shape[axis] *= tiles
        top[0].reshape(*shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the tiles."""
        outer, _, inner = self._tiled
        top[0].data.reshape(self._tiled)[...] = bottom[0].data.reshape(outer, 1, inner)

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        if propagate_down[0]:
            outer, _, inner = self._tiled
            np.sum(
                top[0].diff.reshape(self._tiled),
                axis=1,
                out=bottom[0].diff.reshape(outer, inner),
            )
