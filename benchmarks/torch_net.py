"""A net of ours as a PyTorch module, made from its NetParameter. Needs torch.

Knows the layer types of the nets in models/. Made as a PyTorch user would write it: BatchNorm takes
the Scale behind it as its own, ReLU and Swish are in place, sums are added onto the branch, and a
value is let go once nobody reads it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from caffe.proto import caffe_pb2 as pb

Shape = tuple[int, ...]
DATA, LABEL, LOSS = 0, 1, -1  # keys of values; those that layers write count on from 2


@dataclass
class Step:
    """One layer: a module or function of its bottoms, and the value that it writes."""

    name: str
    bottoms: list[int]
    top: int
    run: Callable[..., Tensor]
    overwrites: int | None = None  # the value that is gone, being the memory of `top` now
    loss_weight: float = 0.0
    done_with: list[int] = field(default_factory=list)  # values that no later step reads
    top_bytes: int = 0  # of one sample; 0 where `top` is the memory of another value


class TorchNet(nn.Module):
    """Runs the steps; forward() returns the weighted loss."""

    def __init__(self, param: pb.NetParameter, image: Shape) -> None:
        """Make the modules.

        Args:
            param: layers of one phase, whose data layer has the tops `data` and `label`.
            image: shape of one image.

        Raises ValueError for a layer that it cannot translate.
        """
        super().__init__()
        self.steps: list[Step] = []
        self._make([layer for layer in param.layer if layer.bottom], image)
        for index, step in enumerate(self.steps):
            for key in dict.fromkeys(step.bottoms):
                if not any(key in later.bottoms for later in self.steps[index + 1 :]):
                    step.done_with.append(key)
            if isinstance(step.run, nn.Module):
                self.add_module(f"{index}_{step.name.replace('.', '_')}", step.run)
        self.cuts = self._cheapest_cuts()  # where forward_checkpointed() keeps a value, and which

    def forward(self, data: Tensor, label: Tensor) -> Tensor:
        """Return the sum of the losses times their weights."""
        values = {DATA: data, LABEL: label}
        del data
        self._run(values, 0, len(self.steps))
        return values[LOSS]

    def forward_checkpointed(self, data: Tensor, label: Tensor) -> Tensor:
        """As forward(), keeping only what crosses the cuts and running the rest again."""
        crossing, loss = data, data.new_zeros(())
        cuts = [(0, DATA), *self.cuts, (len(self.steps), LOSS)]
        for (begin, enters), (end, leaves) in zip(cuts, cuts[1:]):

            def run(
                entering: Tensor,
                loss: Tensor,
                begin: int = begin,
                end: int = end,
                enters: int = enters,
                leaves: int = leaves,
            ) -> tuple[Tensor, Tensor]:
                values = {enters: entering, LABEL: label, LOSS: loss}
                self._run(values, begin, end)
                return values[leaves], values[LOSS]

            crossing, loss = checkpoint(run, crossing, loss, use_reentrant=False)
        return loss

    def _run(self, values: dict[int, Tensor], first: int, end: int) -> None:
        """Run steps first..end-1; values that no later step reads are let go."""
        for step in self.steps[first:end]:
            result = step.run(*[values[key] for key in step.bottoms])
            for key in step.done_with:
                if key != LABEL:
                    del values[key]
            if step.loss_weight:
                weighted = step.loss_weight * result
                values[LOSS] = values[LOSS] + weighted if LOSS in values else weighted
            else:
                values[step.top] = result
            del result

    def load(self, params: Mapping[str, Sequence[npt.NDArray[np.float32]]]) -> None:
        """Take the weights of a net of ours: layer name -> its blobs."""
        with torch.no_grad():
            for step in self.steps:
                for name, source in zip(("weight", "bias"), params.get(step.name, [])):
                    target = getattr(step.run, name)
                    target.copy_(torch.from_numpy(np.array(source)).reshape(target.shape))

    # -- making ------------------------------------------------------------------------------------

    def _make(self, layers: list[pb.LayerParameter], image: Shape) -> None:
        """Make the steps; a run with two samples shows the shapes."""
        current = {"data": DATA, "label": LABEL}  # blob name -> its last value
        values = {DATA: torch.zeros(2, *image), LABEL: torch.zeros(2, dtype=torch.long)}
        index = 0
        while index < len(layers):
            layer = layers[index]
            keys = [current[name] for name in layer.bottom]
            later = {name for following in layers[index + 1 :] for name in following.bottom}
            step = Step(layer.name, keys, len(self.steps) + 2, lambda *_: torch.zeros(()))
            scale = layers[index + 1] if index + 1 < len(layers) else pb.LayerParameter()
            fused = (
                layer.type == "BatchNorm"
                and scale.type == "Scale"
                and list(scale.bottom) == list(layer.top)
            )
            maker = _MAKERS.get(layer.type)
            if maker is None:
                raise ValueError(
                    f"layer '{layer.name}': type {layer.type} has no PyTorch module here; "
                    f"known are {', '.join(sorted(_MAKERS))}"
                )
            place = Place(
                [tuple(values[key].shape[1:]) for key in keys],
                in_place=layer.bottom[0] == layer.top[0],
                last=[name not in later or name == layer.top[0] for name in layer.bottom],
                scaled=fused,
            )
            step.run, overwritten = maker(layer, place)
            if overwritten is not None:
                step.overwrites = keys[overwritten]
            if layer.type == "SoftmaxWithLoss":
                step.loss_weight = layer.loss_weight[0] if layer.loss_weight else 1.0
            top = layer.top[0]
            if fused:  # the weights of PyTorch's module are those of the Scale
                step.name, top = scale.name, scale.top[0]
                index += 1
            self.steps.append(step)
            with torch.no_grad():
                result = step.run(*[values[key] for key in keys])
            if step.overwrites is None:
                step.top_bytes = 4 * result[0].numel() if result.dim() else 0
            values[step.top] = result
            current[top] = step.top
            index += 1

    # -- checkpoints -------------------------------------------------------------------------------

    def _cuts(self) -> list[tuple[int, int]]:
        """Return the places where one value alone crosses: (index of the next step, its key).

        A step must not write over what a checkpoint holds, so there is no cut before that.
        """
        cuts = []
        for index in range(1, len(self.steps)):
            before, after = self.steps[:index], self.steps[index:]
            read = {key for step in after for key in step.bottoms}
            crossing = [step.top for step in before if step.top in read]
            if DATA in read:
                crossing.append(DATA)
            if len(crossing) == 1 and all(step.overwrites != crossing[0] for step in after):
                cuts.append((index, crossing[0]))
        return cuts

    def _cheapest_cuts(self) -> list[tuple[int, int]]:
        """Return the cuts that need the least memory, of those that divide it evenly."""
        cuts = self._cuts()
        begins = np.cumsum([0, *(step.top_bytes for step in self.steps)])
        best: list[tuple[int, int]] = []
        least = int(begins[-1])
        for parts in range(2, len(cuts) + 2):
            wanted = [begins[-1] * part / parts for part in range(1, parts)]
            chosen = sorted({min(cuts, key=lambda cut: abs(begins[cut[0]] - w)) for w in wanted})
            ends = [0, *(index for index, _ in chosen), len(self.steps)]
            widest = max(begins[end] - begins[begin] for begin, end in zip(ends, ends[1:]))
            kept = sum(self.steps[key - 2].top_bytes for _, key in chosen)
            if widest + kept < least:
                best, least = chosen, int(widest + kept)
        return best


@dataclass
class Place:
    """What a layer's module depends on besides its parameters."""

    shapes: list[Shape]  # of one sample of each bottom
    in_place: bool  # the prototxt says so
    last: list[bool]  # by bottom: nobody else reads it later
    scaled: bool  # a Scale follows, which becomes part of it


