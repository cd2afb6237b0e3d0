"""Random nets: chains and branches of every kind of layer that fits, losses at their ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import caffe
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net

XAVIER = 'weight_filler { type: "xavier" }'
CLASSES = 5
#: Small variances would blow rounding up.
BATCH_NORM = "batch_norm_param { eps: 0.01 }"
#: Layers of one bottom that keep its shape; those of the second list may work in place.
_SHAPED = [
    ("AbsVal", ""),
    ("Threshold", "threshold_param { threshold: 0.2 }"),
    ("Python", f'python_param {{ module: "{__name__}" layer: "Doubled" }}'),
    ("Softmax", ""),
]
_IN_PLACE = [
    ("ReLU", ""),
    ("ReLU", ""),
    ("ReLU", "relu_param { negative_slope: 0.2 }"),
    ("ReLU", "relu_param { negative_slope: -0.2 }"),
    ("Dropout", "dropout_param { dropout_ratio: 0.4 }"),
    ("Dropout", "dropout_param { dropout_ratio: 0 }"),
    ("Scale", "scale_param { bias_term: true }"),
    ("Scale", ""),
    ("Scale", 'scale_param { filler { type: "uniform" min: -0.02 max: 1 } }'),
    ("Scale", "scale_param { axis: 1 num_axes: 0 }"),
    ("Scale", "scale_param { axis: 0 num_axes: 1 }"),
    ("Bias", ""),
    ("BatchNorm", BATCH_NORM),
    ("BatchNorm", BATCH_NORM),
    ("BatchNorm", "batch_norm_param { use_global_stats: true eps: 0.5 }"),
    ("PReLU", ""),
    ("PReLU", "prelu_param { channel_shared: true }"),
    ("ELU", "elu_param { alpha: 0.6 }"),
    ("ELU", "elu_param { alpha: -0.6 }"),
    ("Swish", ""),
    ("Sigmoid", ""),
    ("TanH", ""),
    ("BNLL", ""),
    ("Power", "power_param { power: 2 scale: 0.5 shift: 0.2 }"),
    ("Exp", "exp_param { base: 2 scale: 0.3 }"),
    ("Clip", "clip_param { min: -0.6 max: 0.7 }"),
    ("MVN", ""),
]


class Doubled(caffe.Layer):
    """A user's layer, for type Python."""

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = 2 * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = 2 * top[0].diff


@dataclass
class Blob:
    """A blob that a layer may read, and its shape."""

    name: str
    shape: tuple[int, ...]


