"""Layers in Python: the class that users derive from, and how the framework runs one.

`Layer` is pycaffe's interface (setup, reshape, forward, backward on blobs); `PythonLayer` gives it
the interface of the core's layers (shapes, needs, traits, tensors), which is all that a net knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from caffe._core import Parameter, Tensor
from caffe._core.layers import (
    BatchAxis,
    BoundRule,
    ForwardContext,
    Need,
    Needs,
    Propagation,
    Quality,
    Traits,
)
from caffe.blob import Blob, BlobList, LayerBlob, ParameterBlob
from caffe.proto import caffe_pb2 as pb

Shape = Sequence[int]


class LayerLike(Protocol):
    """What a net needs of a layer; caffe._core.layers.Layer is the C++ side of it."""

    @property
    def parameters(self) -> list[Parameter]:
        """The learnable blobs; assigning shares another layer's."""

    @parameters.setter
    def parameters(self, value: list[Parameter]) -> None: ...

    def reshape(self, bottoms: Sequence[Shape]) -> list[list[int]]:
        """Shapes of the tops for these bottoms."""

    def needs(self, propagation: Propagation) -> Needs:
        """What backward reads."""

    def traits(self) -> Traits:
        """How the layer may be run."""

    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None:
        """Write dst."""

    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: Propagation,
    ) -> None:
        """Write diff_src where defined, add to the gradients of the parameters."""

    def gradient_terms(self) -> int:
        """Products summed in one parameter gradient, or 0."""

    def saved_bytes(self) -> int:
        """Bytes kept between forward and backward."""

    def drop_saved(self) -> None:
        """Let go of them."""


class Layer:
    """Base class of layers in Python, as in pycaffe.

    The framework sets the attributes below before setup(). Derived classes override the four
    methods; bottom and top are lists of blobs with `data`, `diff`, `shape` and `reshape()`.
    """

    #: Bottoms from this index on (labels) never take a gradient; None: all do.
    differentiable_bottoms: int | None = None
    #: False where backward reads none of the data of bottoms and tops: they need not be kept.
    backward_reads_data: bool = True

    def __init__(self) -> None:
        """Set defaults; derived classes need not define it, and take no arguments."""
        self.layer_param = pb.LayerParameter()
        self.name = ""
        self.type = "Python"
        self.phase: int = pb.TRAIN
        self.param_str = ""
        self.random_seed = 0
        self.blobs = BlobList()

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Check options and bottoms; runs once."""

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops; runs before each forward."""

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write top[i].data."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Write bottom[i].diff where propagate_down[i]."""
        raise NotImplementedError(f"{type(self).__name__} has no backward()")


class PythonLayer:
    """Runs a Layer behind the interface of the core's layers."""

    def __init__(self, layer: Layer, param: pb.LayerParameter) -> None:
        """Wrap `layer`, whose attributes are set; `param` tells the number of bottoms and tops."""
        self.layer = layer
        self._bottom = [LayerBlob() for _ in param.bottom]
        self._top = [LayerBlob() for _ in param.top]
        self._is_set_up = False

    @property
    def parameters(self) -> list[Parameter]:
        """The learnable blobs."""
        return [blob.parameter for blob in self.layer.blobs]

    @parameters.setter
    def parameters(self, value: list[Parameter]) -> None:
        self.layer.blobs[:] = [ParameterBlob(parameter) for parameter in value]

    def reshape(self, bottoms: Sequence[Shape]) -> list[list[int]]:
        """Set up on the first call; returns the shapes that reshape() gave the tops."""
        for blob, shape in zip(self._bottom, bottoms):
            blob.set_shape(shape)
        if not self._is_set_up:
            self.layer.setup(self._bottom, self._top)
            self._is_set_up = True
        self.layer.reshape(self._bottom, self._top)
        return [list(blob.shape) for blob in self._top]

    def needs(self, propagation: Propagation) -> Needs:
        """Return Exact for everything, unless the class says that it reads nothing."""
        quality = Quality.EXACT if self.layer.backward_reads_data else Quality.NOTHING
        need = Need(quality, BoundRule.PROPAGATED)
        return Needs([need] * len(self._bottom), [need] * len(self._top))

    def traits(self) -> Traits:
        """Return the most careful traits: nothing is known of users' layers."""
        traits = Traits()
        traits.batch_axis = BatchAxis.COUPLED
        if self.layer.differentiable_bottoms is not None:
            traits.differentiable_bottoms = self.layer.differentiable_bottoms
        return traits

    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None:
        """Run the layer's forward() on views of these tensors."""
        self._bind(src, dst, [None] * len(src), [None] * len(dst))
        self.layer.forward(self._bottom, self._top)
        self._check_shapes(dst)
        self._unbind()

    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: Propagation,
    ) -> None:
        """Run the layer's backward() on views of these tensors."""
        self._bind(src, dst, diff_src, diff_dst)
        self.layer.backward(self._top, list(propagation.bottoms), self._bottom)
        self._unbind()

    def gradient_terms(self) -> int:
        """Return 0: the error model does not know users' layers."""
        return 0

    def saved_bytes(self) -> int:
        """Return 0: what the layer keeps in Python is its own affair."""
        return 0

    def drop_saved(self) -> None:
        """Do nothing."""

    def _bind(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_src: Sequence[Tensor | None],
        diff_dst: Sequence[Tensor | None],
    ) -> None:
        for blob, data, diff in zip(self._bottom, src, diff_src):
            blob.bind(data, diff)
        for blob, data, diff in zip(self._top, dst, diff_dst):
            blob.bind(data, diff)

    def _unbind(self) -> None:
        blobs: list[Blob] = [*self._bottom, *self._top]
        for blob in blobs:
            assert isinstance(blob, LayerBlob)
            blob.bind(None, None)

    def _check_shapes(self, dst: Sequence[Tensor]) -> None:
        for index, (blob, tensor) in enumerate(zip(self._top, dst)):
            if blob.shape != tuple(tensor.shape):
                raise ValueError(
                    f"top {index} was reshaped to {blob.shape} in forward(); "
                    "set the shapes of tops in reshape(), which runs before each forward()"
                )
