"""Runs one built-in layer on NumPy arrays, without a net, and checks it.

    layer = LayerUnderTest('type: "ReLU"', [x])
    (y,) = layer.forward()
    (dx,) = layer.backward([dy])
    check_gradients(layer)             # against kink-aware finite differences
    check_golden("relu")               # against tests/golden/layers/relu.{prototxt,npz}

Buffers start as NaN, and backward gets only what the layer's needs() asked for, so a layer that
leaves values unwritten or reads what it did not declare fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from google.protobuf import text_format

from caffe import _core
from caffe.layer_types.builtin import BuiltInRunner
from caffe.layer_types.factory import make_layer
from caffe.proto import caffe_pb2 as pb

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "layers"
GOLDEN_RTOL, GOLDEN_ATOL = 1e-4, 1e-5

Array = np.ndarray
Kind = _core.MemoryKind
Quality = _core.layers.Quality


def to_tensor(array: Array, kind: Kind = Kind.RAW_ACTIVATIONS) -> _core.Tensor:
    """A tensor of the core with the array's shape and values."""
    tensor = _core.Tensor(list(array.shape), kind)
    tensor.numpy()[...] = array
    return tensor


def unwritten(shape: Sequence[int], kind: Kind = Kind.RAW_ACTIVATIONS) -> _core.Tensor:
    """A tensor full of NaN."""
    return to_tensor(np.full(tuple(shape), np.nan, np.float32), kind)


def random_array(*shape: int, seed: int = 0) -> Array:
    """Standard normal values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def distinct_array(*shape: int, seed: int = 0) -> Array:
    """Shuffled values at least 0.1 apart: no maximum changes hands in a small step."""
    count = int(np.prod(shape))
    values = (np.arange(count, dtype=np.float32) - count / 2) * 0.1
    return np.random.default_rng(seed).permutation(values).reshape(shape)


class LayerUnderTest:
    """One layer and the arrays it runs on.

    `text` is the body of a LayerParameter; unless it names tops, there is one, or none without
    `default_top`. Parameters that are not given are filled with random values. `propagate` and
    `learns` say which bottoms and parameters want gradients (default all).
    """

    def __init__(
        self,
        text: str,
        bottoms: Sequence[Array],
        parameters: Sequence[Array] | None = None,
        *,
        propagate: Sequence[bool] | None = None,
        learns: Sequence[bool] | None = None,
        phase: int = pb.TRAIN,
        random_key: int = 1701,
        seed: int = 0,
        default_top: bool = True,
    ) -> None:
        self.message = text_format.Parse(text, pb.LayerParameter())
        self.bottoms = [np.array(bottom, np.float32, order="C") for bottom in bottoms]
        if not self.message.bottom:
            self.message.bottom.extend(f"bottom {i}" for i in range(len(self.bottoms)))
        if not self.message.top and default_top:
            self.message.top.append("top")
        self.core = make_layer(self.message, phase, random_key)
        self.context = _core.layers.ForwardContext(
            train=phase == pb.TRAIN, save_for_backward=True, random_key=random_key
        )
        self.reshape()
        for index, parameter in enumerate(self.core.parameters):
            view = parameter.data.numpy()
            if parameters is not None:
                assert view.shape == parameters[index].shape
                view[...] = parameters[index]
            else:
                view[...] = random_array(*view.shape, seed=seed + 100 + index)
        self.propagation = _core.layers.Propagation(
            list(propagate) if propagate is not None else [True] * len(self.bottoms),
            list(learns) if learns is not None else [True] * len(self.core.parameters),
        )
        self.tops: list[Array] = []

    def reshape(self) -> None:
        """Tells the layer the shapes of `bottoms`, as a net does before it runs."""
        self.top_shapes = self.core.reshape([list(bottom.shape) for bottom in self.bottoms])

    @property
    def parameters(self) -> list[Array]:
        """Writable views of the parameters."""
        return [parameter.data.numpy() for parameter in self.core.parameters]

    @property
    def parameter_gradients(self) -> list[Array]:
        """Views of what backward added up since clear_gradients()."""
        return [parameter.gradient.numpy() for parameter in self.core.parameters]

    def clear_gradients(self) -> None:
        """Lets the next backward start the parameters' gradients from zero."""
        for parameter in self.core.parameters:
            parameter.clear_gradient()

    def forward(self, in_place: bool = False) -> list[Array]:
        """The tops for `bottoms`, as copies."""
        traits = self.core.traits()
        src = [to_tensor(bottom) for bottom in self.bottoms]
        if isinstance(self.core, BuiltInRunner) and self.core.layer.shaped_by_data:
            self.top_shapes = self.core.shapes_by_data(src)
        dst = [unwritten(shape) for shape in self.top_shapes]
        if traits.alias:
            dst = [src[0].reshaped(list(shape)) for shape in self.top_shapes]
        elif in_place:
            assert traits.forward_in_place
            dst[0] = src[0].reshaped(list(self.top_shapes[0]))
        self.core.forward(src, dst, self.context)
        self.tops = [tensor.numpy().copy() for tensor in dst]
        return self.tops

    def backward(self, diff_tops: Sequence[Array], in_place: bool = False) -> list[Array | None]:
        """The bottoms' gradients after the last forward(); None where none is propagated."""
        traits = self.core.traits()
        needs = self.core.needs(self.propagation)
        src = [_kept(need, array) for need, array in zip(needs.bottoms, self.bottoms)]
        dst = [_kept(need, array) for need, array in zip(needs.tops, self.tops)]
        diff_dst = [to_tensor(diff, Kind.GRADIENTS) for diff in diff_tops]
        diff_src = [
            unwritten(bottom.shape, Kind.GRADIENTS) if wanted else _core.Tensor()
            for bottom, wanted in zip(self.bottoms, self.propagation.bottoms)
        ]
        # An alias layer's gradients are one buffer as well.
        if traits.alias and len(diff_dst) == 1 and diff_src[0].defined:
            diff_src[0] = diff_dst[0].reshaped(list(self.bottoms[0].shape))
        elif in_place:
            assert traits.backward_in_place
            diff_src[0] = diff_dst[0].reshaped(list(self.bottoms[0].shape))
        self.core.backward(src, dst, diff_dst, diff_src, self.propagation)
        return [tensor.numpy().copy() if tensor.defined else None for tensor in diff_src]


