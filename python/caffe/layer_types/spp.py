"""SPP: spatial pyramid pooling, as many outputs for an image of any size.

Bottom: N x C x H x W. Top: N x (C * (1 + 4 + 16 + ...)). Level l = 0 .. pyramid_height - 1 pools
over 2^l x 2^l windows of H / 2^l x W / 2^l pixels, rounded up, and pads what that is too much; the
levels follow each other, each as channels x windows.

    y = [pool_0(x), pool_1(x), ...]      dx = the sum of the levels' gradients

Methods are Pooling's MAX, AVE and STOCHASTIC (where nothing needs padding).
Backward reads: nothing. Keeps what Pooling keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

from caffe._core import MemoryKind, Parameter, Tensor
from caffe._core import layers as core
from caffe.layer_types.base import Shape
from caffe.proto import caffe_pb2 as pb


class SPP:
    """The SPP layer, made of Pooling layers; see the module. It is a LayerLike."""

    def __init__(self, param: pb.LayerParameter) -> None:
        """Read the options; ValueError where they make no sense."""
        options = param.spp_param
        if options.pyramid_height < 1:
            raise ValueError("spp_param has pyramid_height 0, needs 1 or more")
        if len(param.bottom) != 1:
            raise ValueError(f"has {len(param.bottom)} bottoms, needs 1")
        self._height = options.pyramid_height
        self._method = getattr(core.PoolMethod, pb.SPPParameter.PoolMethod.Name(options.pool))
        self._levels: list[core.Layer] = []
        self._shapes: list[list[int]] = []  # of the levels' tops
        self.parameters: list[Parameter] = []

    def reshape(self, bottoms: Sequence[Shape]) -> list[list[int]]:
        """Make the levels for this size; ValueError where a level does not fit."""
        shape = list(bottoms[0])
        if len(shape) != 4:
            raise ValueError(
                f"bottom 0 has shape {tuple(shape)}, needs 4 axes: batch, channels, height and "
                "width"
            )
        self._levels = [self._level(2**level, shape[2:]) for level in range(self._height)]
        self._shapes = [level.reshape([shape])[0] for level in self._levels]
        return [[shape[0], sum(c * h * w for _, c, h, w in self._shapes)]]

    def _level(self, bins: int, size: list[int]) -> core.Layer:
        """Make the Pooling layer of bins x bins windows."""
        kernel = [-(-pixels // bins) for pixels in size]
        pad = [(k * bins - pixels + 1) // 2 for k, pixels in zip(kernel, size)]
        if any(p >= k for p, k in zip(pad, kernel)):
            raise ValueError(
                f"pyramid_height {self._height} asks for {bins} x {bins} windows of {size[0]} x "
                f"{size[1]} pixels, some of which would see padding alone"
            )
        return core.Pooling(method=self._method, kernel=kernel, stride=kernel, pad=pad)

    def needs(self, propagation: core.Propagation) -> core.Needs:
        """Return that backward reads nothing."""
        return core.Needs([core.Need()], [core.Need()])

    def traits(self) -> core.Traits:
        """Return Pooling's."""
        traits = core.Traits()
        traits.batch_axis = core.BatchAxis.INDEPENDENT
        return traits

    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: core.ForwardContext
    ) -> None:
        """Write the levels one after the other."""
        rows, at = dst[0].numpy(), 0
        for number, (level, shape) in enumerate(zip(self._levels, self._shapes)):
            pooled = Tensor(shape, MemoryKind.WORKSPACE)
            own = core.ForwardContext(
                context.train,
                context.save_for_backward,
                context.random_key ^ number << 48,  # each level draws for itself
                context.forward_count,
            )
            level.forward(src, [pooled], own)
            values = pooled.numpy().reshape(len(rows), -1)
            rows[:, at : at + values.shape[1]] = values
            at += values.shape[1]

    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: core.Propagation,
    ) -> None:
        """Write dx."""
        if not diff_src[0].defined:
            return
        rows, at = diff_dst[0].numpy(), 0
        sum_of_levels = diff_src[0].numpy()
        for number, (level, shape) in enumerate(zip(self._levels, self._shapes)):
            diff = Tensor(shape, MemoryKind.WORKSPACE)
            values = diff.numpy().reshape(len(rows), -1)
            values[...] = rows[:, at : at + values.shape[1]]
            at += values.shape[1]
            into = diff_src[0] if not number else Tensor(diff_src[0].shape, MemoryKind.WORKSPACE)
            level.backward([Tensor()], [Tensor()], [diff], [into], propagation)
            if number:
                sum_of_levels += into.numpy()

    def gradient_terms(self) -> int:
        """Return 0: there are no parameters."""
        return 0

    def saved_bytes(self) -> int:
        """Bytes that the levels keep between the passes."""
        return sum(level.saved_bytes() for level in self._levels)

    def drop_saved(self) -> None:
        """Let go of them."""
        for level in self._levels:
            level.drop_saved()
