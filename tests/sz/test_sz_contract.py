"""What sz promises of every decoded value."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sz_arrays import (
    F32,
    F64,
    all_cases,
    any_bits,
    any_bits64,
    gaussian,
    gaussian64,
    relu,
    relu64,
    smooth,
    specials,
    specials64,
)

from caffe import _core, sz

CASES = all_cases()
BOUNDS = [0.0, 1e-30, 1e-6, 1e-3, 0.03, 0.3, 2.0, 1e30]
LENGTHS = [0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 255, 256, 257, 511, 1000, 65535, 65536, 65537,
           131071, 131073]  # fmt: skip
OPTIONS = [(False, None), (True, None), (False, 9), (True, 9)]


def bits_of(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint32 if array.dtype == F32 else np.uint64)


def check(array: np.ndarray, bound: float, keep_sign: bool, restored: np.ndarray) -> None:
    assert restored.dtype == array.dtype
    assert restored.shape == array.shape
    bits, restored_bits = bits_of(array), bits_of(restored)
    if bound == 0:
        assert np.array_equal(bits, restored_bits)
        return
    finite = np.isfinite(array)
    assert np.array_equal(bits[~finite], restored_bits[~finite])
    x, y = array[finite], restored[finite]
    # In a wider type, where the difference is exact (or as good as, for float64).
    with np.errstate(over="ignore"):
        error = np.abs(x.astype(np.longdouble) - y.astype(np.longdouble))
    assert np.all(error <= bound)
    assert np.all(y[x == 0] == 0)
    if keep_sign:
        assert np.array_equal(np.sign(x), np.sign(y))


def round_trip(
    array: np.ndarray, bound: float, keep_sign: bool = False, dither: int | None = None
) -> bytes:
    stream = sz.compress(array, bound, keep_sign=keep_sign, dither=dither)
    most = _core.sz.max_compressed_size(array.size, array.ndim, array.dtype == F64)
    assert len(stream) <= most
    check(array, bound, keep_sign, sz.decompress(stream))
    return stream


@pytest.mark.parametrize(("keep_sign", "dither"), OPTIONS)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, bound: float, keep_sign: bool, dither: int | None) -> None:
    round_trip(CASES[name], bound, keep_sign, dither)


@pytest.mark.parametrize("bound", [0.0, 0.05])
@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length: int, bound: float) -> None:
    for keep_sign, dither in OPTIONS:
        round_trip(relu(length), bound, keep_sign, dither)
        round_trip(gaussian64(length), bound, keep_sign, dither)


SHAPES = [(), (0,), (1,), (5,), (3, 0, 2), (0, 0), (2, 3), (2, 3, 4), (4, 3, 5, 7), (2, 2, 2, 3, 5),
          (1,) * 32, (255, 3), (3, 256), (257, 2), (1, 65537), (65535, 1), (2, 256, 257),
          (16, 3, 32, 32), (4096, 3), (3, 2048), (3, 4097)]  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: tuple[int, ...], dtype: type) -> None:
    array = np.resize(gaussian(420), shape).astype(dtype)
    for bound in [0.0, 0.01]:
        stream = round_trip(array, bound)
        info = sz.info(stream)
        assert info["shape"] == shape
        assert info["raw_bytes"] == array.nbytes
        assert info["compressed_bytes"] == len(stream)
        assert (info["dtype"], info["error_bound"]) == (np.dtype(dtype).name, bound)
        assert info["chunks"] == -(-array.size // info["chunk_values"])


def test_info_tells_the_options() -> None:
    array = gaussian(100)
    plain = sz.info(sz.compress(array, 0.25))
    assert (plain["version"], plain["keep_sign"], plain["dither"], plain["checksum"]) == (
        3, False, None, False,
    )  # fmt: skip
    full = sz.info(sz.compress(array, 0.25, keep_sign=True, dither=2**32 - 1, checksum=True))
    assert (full["keep_sign"], full["dither"], full["checksum"]) == (True, 2**32 - 1, True)
    assert full["error_bound"] == 0.25


@pytest.mark.parametrize("bound", [10.0**e for e in range(-44, 39, 3)] + [5e-324, 1.7e308])
def test_bounds_of_all_sizes(bound: float) -> None:
    for scale in [1.0, bound]:
        with np.errstate(over="ignore", under="ignore"):
            arrays = [(gaussian(3000) * scale).astype(F32), gaussian64(3000) * scale]
        for array in arrays:
            for keep_sign, dither in OPTIONS:
                round_trip(array, bound, keep_sign, dither)
    for keep_sign, dither in OPTIONS:
        round_trip(np.concatenate([specials(), any_bits(5000)]), bound, keep_sign, dither)
        round_trip(np.concatenate([specials64(), any_bits64(5000)]), bound, keep_sign, dither)


@pytest.mark.parametrize("bound", [10.0**e for e in range(-320, 309, 25)])
def test_bounds_of_all_sizes_of_float64(bound: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        array = gaussian64(3000) * bound * 30
    for keep_sign, dither in OPTIONS:
        round_trip(array, bound, keep_sign, dither)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_values_at_the_edge_of_a_step(dtype: type) -> None:
    bound = 0.1
    steps = (np.arange(-40_000, 40_000, dtype=F64) * bound).astype(dtype)
    array = np.concatenate(
        [steps, np.nextafter(steps, dtype(0)), np.nextafter(steps, dtype(np.inf))]
    )
    for keep_sign, dither in OPTIONS:
        round_trip(array, bound, keep_sign, dither)


def test_edges_of_steps_under_any_bound() -> None:
    """Kernels decode only what may miss the bound; rounding goes another way under every bound."""
    rng = np.random.default_rng(7)
    near = np.arange(-1100, 1101)
    for bound in 2.0 ** rng.uniform(-114, 100, 100):
        step = np.float32(2 * bound * (1 - 2.0**-10))
        halves = np.concatenate([near, rng.integers(-32_000, 32_000, near.size)]) / 2
        edges = (halves * step).astype(F32)
        array = np.concatenate([np.nextafter(edges, F32(side)) for side in (-np.inf, 0, np.inf)])
        for keep_sign, dither in OPTIONS:
            round_trip(np.tile(array, 2), float(bound), keep_sign, dither)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("steps", [16379.5, 16380, 16380.4, 16381, 16381.6, 16382, 16383, 32766])
def test_differences_of_the_largest_codes(steps: float, dtype: type) -> None:
    """Neighbours of opposite sign, as far apart as codes can be."""
    x = np.arange(16_384).reshape(64, 256)
    for signs in [(x + x // 256) % 2, x % 2, x // 256 % 2]:
        array = np.where(signs, dtype(steps), dtype(-steps)) * dtype(2 - 2**-9)
        array[::5] = 0
        for keep_sign, dither in OPTIONS:
            stream = round_trip(array, 1.0, keep_sign, dither)
            scalar = _core.sz.decompress(stream, isa="scalar")
            assert np.array_equal(bits_of(scalar), bits_of(sz.decompress(stream)))


def test_not_contiguous_and_foreign_byte_order() -> None:
    for dtype, foreign in [(F32, ">f4"), (F64, ">f8")]:
        array = gaussian(600).reshape(20, 30).astype(dtype)
        for view in [array.T, array[::2, ::3], array[::-1], array.astype(foreign)]:
            restored = sz.decompress(sz.compress(view, 0.01))
            check(np.ascontiguousarray(view, dtype), 0.01, False, restored)


def test_bytes_like_inputs() -> None:
    stream = sz.compress(gaussian(100), 0.01)
    expected = sz.decompress(stream)
    for data in [bytearray(stream), memoryview(stream), np.frombuffer(stream, np.uint8)]:
        assert np.array_equal(sz.decompress(data), expected)
        assert np.array_equal(sz.decompress_range(data, 3, 50), expected[3:53])
        assert sz.info(data) == sz.info(stream)


# --- mode "rel" ---


@pytest.mark.parametrize(
    "array",
    [gaussian(5000), relu64(5000), CASES["mixed"], CASES["images"], np.zeros(100, F32),
     np.full(100, 7, F32), np.full(10, np.nan), np.zeros(0, F32), np.array([-3, 5], F64)],
)  # fmt: skip
def test_relative_bounds_are_shares_of_the_range(array: np.ndarray) -> None:
    finite = array[np.isfinite(array)].astype(F64)
    extent = float(finite.max() - finite.min()) if finite.size else 0.0
    bound = 1e-3 * extent
    assert sz.compress(array, 1e-3, "rel") == sz.compress(array, bound)
    assert sz.info(sz.compress(array, 1e-3, "rel"))["error_bound"] == bound
    check(array, bound, False, sz.decompress(sz.compress(array, 1e-3, "rel")))


def test_a_range_that_overflows() -> None:
    array = np.array([-1.7e308, 1.7e308, 1.0] * 100)
    stream = sz.compress(array, 1e-3, "rel")
    assert 1.7e305 < sz.info(stream)["error_bound"] < 3.5e305
    check(array, sz.info(stream)["error_bound"], False, sz.decompress(stream))


# --- dither ---


@pytest.mark.parametrize("keep_sign", [False, True])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_dithered_errors_are_uniform_and_independent(dtype: type, keep_sign: bool) -> None:
    array = relu(1 << 21, 21).astype(dtype)
    nonzero = array != 0
    values = array[nonzero].astype(F64)
    assert values.size >= 1_000_000
    bound = float(values.std())
    restored = sz.decompress(sz.compress(array, bound, keep_sign=keep_sign, dither=1))
    check(array, bound, keep_sign, restored)
    errors = (restored[nonzero].astype(F64) - values) / bound
    if keep_sign:
        # Values within half a step of zero may not cross it: those give up the independence.
        far = values > 2 * bound
        values, errors = values[far], errors[far]
    # Of 4 standard deviations of a mean of n uniform errors.
    limit = 4 / np.sqrt(3 * values.size) if keep_sign else 0.01
    assert abs(errors.mean()) < max(limit, 0.01)
    assert abs(np.corrcoef(errors, values)[0, 1]) < 0.01
    assert errors.std() == pytest.approx(1 / np.sqrt(3), rel=0.01)
    distance = np.abs(np.sort(errors) - np.linspace(-1, 1, errors.size)).max() / 2
    assert distance < 0.005  # of the distribution functions (Kolmogorov and Smirnov)


def test_rounding_without_dither_depends_on_the_values() -> None:
    """The test above can fail: coarse rounding does."""
    values = relu(1 << 20, 3)
    values = values[values > 0]
    bound = float(values.std())
    errors = (sz.decompress(sz.compress(values, bound)) - values) / bound
    assert abs(errors.mean()) > 0.05
    assert abs(np.corrcoef(errors, values)[0, 1]) > 0.05


def test_seeds_give_different_errors_and_the_same_seed_the_same() -> None:
    array = gaussian(10_000)
    a, b, c = (sz.compress(array, 0.5, dither=seed) for seed in [1, 1, 2])
    assert a == b
    errors = [sz.decompress(stream) - array for stream in (a, c)]
    assert abs(np.corrcoef(*errors)[0, 1]) < 0.05


def test_dithered_errors_of_values_are_independent_of_each_other() -> None:
    """At any distance; equal values, whose errors are the dither's alone."""
    count = 1 << 20
    array = np.full(count, 0.3, F32)
    for seed in [0, 1, 2**31]:
        errors = sz.decompress(sz.compress(array, 1.0, dither=seed)).astype(F64) - array
        errors /= errors.std()
        spectrum = np.fft.rfft(errors, 2 * count)
        distances = np.arange(1, count // 2)
        sums = np.fft.irfft(np.abs(spectrum) ** 2)[distances]
        # The largest of half a million standard normal numbers is beyond 6.5 once in 25,000 tries.
        assert np.abs(sums / np.sqrt(count - distances)).max() < 6.5


# --- out and ranges ---


@pytest.mark.parametrize("name", ["mixed", "mixed64", "images", "images64"])
def test_out(name: str) -> None:
    array = CASES[name]
    stream = sz.compress(array, 0.01, checksum=True)
    out = np.empty_like(array)
    assert sz.decompress(stream, out=out) is out
    assert np.array_equal(bits_of(out), bits_of(sz.decompress(stream)))


@pytest.mark.parametrize(
    ("array", "bound"),
    [
        (relu(200_000), 0.1),
        (gaussian64(150_000), 0.0),
        (smooth((9, 13, 40, 50), 1), 0.05),
        (smooth((3, 2, 128, 128), 2).astype(F64), 0.05),
        (any_bits(140_000), 0.1),
    ],
)
@pytest.mark.parametrize("dither", [None, 4])
def test_ranges_are_slices(array: np.ndarray, bound: float, dither: int | None) -> None:
    stream = sz.compress(array, bound, dither=dither, checksum=dither is not None)
    whole = bits_of(sz.decompress(stream).ravel())
    info = sz.info(stream)
    assert info["chunks"] >= 2
    size = info["chunk_values"]
    borders = {i * size for i in range(info["chunks"])} | {array.size}
    points = sorted({p for b in borders for p in (b - 1, b, b + 1) if 0 <= p <= array.size})
    for i, first in enumerate(points):
        for end in points[i:]:
            part = sz.decompress_range(stream, first, end - first)
            assert part.shape == (end - first,)
            assert np.array_equal(bits_of(part), whole[first:end])
    for first, count in [(5, 0), (0, array.size), (size - 3, size // 2), (array.size, 0)]:
        part = sz.decompress_range(stream, first, count)
        assert np.array_equal(bits_of(part), whole[first : first + count])


# --- many at once ---


def test_sixteen_threads_with_different_bounds() -> None:
    arrays = [relu(90_000, 1), gaussian64(50_000, 2), smooth((3, 4, 50, 50), 3)]

    def work(i: int) -> list[bytes]:
        bound = 10.0 ** -(i % 5) * (i + 1)
        done = []
        for array in arrays:
            stream = sz.compress(array, bound, keep_sign=i % 2 == 0, dither=i if i % 3 else None)
            check(array, bound, i % 2 == 0, sz.decompress(stream))
            done.append(stream)
        return done

    alone = [work(i) for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(work, [*range(16)] * 3))
    assert together == alone * 3


@settings(max_examples=200, deadline=None)
@given(
    array=st.one_of(
        hnp.arrays(
            np.float32,
            hnp.array_shapes(min_dims=0, max_dims=4, max_side=20),
            elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
        ),
        hnp.arrays(
            np.float64,
            hnp.array_shapes(min_dims=0, max_dims=4, max_side=20),
            elements=st.floats(allow_nan=True, allow_infinity=True),
        ),
    ),
    bound=st.one_of(st.just(0.0), st.floats(min_value=1e-45, max_value=1e38)),
    keep_sign=st.booleans(),
    dither=st.one_of(st.none(), st.integers(0, 2**32 - 1)),
)
def test_anything(array: np.ndarray, bound: float, keep_sign: bool, dither: int | None) -> None:
    round_trip(array, bound, keep_sign, dither)


# --- errors ---

STREAM = sz.compress(np.zeros((2, 3), F32), 0.1)


def read_only() -> np.ndarray:
    array = np.zeros((2, 3), F32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sz.compress([1.0], 0.1), TypeError, "needs a NumPy array of float32"),
        (lambda: sz.compress(np.zeros(3, np.int32), 0.1), TypeError, "dtype int32"),
        (lambda: sz.compress(np.zeros(3, np.float16), 0.1), TypeError, "dtype float16"),
        (lambda: sz.compress(np.zeros(3, F32), -1), ValueError, "error_bound is -1"),
        (lambda: sz.compress(np.zeros(3, F32), float("nan")), ValueError, "error_bound is nan"),
        (lambda: sz.compress(np.zeros(3, F32), float("inf")), ValueError, "error_bound is inf"),
        (lambda: sz.compress(np.zeros(3, F32), 1, "std"), ValueError, "needs .abs. or .rel."),
        (lambda: sz.compress(np.zeros(3, F32), 1, threads=-1), ValueError, "threads is -1"),
        (lambda: sz.compress(np.zeros(3, F32), 1, dither=-1), ValueError, "dither is -1"),
        (lambda: sz.compress(np.zeros(3, F32), 1, dither=2**32), ValueError, "dither is 4294967"),
        (lambda: sz.compress(np.zeros(3, F32), 1, row_length=0), ValueError, "row_length is 0"),
        (lambda: sz.decompress("text"), TypeError, "needs bytes"),
        (lambda: sz.decompress(memoryview(b"abcd")[::2]), ValueError, "not contiguous"),
        (lambda: sz.decompress(b"xyz"), sz.Error, "header"),
        (lambda: sz.decompress(STREAM, threads=-2), ValueError, "threads is -2"),
        (lambda: sz.decompress(STREAM, out=np.zeros((2, 3))), TypeError, "out is an array"),
        (lambda: sz.decompress(STREAM, out=[0.0]), TypeError, "out is list"),
        (lambda: sz.decompress(STREAM, out=np.zeros((3, 2), F32)), ValueError, "out has shape"),
        (lambda: sz.decompress(STREAM, out=np.zeros((3, 2), F32).T), ValueError, "C-contiguous"),
        (lambda: sz.decompress(STREAM, out=read_only()), ValueError, "writable"),
        (lambda: sz.decompress_range(STREAM, -1, 2), ValueError, "first is -1"),
        (lambda: sz.decompress_range(STREAM, 1, -2), ValueError, "count -2"),
        (lambda: sz.decompress_range(STREAM, 4, 3), ValueError, "4 to 7 of a stream that"),
        (lambda: sz.decompress_range(STREAM, 7, 0), ValueError, "holds 6"),
        (lambda: sz.info(b""), sz.Error, "header"),
        (lambda: sz.info(3), TypeError, "needs bytes"),
        (lambda: _core.sz.compress(np.zeros(3, F32), -1.0), ValueError, "error_bound"),
        (lambda: _core.sz.compress(np.zeros(3, F32), 1.0, isa="mmx"), ValueError, "isa"),
    ],
)  # fmt: skip
def test_errors(call, error, words) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_error_is_a_runtime_error() -> None:
    assert issubclass(sz.Error, RuntimeError)


@pytest.mark.parametrize(("name", "bound"), [("saw", 1e-3), ("gaussian", 5e-5), ("any_bits", 1.0)])
def test_bounds_too_tight_for_the_grid_cost_no_more_than_lossless(name: str, bound: float) -> None:
    array = CASES[name]
    assert len(sz.compress(array, bound)) <= len(sz.compress(array, 0.0))