def _kept(need: _core.layers.Need, array: Array) -> _core.Tensor:
    """What a net would hand to backward for this need, at its worst: nothing, or the sign alone."""
    if need.quality == Quality.NOTHING:
        return _core.Tensor()
    return to_tensor(np.sign(array) if need.quality == Quality.SIGN else array)


def check_in_place(layer: LayerUnderTest, seed: int = 7) -> None:
    """Asserts that running in place, where the layer's traits allow it, gives the same bits."""
    traits = layer.core.traits()
    tops = layer.forward()
    diffs = [random_array(*top.shape, seed=seed + i) for i, top in enumerate(tops)]
    gradients = layer.backward(diffs)
    assert traits.forward_in_place or traits.backward_in_place
    if traits.forward_in_place:
        for expected, got in zip(tops, layer.forward(in_place=True)):
            np.testing.assert_array_equal(got, expected)
    if traits.backward_in_place:
        layer.forward()
        for expected, got in zip(gradients, layer.backward(diffs, in_place=True)):
            if expected is not None:
                np.testing.assert_array_equal(got, expected)


def check_gradients(
    layer: LayerUnderTest,
    *,
    tops: Sequence[int] | None = None,
    step: float = 1e-2,
    tolerance: float = 1e-2,
    samples: int = 60,
    most_skipped: float = 0.2,
    seed: int = 11,
) -> None:
    """Asserts that backward agrees with finite differences of forward.

    The objective is a random weighting of `tops` (default all). Up to `samples` elements of each
    bottom and parameter are tried. Where the slopes to the left and right of a value differ, the
    step is halved (a kink may lie beside it, or the function bends); where they differ at every
    step there is no derivative and the element is skipped, at most `most_skipped` of them.
    `tolerance` is relative to the larger of the gradient's value and its root mean square.
    """
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal(tuple(shape)).astype(np.float32) for shape in layer.top_shapes]
    for i, weight in enumerate(weights):
        if tops is not None and i not in tops:
            weight[...] = 0
    layer.clear_gradients()
    layer.forward()
    wanted: dict[str, tuple[Array, Array]] = {}  # values and their gradient
    for i, gradient in enumerate(layer.backward(weights)):
        if gradient is not None:
            wanted[f"bottom {i}"] = layer.bottoms[i], gradient
    for i, learns in enumerate(layer.propagation.parameters):
        if learns:
            wanted[f"parameter {i}"] = layer.parameters[i], layer.parameter_gradients[i].copy()
    for name, (values, gradient) in wanted.items():
        assert np.isfinite(gradient).all(), f"{name}: gradient is not finite"
        scale = max(float(np.sqrt(np.mean(np.square(gradient, dtype=np.float64)))), 1e-3)
        skipped = 0
        chosen = rng.choice(values.size, min(samples, values.size), replace=False)
        for index in chosen:
            expected = float(gradient.flat[index])
            limit = tolerance * max(scale, abs(expected))
            slope = _slope(layer, weights, (values, index), step, 4 * limit)
            if slope is None:
                skipped += 1
                continue
            assert abs(slope - expected) <= limit, (
                f"{name}, element {np.unravel_index(index, values.shape)}: backward gives "
                f"{expected:.6g}, finite differences {slope:.6g}"
            )
        assert skipped <= most_skipped * len(chosen), f"{name}: {skipped} of {len(chosen)} at kinks"


