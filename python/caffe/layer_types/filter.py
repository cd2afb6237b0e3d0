"""Filter: lets some samples through.

Bottoms: one or more, each with N samples, and last the selector, N values. Tops: one for each
bottom but the last, with the samples whose selector is not 0, in their order; their number follows
from the values, and may be 0.

    y = x[selected]      dx = dy for the selected samples, 0 for others

The selector takes no gradient. Backward reads: the selector, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe._core.layers import Quality
from caffe.layer_types.builtin import MANY, BuiltIn, Reads
from caffe.layer_types.labels import check_batch


class Filter(BuiltIn):
    """The Filter layer; see the module."""

    bottom_count = (2, MANY)
    top_count = (1, MANY)
    shaped_by_data = True

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Check the number of blobs (ValueError)."""
        if len(top) != len(bottom) - 1:
            raise ValueError(
                f"has {len(top)} tops for {len(bottom)} bottoms, needs {len(bottom) - 1}: one for "
                "each bottom but the selector"
            )
        self.differentiable_bottoms = len(bottom) - 1

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Let every sample through, for now; ValueError unless bottoms have as many."""
        for index, blob in enumerate(bottom[:-1]):
            check_batch(blob.shape, bottom[-1].shape, f"the selector for bottom {index}")
            top[index].reshape(*blob.shape)
        if math.prod(bottom[-1].shape) != bottom[-1].shape[0]:
            raise ValueError(
                f"the selector has shape {tuple(bottom[-1].shape)}, needs one value a sample"
            )

    def reshape_to_data(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Count the samples that the selector lets through."""
        count = int(np.count_nonzero(bottom[-1].data))
        for source, target in zip(bottom, top):
            target.reshape(count, *source.shape[1:])

    def reads(self, wanted: Sequence[bool], learns: Sequence[bool]) -> tuple[Reads, Reads]:
        """The selector."""
        return {len(wanted) - 1: Quality.EXACT}, {}

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the samples let through."""
        selected = bottom[-1].data.ravel() != 0
        for source, target in zip(bottom, top):
            target.data[...] = source.data[selected]

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write dx."""
        selected = bottom[-1].data.ravel() != 0
        for index, target in enumerate(top):
            if propagate_down[index]:
                gradient = bottom[index].diff
                gradient[...] = 0
                gradient[selected] = target.diff
