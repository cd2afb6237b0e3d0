"""Random nets of every layer type, each in two spellings: layers in place, and none in place."""

from __future__ import annotations

import random
from dataclasses import dataclass

BATCH, CHANNELS, SIDE, CLASSES = 4, 8, 8, 10
SHAPE = (BATCH, CHANNELS, SIDE, SIDE)

_WEIGHTS = 'weight_filler { type: "gaussian" std: 0.15 }'
_VALUES = CHANNELS * SIDE * SIDE

#: Layers that keep the shape of their one bottom: type and options.
_UNARY = (
    ("ReLU", ""),
    ("ReLU", "relu_param { negative_slope: 0.1 }"),
    ("BatchNorm", ""),
    ("BatchNorm", "batch_norm_param { use_global_stats: true }"),
    ("Scale", 'scale_param { filler { type: "uniform" min: 0.5 max: 1.5 } }'),
    ("Scale", "scale_param { bias_term: true } param { lr_mult: 0 }"),
    ("Dropout", "dropout_param { dropout_ratio: 0.3 }"),
    ("LRN", "lrn_param { local_size: 3 alpha: 0.5 }"),
    ("LRN", "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }"),
    ("Softmax", ""),
    ("AbsVal", ""),
    ("Bias", ""),
    ("BNLL", ""),
    ("Clip", "clip_param { min: -0.5 max: 0.5 }"),
    ("ELU", "elu_param { alpha: 0.5 }"),
    ("ELU", "elu_param { alpha: -0.5 }"),
    ("Exp", "exp_param { scale: 0.1 }"),
    ("MVN", ""),
    ("PReLU", ""),
    ("PReLU", "param { lr_mult: 0 }"),
    ("Power", "power_param { scale: 0.5 shift: 0.1 }"),
    ("Power", "power_param { power: 2 scale: 0.5 }"),
    ("Sigmoid", ""),
    ("Swish", ""),
    ("TanH", ""),
    ("Threshold", ""),
    ("Pooling", "pooling_param { kernel_size: 3 stride: 1 pad: 1 }"),
    ("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 }"),
    ("Convolution", f"convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 {_WEIGHTS} }}"),
    ("Convolution", f"convolution_param {{ num_output: 8 kernel_size: 1 group: 2 {_WEIGHTS} }}"),
    ("Deconvolution", f"convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 {_WEIGHTS} }}"),
    (
        "Convolution",
        f"convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 {_WEIGHTS} }} "
        'param { name: "w" } param { name: "b" }',
    ),
)
_JOINS = (
    ("Eltwise", "eltwise_param { operation: SUM }"),
    ("Eltwise", "eltwise_param { operation: SUM coeff: 0.5 coeff: -1.5 }"),
    ("Eltwise", "eltwise_param { operation: PROD }"),
    ("Eltwise", "eltwise_param { operation: MAX }"),
    ("Scale", "scale_param { axis: 0 }"),
)


@dataclass
class _Blob:
    """A value under its name in either spelling."""

    in_place: str
    plain: str


class RandomNet:
    """One net; texts `in_place` and `plain` describe the same arithmetic."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._layers: list[tuple[str, str, list[_Blob], list[_Blob], str]] = []
        self._live = [_Blob("data", "data")]
        self._force_backward = seed % 5 == 0
        for _ in range(self._random.randint(3, 14)):
            self._grow()
        self._finish()
        self.in_place = self._text("in_place")
        self.plain = self._text("plain")

    def _fresh(self) -> _Blob:
        self._count += 1
        return _Blob(f"b{self._count}", f"b{self._count}")

    def _add(self, kind: str, options: str, bottoms: list[_Blob], in_place: bool) -> _Blob:
        top = self._fresh()
        if in_place:
            top.in_place = bottoms[0].in_place
            self._live.remove(bottoms[0])
        self._layers.append((f"{kind}{len(self._layers)}", kind, bottoms, [top], options))
        self._live.append(top)
        return top

    def _grow(self) -> None:
        pick = self._random
        bottom = pick.choice(self._live[-3:])
        in_place = pick.random() < 0.6
        what = pick.random()
        if what < 0.6:
            kind, options = pick.choice(_UNARY)
            if pick.random() < 0.06:
                options += " propagate_down: false"
            self._add(kind, options, [bottom], in_place)
        elif what < 0.8:
            kind, options = pick.choice(_JOINS)
            self._add(kind, options, [bottom, pick.choice(self._live)], in_place)
        elif what < 0.86:
            joined = self._add("Concat", "", [bottom, pick.choice(self._live)], False)
            options = f"convolution_param {{ num_output: 8 kernel_size: 1 {_WEIGHTS} }}"
            self._add("Convolution", options, [joined], False)
            self._live.remove(joined)
        elif what < 0.93:
            flat = self._add("Flatten", "", [bottom], False)
            inner = f"inner_product_param {{ num_output: {_VALUES} {_WEIGHTS} }}"
            folded = self._add("InnerProduct", inner, [flat], False)
            shape = "reshape_param { shape { dim: 0 dim: 8 dim: 8 dim: 8 } }"
            self._add("Reshape", shape, [folded], False)
            self._live.remove(flat)
            self._live.remove(folded)
        else:
            tops = [self._fresh(), self._fresh()]
            self._layers.append((f"Split{len(self._layers)}", "Split", [bottom], tops, ""))
            self._live += tops

    def _finish(self) -> None:
        """Losses with weights, one of them read by another layer, and one inside the net."""
        pick = self._random
        label = _Blob("label", "label")
        for bottom in self._live[-2:]:
            inner = f"inner_product_param {{ num_output: {CLASSES} {_WEIGHTS} }}"
            scores = self._add("InnerProduct", inner, [bottom], False)
            weight = f"loss_weight: {pick.choice([1, 0.3, -0.5])}"
            loss = self._add("SoftmaxWithLoss", weight, [scores, label], False)
            if pick.random() < 0.3:
                self._add("ReLU", "loss_weight: 0.7", [loss], False)
        if pick.random() < 0.3:
            self._add("ReLU", "loss_weight: 0.001", [pick.choice(self._live[:3])], False)

    def _text(self, spelling: str) -> str:
        def names(field: str, blobs: list[_Blob]) -> str:
            return " ".join(f'{field}: "{getattr(blob, spelling)}"' for blob in blobs)

        lines = ["force_backward: true"] if self._force_backward else []
        for name, dims in (("data", SHAPE), ("label", SHAPE[:1])):
            shape = " ".join(f"dim: {dim}" for dim in dims)
            lines.append(
                f'layer {{ name: "{name}" type: "Input" top: "{name}" '
                f"input_param {{ shape {{ {shape} }} }} }}"
            )
        lines += [
            f'layer {{ name: "{name}" type: "{kind}" {names("bottom", bottoms)} '
            f"{names('top', tops)} {options} }}"
            for name, kind, bottoms, tops, options in self._layers
        ]
        return "\n".join(lines)