# What runs the layer, and the index of the bottom that it writes over.
Made = tuple[Callable[..., Tensor], Optional[int]]


def _pair(param: Any, name: str, default: int) -> tuple[int, int]:
    """Return one of Caffe's sizes, (height, width): for all axes, for each, or as _h and _w."""
    stem = name.replace("_size", "")
    if getattr(param, f"{stem}_h", 0):
        return getattr(param, f"{stem}_h"), getattr(param, f"{stem}_w")
    value = getattr(param, name)
    values = [value] if isinstance(value, int) else list(value) or [default]
    return values[0], values[-1]


def _convolution(layer: pb.LayerParameter, place: Place) -> Made:
    param = layer.convolution_param
    module = nn.Conv2d(
        place.shapes[0][0],
        param.num_output,
        _pair(param, "kernel_size", 0),
        _pair(param, "stride", 1),
        _pair(param, "pad", 0),
        _pair(param, "dilation", 1),
        groups=param.group,
        bias=param.bias_term,
    )
    return module, None


class _Linear(nn.Linear):
    """Of everything behind the batch axis."""

    def forward(self, x: Tensor) -> Tensor:
        """Flatten and multiply."""
        return super().forward(x.flatten(1))


def _inner_product(layer: pb.LayerParameter, place: Place) -> Made:
    param = layer.inner_product_param
    inputs = int(np.prod(place.shapes[0], dtype=np.int64))
    return _Linear(inputs, param.num_output, bias=param.bias_term), None


