"""What users see of a net: its blobs and its layers, as pycaffe shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caffe._core import Tensor
from caffe.blob import Blob, ParameterBlob
from caffe.executor import Executor
from caffe.graph import Node, Value
from caffe.layer_types.base import Layer, PythonLayer
from caffe.layer_types.input import Input
from caffe.runtime import RuntimeLayer, check_shape


class ValueBlob(Blob):
    """The last value of a blob of a net."""

    def __init__(self, executor: Executor, value: Value) -> None:
        """Show `value` as `executor` holds it."""
        self._executor = executor
        self._value = value

    def _data_tensor(self) -> Tensor:
        return self._executor.data(self._value)

    def _diff_tensor(self) -> Tensor:
        return self._executor.diff(self._value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._executor.slots[self._value.index].shape

    def reshape(self, *shape: Any) -> None:
        """Set the sizes of an input; others follow at the next forward() or net.reshape().

        Raises ValueError for a blob that is no input, or sizes that no blob can have.
        """
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
        sizes = [int(size) for size in given]
        check_shape(self._value.name, sizes)
        producer = self._executor.layers[self._value.producer]
        if isinstance(producer.layer, PythonLayer) and isinstance(producer.layer.layer, Input):
            producer.layer.layer.shapes[self._value.top] = sizes
            self._executor.set_shape(self._value, sizes)
        elif tuple(sizes) != self.shape:
            raise ValueError(
                f"blob '{self._value.name}' cannot be reshaped: its shape follows from layer "
                f"'{producer.node.name}' ({producer.node.type}); reshape the net's inputs"
            )


class LayerView:
    """A layer of a net."""

    def __init__(self, node: Node, params: Mapping[str, list[ParameterBlob]]) -> None:
        """Show the layer at `node` of the net with these parameters."""
        self._node = node
        self._params = params

    @property
    def name(self) -> str:
        """The layer's name."""
        return self._node.name

    @property
    def type(self) -> str:
        """The layer's type as prototxt names it."""
        return self._node.type

    @property
    def blobs(self) -> list[ParameterBlob]:
        """The learnable blobs."""
        return self._params.get(self._node.name, [])

    def __repr__(self) -> str:
        return f"<{self.type} layer '{self.name}'>"


def view_layer(
    runtime: RuntimeLayer, params: Mapping[str, list[ParameterBlob]]
) -> Layer | LayerView:
    """Return what users see of a layer: a user's own Python layer is the object itself."""
    layer = runtime.layer
    if isinstance(layer, PythonLayer) and runtime.node.type == "Python":
        return layer.layer
    return LayerView(runtime.node, params)
