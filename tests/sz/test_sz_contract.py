"""What sz promises of every decoded value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sz_arrays import F32, any_bits, cases, gaussian, relu, specials

from caffe import _core, sz

CASES = cases()
BOUNDS = [0.0, 1e-30, 1e-6, 1e-3, 0.03, 0.3, 2.0, 1e30]
LENGTHS = [0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 1000, 65535, 65536, 65537, 131073]


def check(array: np.ndarray, bound: float, keep_sign: bool, restored: np.ndarray) -> None:
    assert restored.dtype == np.float32
    assert restored.shape == array.shape
    bits, restored_bits = array.view(np.uint32), restored.view(np.uint32)
    if bound == 0:
        assert np.array_equal(bits, restored_bits)
        return
    finite = np.isfinite(array)
    assert np.array_equal(bits[~finite], restored_bits[~finite])
    x, y = array[finite].astype(np.float64), restored[finite].astype(np.float64)
    assert np.all(np.abs(x - y) <= bound)
    assert np.all(y[x == 0] == 0)
    if keep_sign:
        assert np.array_equal(np.sign(x), np.sign(y))


def round_trip(array: np.ndarray, bound: float, keep_sign: bool = False) -> bytes:
    stream = sz.compress(array, bound, keep_sign=keep_sign)
    assert len(stream) <= _core.sz.max_compressed_size(array.size, array.ndim)
    check(array, bound, keep_sign, sz.decompress(stream))
    return stream


@pytest.mark.parametrize("keep_sign", [False, True])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, bound: float, keep_sign: bool) -> None:
    round_trip(CASES[name], bound, keep_sign)


@pytest.mark.parametrize("bound", [0.0, 0.05])
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length: int, bound: float) -> None:
    round_trip(relu(length), bound)
    round_trip(gaussian(length), bound, True)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 0, 2), (2, 3), (2, 3, 4), (4, 3, 5, 7),
                                   (2, 2, 2, 3, 5), (1,) * 32])  # fmt: skip
def test_shapes(shape: tuple[int, ...]) -> None:
    array = np.resize(gaussian(420), shape).astype(F32)
    stream = round_trip(array, 0.01)
    info = sz.info(stream)
    assert info["shape"] == shape
    assert info["raw_bytes"] == array.nbytes
    assert info["compressed_bytes"] == len(stream)
    assert (info["dtype"], info["error_bound"], info["keep_sign"]) == ("float32", 0.01, False)


@pytest.mark.parametrize("bound", [10.0**e for e in range(-44, 39, 3)] + [5e-324, 1.7e308])
def test_bounds_of_all_sizes(bound: float) -> None:
    for scale in [1.0, bound]:
        with np.errstate(over="ignore", under="ignore"):
            array = (gaussian(3000) * scale).astype(F32)
        for keep_sign in [False, True]:
            round_trip(array, bound, keep_sign)
    round_trip(np.concatenate([specials(), any_bits(5000)]), bound, True)


def test_values_at_the_edge_of_a_step() -> None:
    bound = 0.1
    steps = np.arange(-40_000, 40_000, dtype=np.float64) * bound
    array = np.concatenate(
        [steps.astype(F32), np.nextafter(steps.astype(F32), F32(0)),
         np.nextafter(steps.astype(F32), F32(np.inf))]
    )  # fmt: skip
    for keep_sign in [False, True]:
        round_trip(array, bound, keep_sign)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("steps", [16379.5, 16380, 16380.4, 16381, 16381.6, 16382, 16383, 32766])
def test_differences_of_the_largest_codes(steps: float, dtype: type) -> None:
    """Neighbours of opposite sign, as far apart as codes can be."""
    x = np.arange(16_384).reshape(64, 256)
    for signs in [(x + x // 256) % 2, x % 2, x // 256 % 2]:
        array = np.where(signs, dtype(steps), dtype(-steps)) * dtype(2 - 2**-9)
        array[::5] = 0
        for keep_sign, dither in [(False, None), (True, None), (False, 9), (True, 9)]:
            stream = sz.compress(array, 1.0, keep_sign=keep_sign, dither=dither)
            assert np.abs(sz.decompress(stream) - array).max() <= 1
            scalar = _core.sz.decompress(stream, isa="scalar")
            assert np.array_equal(scalar, sz.decompress(stream))


def test_not_contiguous_and_foreign_byte_order() -> None:
    array = gaussian(600).reshape(20, 30)
    for view in [array.T, array[::2, ::3], array.astype(">f4")]:
        restored = sz.decompress(sz.compress(view, 0.01))
        check(np.ascontiguousarray(view, F32), 0.01, False, restored)


def test_bytes_like_inputs() -> None:
    stream = sz.compress(gaussian(100), 0.01)
    expected = sz.decompress(stream)
    for data in [bytearray(stream), memoryview(stream), np.frombuffer(stream, np.uint8)]:
        assert np.array_equal(sz.decompress(data), expected)
        assert sz.info(data) == sz.info(stream)


@settings(max_examples=200, deadline=None)
@given(
    array=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=0, max_dims=4, max_side=20),
        elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
    ),
    bound=st.one_of(st.just(0.0), st.floats(min_value=1e-45, max_value=1e38)),
    keep_sign=st.booleans(),
)
def test_anything(array: np.ndarray, bound: float, keep_sign: bool) -> None:
    round_trip(array, bound, keep_sign)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sz.compress([1.0], 0.1), TypeError, "needs a NumPy array of float32"),
        (lambda: sz.compress(np.zeros(3, np.int32), 0.1), TypeError, "dtype int32"),
        (lambda: sz.compress(np.zeros(3, F32), -1), ValueError, "error_bound is -1"),
        (lambda: sz.compress(np.zeros(3, F32), float("nan")), ValueError, "error_bound is nan"),
        (lambda: sz.compress(np.zeros(3, F32), float("inf")), ValueError, "error_bound is inf"),
        (lambda: sz.compress(np.zeros(3, F32), 1, "std"), ValueError, "needs .abs. or .rel."),
        (lambda: sz.compress(np.zeros(3, F32), 1, threads=-1), ValueError, "threads is -1"),
        (lambda: sz.decompress("text"), TypeError, "needs bytes"),
        (lambda: sz.decompress(b"xyz"), sz.Error, "header"),
        (lambda: sz.info(b""), sz.Error, "header"),
        (lambda: _core.sz.compress(np.zeros(3, F32), -1.0), ValueError, "error_bound"),
        (lambda: _core.sz.compress(np.zeros(3, F32), 1.0, isa="mmx"), ValueError, "isa"),
    ],
)
def test_errors(call, error, words) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_error_is_a_runtime_error() -> None:
    assert issubclass(sz.Error, RuntimeError)