def _batch_norm(layer: pb.LayerParameter, place: Place) -> Made:
    param = layer.batch_norm_param
    kind = nn.BatchNorm2d if len(place.shapes[0]) == 3 else nn.BatchNorm1d
    momentum = 1 - param.moving_average_fraction
    return kind(place.shapes[0][0], param.eps, momentum, affine=place.scaled), None


def _pooling(layer: pb.LayerParameter, place: Place) -> Made:
    param = layer.pooling_param
    average = param.pool == pb.PoolingParameter.AVE
    if param.global_pooling:
        return (nn.AdaptiveAvgPool2d(1) if average else nn.AdaptiveMaxPool2d(1)), None
    sizes = [_pair(param, name, 0) for name in ("kernel_size", "stride", "pad")]
    ceil = param.round_mode == pb.PoolingParameter.CEIL
    return (nn.AvgPool2d if average else nn.MaxPool2d)(*sizes, ceil_mode=ceil), None


def _lrn(layer: pb.LayerParameter, place: Place) -> Made:
    param = layer.lrn_param
    if param.norm_region != pb.LRNParameter.ACROSS_CHANNELS:
        raise ValueError(f"layer '{layer.name}': LRN within channels has no PyTorch module")
    return nn.LocalResponseNorm(param.local_size, param.alpha, param.beta, param.k), None


def _relu(layer: pb.LayerParameter, place: Place) -> Made:
    return nn.ReLU(inplace=place.in_place), 0 if place.in_place else None


def _swish(layer: pb.LayerParameter, place: Place) -> Made:
    return nn.SiLU(inplace=place.in_place), 0 if place.in_place else None


def _sigmoid(layer: pb.LayerParameter, place: Place) -> Made:
    return nn.Sigmoid(), None


def _dropout(layer: pb.LayerParameter, place: Place) -> Made:
    return nn.Dropout(layer.dropout_param.dropout_ratio), None


def _concat(layer: pb.LayerParameter, place: Place) -> Made:
    axis = layer.concat_param.axis
    return (lambda *parts: torch.cat(parts, axis)), None


def _eltwise(layer: pb.LayerParameter, place: Place) -> Made:
    param = layer.eltwise_param
    plain = param.operation == pb.EltwiseParameter.SUM and not list(param.coeff)
    if not plain or len(place.shapes) != 2:
        raise ValueError(f"layer '{layer.name}': of Eltwise only sums of two are translated")
    if place.last[1]:
        return (lambda shortcut, branch: branch.add_(shortcut)), 1
    return torch.add, None


def _scale(layer: pb.LayerParameter, place: Place) -> Made:
    if len(place.shapes) != 2 or layer.scale_param.axis != 0 or layer.scale_param.bias_term:
        raise ValueError(
            f"layer '{layer.name}': a Scale is translated behind a BatchNorm, or with two bottoms, "
            "axis 0 and no bias"
        )
    ones = [1] * (len(place.shapes[0]) - len(place.shapes[1]))
    return (lambda x, factor: x * factor.reshape(*factor.shape, *ones)), None


def _flatten(layer: pb.LayerParameter, place: Place) -> Made:
    return nn.Flatten(), None


def _loss(layer: pb.LayerParameter, place: Place) -> Made:
    return (lambda scores, label: F.cross_entropy(scores.flatten(1), label)), None


_MAKERS: dict[str, Callable[[pb.LayerParameter, Place], Made]] = {
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution": _convolution,
    "Dropout": _dropout,
    "Eltwise": _eltwise,
    "Flatten": _flatten,
    "InnerProduct": _inner_product,
    "LRN": _lrn,
    "Pooling": _pooling,
    "ReLU": _relu,
    "Scale": _scale,
    "Sigmoid": _sigmoid,
    "SoftmaxWithLoss": _loss,
    "Swish": _swish,
}
