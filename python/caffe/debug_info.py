"""The lines of debug_info: mean magnitudes of data and gradients, layer by layer, as in Caffe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from caffe import log
from caffe._core import Tensor

if TYPE_CHECKING:
    from caffe.learning import LearnedBlob
    from caffe.net import Net
    from caffe.runtime import RuntimeLayer


class DebugInfo:
    """Told by the executor what each layer wrote, while the buffers are there."""

    def forward(self, layer: RuntimeLayer, tops: Sequence[Tensor]) -> None:
        """Log the tops that a layer wrote and the parameters that it read."""
        for value, top in zip(layer.node.tops, tops):
            _say("Forward", layer, f"top blob {value.name} data: {_number(top.mean_abs())}")
        for index, parameter in enumerate(layer.layer.parameters):
            mean = _number(parameter.data.mean_abs())
            _say("Forward", layer, f"param blob {_name(layer, index)} data: {mean}")

    def backward(self, layer: RuntimeLayer, bottom_diffs: Sequence[Tensor]) -> None:
        """Log the gradients that a layer wrote; undefined tensors are none."""
        for value, diff in zip(layer.node.bottoms, bottom_diffs):
            if diff.defined:
                _say(
                    "Backward", layer, f"bottom blob {value.name} diff: {_number(diff.mean_abs())}"
                )
        for index, parameter in enumerate(layer.layer.parameters):
            if layer.propagation.parameters[index]:
                mean = _number(parameter.gradient.mean_abs())
                _say("Backward", layer, f"param blob {_name(layer, index)} diff: {mean}")


def log_totals(learned: Iterable[LearnedBlob]) -> None:
    """Log the L1 and L2 norms of all parameters and their gradients, after a backward pass."""
    tensors = [(blob.parameter.data, blob.parameter.gradient) for blob in learned]
    l1 = [_number(sum(t.mean_abs() * t.count for t in kind)) for kind in zip(*tensors)]
    squares = [sum(t.rms() ** 2 * t.count for t in kind) for kind in zip(*tensors)]
    l2 = [_number(math.sqrt(square)) for square in squares]
    log.info(
        f"    [Backward] All net params (data, diff): L1 norm = ({', '.join(l1)}); "
        f"L2 norm = ({', '.join(l2)})"
    )


class UpdateInfo:
    """Logs what an update changes: made before it, told after it."""

    def __init__(self, net: Net) -> None:
        """Copy the parameters as they are."""
        self._net = net
        self._before = [blob.parameter.data.numpy().copy() for blob in net.learned]

    def log(self) -> None:
        """Log each parameter's magnitude before the update, and that of its change."""
        layers = self._net.executor.layers
        for blob, before in zip(self._net.learned, self._before):
            layer = layers[blob.layer]
            index = next(
                i
                for i, parameter in enumerate(layer.layer.parameters)
                if parameter.data.shares_buffer(blob.parameter.data)
            )
            change = np.abs(before - blob.parameter.data.numpy()).mean()
            _say(
                "Update",
                layer,
                f"param {_name(layer, index)} data: {_number(np.abs(before).mean())}; "
                f"diff: {_number(change)}",
            )


def _say(stage: str, layer: RuntimeLayer, what: str) -> None:
    log.info(f"    [{stage}] Layer {layer.node.name}, {what}")


def _name(layer: RuntimeLayer, index: int) -> str:
    """Return a parameter's name in prototxt, its index where it has none."""
    specs = layer.node.param.param
    return (specs[index].name if index < len(specs) else "") or str(index)


def _number(value: float) -> str:
    return f"{value:.6g}"