def _slope(
    layer: LayerUnderTest,
    weights: Sequence[Array],
    element: tuple[Array, int],
    step: float,
    most_apart: float,
) -> float | None:
    """Slope of the objective at an element; None where its two sides are more than that apart.

    Differences are taken per output value and summed in double, so that outputs that do not move
    add no rounding.
    """
    values, index = element
    saved = values.flat[index]

    def tops_at(value: np.float32) -> list[Array]:
        values.flat[index] = value
        tops = layer.forward()
        values.flat[index] = saved
        return tops

    def change(above: list[Array], below: list[Array]) -> float:
        return sum(
            float(np.sum(weight.astype(np.float64) * (a.astype(np.float64) - b)))
            for weight, a, b in zip(weights, above, below)
        )

    middle = tops_at(saved)
    for halvings in range(4):
        high, low = np.float32(saved + step / 2**halvings), np.float32(saved - step / 2**halvings)
        right = change(tops_at(high), middle) / (float(high) - float(saved))
        left = change(middle, tops_at(low)) / (float(saved) - float(low))
        if abs(right - left) <= most_apart:
            return (right + left) / 2
    return None


def golden_names(*prefixes: str) -> list[str]:
    """Names of the golden cases that start with one of the prefixes."""
    names = sorted(path.stem for path in GOLDEN.glob("*.npz"))
    return [name for name in names if name.startswith(prefixes)]


def check_golden(name: str, *, rtol: float = GOLDEN_RTOL, atol: float = GOLDEN_ATOL) -> None:
    """Asserts that a case with one layer besides its Input layers gives BVLC Caffe's figures."""
    text = (GOLDEN / f"{name}.prototxt").read_text()
    net = text_format.Parse(text, pb.NetParameter())
    (message,) = [layer for layer in net.layer if layer.type != "Input"]
    with np.load(GOLDEN / f"{name}.npz") as file:
        figures = {key: file[key] for key in file.files}
    parameters = [
        figures[key] for key in sorted(figures) if key.startswith(f"param_{message.name}_")
    ]
    propagate = [f"diff_in_{bottom}" in figures for bottom in message.bottom]
    layer = LayerUnderTest(
        text_format.MessageToString(message),
        [figures[f"in_{bottom}"] for bottom in message.bottom],
        parameters or None,
        propagate=propagate,
        phase=pb.TEST if name.endswith("_test") else pb.TRAIN,
    )
    tops = layer.forward()
    for top, got in zip(message.top, tops):
        _assert_close(got, figures[f"out_{top}"], rtol, atol, f"{name}: top {top}")
    if not any(key.startswith("diff_") for key in figures):
        return
    # A loss starts from its loss_weight, 1 where none is given.
    diffs = [
        figures.get(
            f"diff_out_{top}",
            np.full(got.shape, message.loss_weight[i] if message.loss_weight else i == 0),
        )
        for i, (top, got) in enumerate(zip(message.top, tops))
    ]
    for bottom, got in zip(message.bottom, layer.backward(diffs)):
        if got is not None:
            expected = figures[f"diff_in_{bottom}"]
            _assert_close(got, expected, rtol, atol, f"{name}: gradient of bottom {bottom}")
    for i, got in enumerate(layer.parameter_gradients):
        key = f"diff_param_{message.name}_{i}"
        if key in figures:
            _assert_close(got, figures[key], rtol, atol, f"{name}: gradient of parameter {i}")
    for i, got in enumerate(layer.parameters):
        key = f"param_after_{message.name}_{i}"
        if key in figures:
            _assert_close(got, figures[key], rtol, atol, f"{name}: parameter {i} after forward")


def _assert_close(got: Array, expected: Array, rtol: float, atol: float, what: str) -> None:
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=what)
