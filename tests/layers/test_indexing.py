"""ArgMax, BatchReindex, Embed, Filter, Parameter, Silence and HDF5Output."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from harness import (
    LayerUnderTest,
    Quality,
    check_golden,
    check_gradients,
    distinct_array,
    random_array,
)

import caffe
from caffe import _core
from caffe.proto import caffe_pb2 as pb


@pytest.mark.parametrize("name", ["argmax", "argmax_maxval"])
def test_golden(name: str) -> None:
    check_golden(name)


# -- ArgMax ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("top_k", [1, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arg_max_along_an_axis(axis: int, top_k: int) -> None:
    x = distinct_array(4, 5, 3)
    order = np.flip(np.argsort(x, axis), axis).take(range(top_k), axis)
    text = f'type: "ArgMax" argmax_param {{ axis: {axis} top_k: {top_k} %s }}'
    np.testing.assert_array_equal(LayerUnderTest(text % "", [x]).forward()[0], order)
    (values,) = LayerUnderTest(text % "out_max_val: true", [x]).forward()
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("shape", [(4, 6), (4, 2, 3), (4, 2, 3, 1, 1)])
def test_arg_max_of_samples(shape: tuple[int, ...]) -> None:
    x = distinct_array(*shape)
    rows = x.reshape(4, 6)
    order = np.argsort(-rows, 1)[:, :2]
    (indices,) = LayerUnderTest('type: "ArgMax" argmax_param { top_k: 2 }', [x]).forward()
    extra = [1] * max(len(shape) - 3, 0)
    np.testing.assert_array_equal(indices, order.reshape(4, 1, 2, *extra))
    text = 'type: "ArgMax" argmax_param { top_k: 2 out_max_val: true }'
    (both,) = LayerUnderTest(text, [x]).forward()
    assert both.shape == (4, 2, 2, *extra)
    np.testing.assert_array_equal(both[:, 0].reshape(4, 2), order)
    np.testing.assert_array_equal(both[:, 1].reshape(4, 2), np.take_along_axis(rows, order, 1))


def test_arg_max_of_equal_values() -> None:
    """As BVLC Caffe, which sorts pairs of value and index: the higher index comes first."""
    x = np.float32([[1, 3, 3, 2, 3]])
    (y,) = LayerUnderTest('type: "ArgMax" argmax_param { top_k: 4 }', [x]).forward()
    np.testing.assert_array_equal(y.ravel(), [4, 2, 1, 3])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("top_k: 0", "top_k 0, needs 1 to 12"),
        ("top_k: 13", "top_k 13, needs 1 to 12"),
        ("top_k: 5 axis: 1", "top_k 5, needs 1 to 4"),
        ("axis: 3", "axis 3 does not exist"),
    ],
)
def test_bad_arg_max(options: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(f'type: "ArgMax" argmax_param {{ {options} }}', [random_array(2, 4, 3)])


# -- BatchReindex ----------------------------------------------------------------------------------


def test_batch_reindex() -> None:
    x, index = random_array(5, 3, 2), np.float32([3, 0, 3, 3, 4, 0])
    layer = LayerUnderTest('type: "BatchReindex"', [x, index], propagate=[True, False])
    np.testing.assert_array_equal(layer.forward()[0], x[index.astype(int)])
    check_gradients(layer, step=0.25, tolerance=2e-3)
    needs = layer.core.needs(layer.propagation)
    assert [need.quality for need in needs.bottoms] == [Quality.NOTHING, Quality.EXACT]
    (nothing,) = LayerUnderTest('type: "BatchReindex"', [x, np.zeros(0)]).forward()
    assert nothing.shape == (0, 3, 2)


@pytest.mark.parametrize("index", [-1, 5, np.nan])
def test_batch_reindex_out_of_range(index: float) -> None:
    layer = LayerUnderTest('type: "BatchReindex"', [random_array(5, 3), [0, index]])
    with pytest.raises(ValueError, match=r"at position 1 is not one of the 5 rows \(0 to 4\)"):
        layer.forward()


def test_bad_batch_reindex() -> None:
    with pytest.raises(ValueError, match="indices along one axis"):
        LayerUnderTest('type: "BatchReindex"', [random_array(5, 3), np.zeros((2, 2))])


# -- Embed -----------------------------------------------------------------------------------------

EMBED = 'type: "Embed" embed_param { num_output: 4 input_dim: 6 %s }'


@pytest.mark.parametrize("bias", ["", "bias_term: false"])
def test_embed(bias: str) -> None:
    index = np.float32([[3, 0, 3], [5, 5, 3]])
    layer = LayerUnderTest(EMBED % bias, [index], propagate=[False])
    table, *offsets = layer.parameters
    expected = table[index.astype(int)] + sum(offsets)
    np.testing.assert_allclose(layer.forward()[0], expected, rtol=1e-6)
    check_gradients(layer, step=0.25, tolerance=2e-3)
    assert layer.core.traits().differentiable_bottoms == 0
    assert layer.core.needs(layer.propagation).bottoms[0].quality == Quality.EXACT
    frozen = _core.layers.Propagation([False], [False] * len(layer.parameters))
    assert layer.core.needs(frozen).bottoms[0].quality == Quality.NOTHING


def test_embed_against_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    index = np.random.default_rng(0).integers(0, 6, 200)
    layer = LayerUnderTest(EMBED % "bias_term: false", [index], propagate=[False])
    dy = random_array(200, 4)
    table = torch.tensor(layer.parameters[0], requires_grad=True)
    torch.nn.functional.embedding(torch.tensor(index), table).backward(torch.tensor(dy))
    layer.forward()
    layer.backward([dy])
    np.testing.assert_allclose(layer.parameter_gradients[0], table.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("index", [-1, 6, np.inf])
def test_embed_out_of_range(index: float) -> None:
    layer = LayerUnderTest(EMBED % "", [[0, 1, index]])
    with pytest.raises(ValueError, match=r"at position 2 is not one of the 6 rows \(0 to 5\)"):
        layer.forward()


def test_bad_embed() -> None:
    with pytest.raises(ValueError, match="num_output 0 and input_dim 6, needs both"):
        LayerUnderTest('type: "Embed" embed_param { input_dim: 6 }', [[0]])


# -- Filter ----------------------------------------------------------------------------------------

FILTER = 'type: "Filter" top: "a" top: "b"'


@pytest.mark.parametrize("selected", [[1, 0, 0, 2.5, -1], [0] * 5, [1] * 5])
def test_filter(selected: list[float]) -> None:
    x, z = random_array(5, 3), random_array(5, 2, 2, seed=1)
    layer = LayerUnderTest(FILTER, [x, z, selected], propagate=[True, True, False])
    kept = np.array(selected) != 0
    tops = layer.forward()
    for top, bottom in zip(tops, (x, z)):
        np.testing.assert_array_equal(top, bottom[kept])
    diffs = [random_array(*top.shape, seed=k) for k, top in enumerate(tops)]
    for gradient, diff in zip(layer.backward(diffs), diffs):
        np.testing.assert_array_equal(gradient[kept], diff)
        np.testing.assert_array_equal(gradient[~kept], 0)
    needs = layer.core.needs(layer.propagation)
    assert [need.quality for need in needs.bottoms] == [Quality.NOTHING] * 2 + [Quality.EXACT]


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS"])
def test_filter_in_a_net_follows_each_batch(mode: str) -> None:
    net = text_format.Parse(
        """
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
        layer { name: "s" type: "Input" top: "s" input_param { shape { dim: 4 } } }
        layer { name: "f" type: "Filter" bottom: "x" bottom: "s" top: "f" }
        layer { name: "p" type: "Power" bottom: "f" top: "p" power_param { scale: 2 } }
        """,
        pb.NetParameter(),
    )
    made = caffe.Net.from_param(
        net,
        pb.NetState(phase=pb.TRAIN),
        caffe.net.Settings(pb.CompressionParameter(mode=mode), seed=1),
    )
    x = random_array(4, 3)
    for selected in ([1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]):
        out = made.forward(x=x, s=np.float32(selected))["p"]
        np.testing.assert_array_equal(out, 2 * x[np.array(selected) != 0])


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([(5, 3), (5,)], "has 2 tops for 2 bottoms, needs 1"),
        ([(5, 3), (4, 3), (5,)], "the selector for bottom 1"),
        ([(5, 3), (5, 3), (5, 2)], "needs one value a sample"),
        ([(5, 3)], "has 1 bottoms, needs 2 or more"),
    ],
)
def test_bad_filter(shapes: list[tuple[int, ...]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LayerUnderTest(FILTER, [np.zeros(shape) for shape in shapes])


# -- Parameter and Silence -------------------------------------------------------------------------


def test_parameter() -> None:
    layer = LayerUnderTest('type: "Parameter" parameter_param { shape { dim: 2 dim: 3 } }', [])
    np.testing.assert_array_equal(layer.forward()[0], layer.parameters[0])
    dy = random_array(2, 3, seed=9)
    layer.backward([dy])
    layer.backward([dy])
    np.testing.assert_array_equal(layer.parameter_gradients[0], 2 * dy)
    with pytest.raises(ValueError, match="parameter_param has no shape"):
        LayerUnderTest('type: "Parameter"', [])
    with pytest.raises(ValueError, match="has 1 bottoms, needs 0"):
        LayerUnderTest('type: "Parameter" parameter_param { shape { } }', [random_array(2)])


def test_silence() -> None:
    bottoms = [random_array(2), random_array(3, 4)]
    layer = LayerUnderTest('type: "Silence"', bottoms, default_top=False)
    assert layer.forward() == []
    for gradient in layer.backward([]):
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))
    with pytest.raises(ValueError, match="has 1 tops, needs 0"):
        LayerUnderTest('type: "Silence" top: "y"', bottoms)


# -- HDF5Output ------------------------------------------------------------------------------------


def output(file: Path | str) -> str:
    return f'type: "HDF5Output" hdf5_output_param {{ file_name: "{file}" }}'


def test_hdf5_output(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    file = tmp_path / "out.h5"
    x, y = random_array(6, 2, 3), np.arange(6, dtype=np.float32)
    layer = LayerUnderTest(output(file), [x[:4], y[:4]], default_top=False)
    layer.forward()
    layer.bottoms = [x[4:], y[4:]]
    layer.reshape()
    layer.forward()
    layer.core.layer.close()
    with h5py.File(file) as found:
        np.testing.assert_array_equal(found["data"], x)
        np.testing.assert_array_equal(found["label"], y)
        assert found["data"].dtype == np.float32


def test_bad_hdf5_output(tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="h5py is not installed")
    file = tmp_path / "out.h5"
    with pytest.raises(ValueError, match="no file_name"):
        LayerUnderTest('type: "HDF5Output"', [[1], [1]], default_top=False)
    with pytest.raises(OSError, match="cannot make the HDF5 file"):
        LayerUnderTest(output(tmp_path / "no" / "out.h5"), [[1], [1]], default_top=False)
    with pytest.raises(ValueError, match="a first axis of one length"):
        LayerUnderTest(output(file), [[1, 2], [1]], default_top=False)
    layer = LayerUnderTest(
        output(tmp_path / "b.h5"), [random_array(2, 3), [1, 2]], default_top=False
    )
    layer.bottoms[0] = random_array(2, 4)
    with pytest.raises(ValueError, match=r"samples of 'data' have shape \(4,\), those in the file"):
        layer.reshape()


def test_hdf5_output_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"needs the package h5py .* extra 'hdf5'"):
        LayerUnderTest(output(tmp_path / "out.h5"), [[1], [1]], default_top=False)