class RandomNet:
    """Makes one net; `text` is its prototxt, `batch` its batch size."""

    def __init__(self, seed: int) -> None:
        """Make the net of this seed."""
        self._rng = np.random.default_rng(seed)
        self._count = 0
        self._lines: list[str] = []
        self.batch = int(self._rng.choice([1, 2, 5, 7]))
        self.image = (self.batch, int(self._rng.integers(1, 5)), *self._rng.choice([9, 16, 24], 2))
        self.image = tuple(int(size) for size in self.image)
        self._input("data", self.image)
        self._input("label", (self.batch,))
        self._blobs = [Blob("data", self.image)]
        self._learns()
        for _ in range(int(self._rng.integers(3, 16))):
            self._choice(self._steps())()
        self._end()
        text = "force_backward: true\n" if self._one_in(8) else ""
        self.text = text + "\n".join(self._lines)

    @property
    def param(self) -> pb.NetParameter:
        """The net as a message."""
        return parse_net(self.text)

    # -- chance ----------------------------------------------------------------------------------

    def _one_in(self, count: int) -> bool:
        return self._rng.integers(count) == 0

    def _choice(self, things):
        return things[int(self._rng.integers(len(things)))]

    def _bottom(self, fits: Callable[[Blob], bool] = lambda blob: True) -> Blob | None:
        """A blob that fits, one of the last ones in most cases."""
        found = [blob for blob in self._blobs if fits(blob)]
        if not found:
            return None
        return found[-1] if self._one_in(2) else self._choice(found)

    # -- writing ---------------------------------------------------------------------------------

    def _input(self, name: str, shape: tuple[int, ...]) -> None:
        dims = " ".join(f"dim: {size}" for size in shape)
        self._lines.append(
            f'layer {{ name: "{name}" type: "Input" top: "{name}" '
            f"input_param {{ shape {{ {dims} }} }} }}"
        )

    def _layer(
        self,
        kind: str,
        bottoms: list[Blob],
        options: str = "",
        in_place: bool = False,
        tops: int = 1,
    ) -> list[str]:
        self._count += 1
        name = f"{kind.lower()}{self._count}"
        names = [bottoms[0].name] if in_place else [f"{name}_{top}" for top in range(tops)]
        edges = " ".join(f'bottom: "{blob.name}"' for blob in bottoms)
        edges += " " + " ".join(f'top: "{top}"' for top in names)
        self._lines.append(
            f'layer {{ name: "{name}" type: "{kind}" {edges} {options} {self._extras(bottoms)} }}'
        )
        return names

    def _extras(self, bottoms: list[Blob]) -> str:
        """Overrides of what is compressed and of where gradients go."""
        text = ""
        if self._one_in(10):
            text += f"compression_param {{ {self._choice(['mode: NONE', 'recompute: false'])} }} "
        if self._one_in(20) and len(bottoms) == 1:
            text += f"propagate_down: {self._choice(['true', 'false'])} "
        return text

    def _add(self, name: str, shape: tuple[int, ...]) -> None:
        self._blobs.append(Blob(name, shape))

    # -- layers ----------------------------------------------------------------------------------

    def _steps(self) -> list[Callable[[], None]]:
        return [
            self._shaped, self._in_place, self._in_place, self._in_place, self._block,
            self._learns, self._learns, self._learns, self._pools, self._pools, self._pools,
            self._deconvolves, self._normalises, self._joins, self._joins, self._concatenates,
            self._cuts, self._splits, self._flattens, self._scales_by_another, self._batches_joined,
            self._reduces,
        ]  # fmt: skip

    def _shaped(self) -> None:
        bottom = self._bottom()
        kind, options = self._choice(_SHAPED + _IN_PLACE)
        (top,) = self._layer(kind, [bottom], options)
        self._add(top, bottom.shape)

    def _in_place(self) -> None:
        bottom = self._bottom(lambda blob: blob.name != "data")
        if bottom:
            self._layer(*self._of(bottom, self._choice(_IN_PLACE)), in_place=True)

    def _of(self, bottom: Blob, kind: tuple[str, str]) -> tuple[str, list[Blob], str]:
        frozen = (
            "param { lr_mult: 0 } " if kind[0] in ("Scale", "PReLU") and self._one_in(6) else ""
        )
        return kind[0], [bottom], frozen + kind[1]

    def _block(self) -> None:
        """Convolution, BatchNorm, Scale, ReLU, pooling perhaps: as in most nets."""
        self._learns()
        bottom = self._blobs[-1]
        for kind in (
            ("BatchNorm", BATCH_NORM),
            ("Scale", "scale_param { bias_term: true }"),
            ("ReLU", ""),
        ):
            if not self._one_in(4):
                self._layer(kind[0], [bottom], kind[1], in_place=not self._one_in(4))
                name = self._lines[-1].split('top: "')[1].split('"')[0]
                bottom = Blob(name, bottom.shape)
        self._add(bottom.name, bottom.shape)
        if self._one_in(2):
            self._pools()

    def _learns(self) -> None:
        bottom = self._bottom()
        if bottom is None or len(bottom.shape) != 4 or self._one_in(6):
            self._inner_product(bottom)
            return
        channels, (height, width) = int(self._choice([2, 4, 6])), bottom.shape[2:]
        kernel = self._choice([1, 3])
        stride = self._choice([1, 1, 2])
        group = 2 if bottom.shape[1] % 2 == 0 and self._one_in(4) else 1
        shared = ""
        if self._one_in(4):
            key = f"{bottom.shape[1]} {channels} {kernel} {group}"
            shared = f'param {{ name: "w{key}" }} param {{ name: "b{channels}" }}'
        elif self._one_in(8):
            shared = self._choice(
                ["param { lr_mult: 0 }", "param { lr_mult: 1 } param { lr_mult: 0 }"]
            )
        (top,) = self._layer(
            "Convolution",
            [bottom],
            f"{shared} convolution_param {{ num_output: {channels} kernel_size: {kernel} "
            f"pad: {kernel // 2} stride: {stride} group: {group} {XAVIER} }}",
        )
        sizes = ((size - 1) // stride + 1 for size in (height, width))
        self._add(top, (self.batch, channels, *sizes))

    def _inner_product(self, bottom: Blob) -> None:
        outputs = int(self._choice([3, 8]))
        (top,) = self._layer(
            "InnerProduct",
            [bottom],
            f"inner_product_param {{ num_output: {outputs} {XAVIER} "
            f"bias_term: {self._choice(['true', 'false'])} }}",
        )
        self._add(top, (self.batch, outputs))

    def _deconvolves(self) -> None:
        bottom = self._bottom(lambda blob: len(blob.shape) == 4 and blob.shape[2] < 13)
        if bottom is None:
            return
        (top,) = self._layer(
            "Deconvolution",
            [bottom],
            f"convolution_param {{ num_output: 3 kernel_size: 4 stride: 2 pad: 1 {XAVIER} }}",
        )
        self._add(top, (self.batch, 3, 2 * bottom.shape[2], 2 * bottom.shape[3]))

    def _pools(self) -> None:
        bottom = self._bottom(lambda blob: len(blob.shape) == 4 and min(blob.shape[2:]) > 2)
        if bottom is None:
            return
        method = self._choice(["MAX", "MAX", "AVE", "STOCHASTIC"])
        if method == "STOCHASTIC":  # draws from what is not negative
            (name,) = self._layer("ReLU", [bottom])
            bottom = Blob(name, bottom.shape)
        if self._one_in(5):
            (top,) = self._layer(
                "Pooling", [bottom], f"pooling_param {{ pool: {method} global_pooling: true }}"
            )
            self._add(top, (*bottom.shape[:2], 1, 1))
            return
        kernel = int(self._choice([1, 2, 3, 3]))
        stride = int(self._choice([1, 2, 3]))
        pad = 0 if method == "STOCHASTIC" or kernel == 1 else int(self._choice([0, 1]))
        two = method == "MAX" and self._one_in(8)
        tops = self._layer(
            "Pooling",
            [bottom],
            f"pooling_param {{ pool: {method} kernel_size: {kernel} stride: {stride} pad: {pad} }}",
            tops=1 + two,
        )
        sizes = [_pooled(size, kernel, stride, pad) for size in bottom.shape[2:]]
        self._add(tops[0], (*bottom.shape[:2], *sizes))

    def _normalises(self) -> None:
        bottom = self._bottom(lambda blob: len(blob.shape) == 4)
        if bottom:
            region = self._choice(["ACROSS_CHANNELS", "WITHIN_CHANNEL"])
            (top,) = self._layer(
                "LRN",
                [bottom],
                f"lrn_param {{ local_size: 3 alpha: 0.5 norm_region: {region} }}",
            )
            self._add(top, bottom.shape)

    def _joins(self) -> None:
        first = self._bottom()
        second = self._bottom(lambda blob: blob.shape == first.shape)
        operation = self._choice(["SUM", "SUM coeff: 0.5 coeff: -1", "PROD", "MAX"])
        (top,) = self._layer(
            "Eltwise", [first, second], f"eltwise_param {{ operation: {operation} }}"
        )
        self._add(top, first.shape)

    def _concatenates(self) -> None:
        first = self._bottom()
        second = self._bottom(
            lambda blob: len(blob.shape) == len(first.shape) and blob.shape[2:] == first.shape[2:]
        )
        (top,) = self._layer("Concat", [first, second])
        channels = first.shape[1] + second.shape[1]
        self._add(top, (self.batch, channels, *first.shape[2:]))

    def _cuts(self) -> None:
        bottom = self._bottom(lambda blob: blob.shape[1] % 2 == 0)
        if bottom:
            for top in self._layer("Slice", [bottom], tops=2):
                self._add(top, (self.batch, bottom.shape[1] // 2, *bottom.shape[2:]))

    def _splits(self) -> None:
        bottom = self._bottom()
        for top in self._layer("Split", [bottom], tops=2):
            self._add(top, bottom.shape)

    def _flattens(self) -> None:
        bottom = self._bottom(lambda blob: len(blob.shape) == 4)
        if bottom is None:
            return
        count = int(np.prod(bottom.shape[1:]))
        if self._one_in(2):
            (top,) = self._layer("Flatten", [bottom])
        else:
            (top,) = self._layer("Reshape", [bottom], "reshape_param { shape { dim: 0 dim: -1 } }")
        self._add(top, (self.batch, count))

    def _scales_by_another(self) -> None:
        """Of one factor for each sample, or one for each value."""
        first = self._bottom()
        second = self._bottom(lambda blob: blob.shape == first.shape)
        (top,) = self._layer("Scale", [first, second], "scale_param { axis: 0 }")
        self._add(top, first.shape)

    def _batches_joined(self) -> None:
        """Two batches as one of twice the size through layers that learn, and apart again."""
        first = self._bottom(lambda blob: len(blob.shape) == 4)
        if first is None:
            return
        second = self._bottom(lambda blob: blob.shape == first.shape)
        (both,) = self._layer("Concat", [first, second], "concat_param { axis: 0 }")
        blob = Blob(both, (2 * self.batch, *first.shape[1:]))
        (name,) = self._layer(
            "Convolution", [blob], f"convolution_param {{ num_output: 4 kernel_size: 1 {XAVIER} }}"
        )
        blob = Blob(name, (2 * self.batch, 4, *first.shape[2:]))
        self._layer("ReLU", [blob], in_place=True)
        for top in self._layer("Slice", [blob], "slice_param { axis: 0 }", tops=2):
            self._add(top, (self.batch, *blob.shape[1:]))

    def _reduces(self) -> None:
        bottom = self._bottom(lambda blob: len(blob.shape) == 4)
        if bottom:
            operation = self._choice(["SUM", "MEAN", "ASUM", "SUMSQ"])
            (top,) = self._layer(
                "Reduction", [bottom], f"reduction_param {{ axis: 2 operation: {operation} }}"
            )
            self._add(top, bottom.shape[:2])

    # -- losses ----------------------------------------------------------------------------------

    def _end(self) -> None:
        """One loss at the last blob, perhaps others; what nobody reads stays an output."""
        ends = [self._blobs[-1]] + [blob for blob in self._blobs[1:-1] if self._one_in(5)]
        label = Blob("label", (self.batch,))
        for number, end in enumerate(ends):
            weight = f"loss_weight: {self._choice([1, 0.3])}"
            (scores,) = self._layer(
                "InnerProduct",
                [end],
                f"inner_product_param {{ num_output: {CLASSES} {XAVIER} }}",
            )
            blob = Blob(scores, (self.batch, CLASSES))
            if number == 0 or self._one_in(2):
                self._layer("SoftmaxWithLoss", [blob, label], weight)
            else:
                self._layer("Reduction", [blob], f"{weight} reduction_param {{ operation: SUMSQ }}")


def _pooled(size: int, kernel: int, stride: int, pad: int) -> int:
    """Caffe's size of a pooled side."""
    pooled = -(-(size + 2 * pad - kernel) // stride) + 1
    if pad and (pooled - 1) * stride >= size + pad:
        pooled -= 1
    return pooled
