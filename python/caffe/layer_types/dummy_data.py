"""DummyData: tops of given shapes, filled by fillers. For tests and timing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe import fillers
from caffe.data.transform import random_key
from caffe.layer_types.base import Layer
from caffe.proto import caffe_pb2

_SEQUENCE_WORD = 3  # the word of Philox's counter that tells the forward passes apart


class DummyData(Layer):
    """The DummyData layer. Random tops get new values in each forward pass, others are constant."""

    differentiable_bottoms = 0
    backward_reads_data = False

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Check shapes and fillers.

        Raises:
            ValueError: fillers are none, one, or one per top, and shapes one, or one per top.
        """
        param = self.layer_param.dummy_data_param
        if bottom or not top:
            raise ValueError(
                f"takes no bottoms and at least 1 top, has {len(bottom)} and {len(top)}"
            )
        given = list(param.data_filler) or [caffe_pb2.FillerParameter(type="constant", value=0)]
        if len(given) not in (1, len(top)):
            raise ValueError(
                f"dummy_data_param has {len(given)} data_filler for {len(top)} tops; needs none, "
                "one, or one per top"
            )
        self._fillers = given * len(top) if len(given) == 1 else given
        for filler in self._fillers:
            fillers.check(filler)
        self._shapes = _shapes(param, len(top))
        self.position = 0

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops."""
        for blob, shape in zip(top, self._shapes):
            blob.reshape(*shape)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Fill the tops; the values depend on seed, layer name and number of the pass alone."""
        counter = [0] * (_SEQUENCE_WORD + 1)
        counter[_SEQUENCE_WORD] = self.position
        key = random_key(self.random_seed, self.name)
        rng = np.random.Generator(np.random.Philox(key=key, counter=counter))
        for blob, filler in zip(top, self._fillers):
            fillers.fill(blob.data, filler, rng)
        self.position += 1

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""


def _shapes(param: caffe_pb2.DummyDataParameter, tops: int) -> list[tuple[int, ...]]:
    legacy = {name: list(getattr(param, name)) for name in ("num", "channels", "height", "width")}
    if param.shape and any(legacy.values()):
        raise ValueError(
            "dummy_data_param has both shape and the older num, channels, height, width"
        )
    if any(legacy.values()):
        for name, sizes in legacy.items():
            if len(sizes) not in (1, tops):
                raise ValueError(
                    f"dummy_data_param has {len(sizes)} {name} for {tops} tops; needs one, or one "
                    "per top"
                )
        columns = [sizes * tops if len(sizes) == 1 else sizes for sizes in legacy.values()]
        return list(zip(*columns))
    shapes = [tuple(shape.dim) for shape in param.shape]
    if len(shapes) not in (1, tops):
        raise ValueError(
            f"dummy_data_param has {len(shapes)} shapes for {tops} tops; needs one, or one per top"
        )
    return shapes * tops if len(shapes) == 1 else shapes
