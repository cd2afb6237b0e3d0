"""Which layers have a backward pass, which gradients they compute, and what they therefore read."""

from __future__ import annotations

from collections.abc import Sequence

from caffe._core.layers import Propagation
from caffe.layer_errors import LayerErrors
from caffe.learning import LearnedBlob
from caffe.runtime import RuntimeLayer


def decide_backward(
    layers: Sequence[RuntimeLayer],
    learned: Sequence[LearnedBlob],
    force_backward: bool,
    saves: bool,
) -> None:
    """Set `propagation`, `facts.runs_backward` and `facts.needs` of every layer.

    A layer runs backward where a parameter of its own or something below it learns, and a loss is
    above it; with force_backward, wherever a gradient can be computed.

    Raises ValueError for a propagate_down that does not fit.
    """
    learns = {id(blob.parameter): blob.spec.lr_mult != 0 for blob in learned}
    wants: set[int] = set()  # values that a gradient is wanted for
    for runtime in layers:
        node = runtime.node
        parameters = [learns[id(parameter)] for parameter in runtime.layer.parameters]
        bottoms = [
            _wants_gradient(runtime, index, value.index in wants)
            for index, value in enumerate(node.bottoms)
        ]
        runtime.propagation = Propagation(bottoms, parameters)
        runtime.facts.runs_backward = any(parameters) or any(bottoms)
        if runtime.facts.runs_backward or force_backward:
            wants.update(top.index for top in node.tops)
    if not force_backward:
        _prune_without_loss(layers)
    for runtime in layers:
        if runtime.facts.runs_backward and saves:
            with LayerErrors(runtime.node):
                runtime.facts.needs = runtime.layer.needs(runtime.propagation)


def _wants_gradient(runtime: RuntimeLayer, index: int, reached: bool) -> bool:
    """Whether the gradient of bottom `index` is wanted; `reached`: something below learns."""
    if index >= runtime.facts.traits.differentiable_bottoms:
        return False
    written = runtime.node.param.propagate_down
    if not written:
        return reached
    if len(written) != len(runtime.node.bottoms):
        raise ValueError(
            f"layer '{runtime.node.name}' ({runtime.node.type}): has {len(written)} "
            f"propagate_down, needs one for each of its {len(runtime.node.bottoms)} bottoms"
        )
    return bool(written[index])


def _prune_without_loss(layers: Sequence[RuntimeLayer]) -> None:
    """No backward pass for layers from which no loss can be reached."""
    under_loss: set[int] = set()
    for runtime in reversed(layers):
        node = runtime.node
        if not any(node.loss_weights) and not any(top.index in under_loss for top in node.tops):
            runtime.facts.runs_backward = False
            continue
        under_loss.update(
            value.index
            for value, wanted in zip(node.bottoms, runtime.propagation.bottoms)
            if wanted
        )
