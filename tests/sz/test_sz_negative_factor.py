"""A wider bound for negative values: what it promises, its bytes, and what it saves.

python tests/sz/test_sz_negative_factor.py      # prints the checksums of streams as they are now
"""

from __future__ import annotations

import zlib

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
    specials,
    specials64,
)
from sz_reference_decoder import LOSSLESS, QUANTISED, decode, modes

from caffe import _core, sz

CASES = all_cases()
BOUNDS = [0.0, 1e-3, 0.05, 2.0]
FACTORS = [1.0, 1.3, 4.0, 64.0]
DITHERS = [None, 9]
FLAG, FLAGS_AT = 16, 5
FIXED_HEADER, STEP_AT = 40, 16  # then the shape, then the factor

# The crc32 of streams of "noise" and "noise64" with a bound of 0.1 and factor 4, without dither and
# with it. As in test_sz_golden.py, a change is one of the format or of what the encoder chooses.
GOLDEN = {"noise": [1993727606, 2331021073], "noise64": [3665975029, 1132833183]}


def bits_of(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint32 if array.dtype == F32 else np.uint64)


def compress(array: np.ndarray, bound: float, factor: float, dither: int | None = None) -> bytes:
    return sz.compress(array, bound, keep_sign=True, negative_factor=factor, dither=dither)


def errors_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the errors in a wider type, where they are exact (or as good as, for float64)."""
    with np.errstate(over="ignore"):
        return np.abs(x.astype(np.longdouble) - y.astype(np.longdouble))


def check(array: np.ndarray, bound: float, factor: float, restored: np.ndarray) -> None:
    assert (restored.dtype, restored.shape) == (array.dtype, array.shape)
    if bound == 0:
        assert np.array_equal(bits_of(array), bits_of(restored))
        return
    finite = np.isfinite(array)
    assert np.array_equal(bits_of(array)[~finite], bits_of(restored)[~finite])
    x, y = array[finite], restored[finite]
    errors, negative = errors_of(x, y), x < 0
    assert np.all(errors[~negative] <= bound)
    assert np.all(errors[negative] <= np.longdouble(bound) * factor)
    assert np.array_equal(np.sign(x), np.sign(y))


def round_trip(
    array: np.ndarray, bound: float, factor: float, dither: int | None = None
) -> np.ndarray:
    stream = compress(array, bound, factor, dither)
    assert len(stream) <= _core.sz.max_compressed_size(array.size, array.ndim, array.dtype == F64)
    restored = sz.decompress(stream)
    check(array, bound, factor, restored)
    return restored


# --- the contract ---


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, bound: float, factor: float) -> None:
    for dither in DITHERS:
        round_trip(CASES[name], bound, factor, dither)


@pytest.mark.parametrize("length", [0, 1, 2, 31, 32, 33, 63, 64, 65, 511, 65537, 131073])
def test_lengths(length: int) -> None:
    for dither in DITHERS:
        round_trip(gaussian(length), 0.1, 4, dither)
        round_trip(gaussian64(length), 0.1, 4, dither)


@pytest.mark.parametrize("factor", [1.0000001, 1024.0])
@pytest.mark.parametrize("bound", [10.0**e for e in range(-44, 39, 6)] + [5e-324, 1.7e308])
def test_bounds_of_all_sizes(bound: float, factor: float) -> None:
    for scale in [1.0, bound]:
        with np.errstate(over="ignore", under="ignore"):
            arrays = [(gaussian(3000) * scale).astype(F32), gaussian64(3000) * scale]
        arrays.append(np.concatenate([specials(), any_bits(3000)]))
        arrays.append(np.concatenate([specials64(), any_bits64(3000)]))
        for array in arrays:
            for dither in DITHERS:
                round_trip(array, bound, factor, dither)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_values_at_the_edge_of_a_step(dtype: type) -> None:
    bound, factor = 0.1, 2.7
    steps = (np.arange(-30_000, 0, dtype=F64) * bound * factor).astype(dtype)
    array = np.concatenate(
        [steps, np.nextafter(steps, dtype(0)), np.nextafter(steps, dtype(-np.inf))]
    )
    for dither in DITHERS:
        round_trip(array, bound, factor, dither)


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
        hnp.arrays(np.float32, st.integers(0, 300), elements=st.floats(-9, 9, width=32)),
    ),
    bound=st.one_of(st.just(0.0), st.floats(min_value=1e-45, max_value=1e38), st.floats(0.01, 3.0)),
    factor=st.floats(1, 64),
    dither=st.one_of(st.none(), st.integers(0, 2**32 - 1)),
)
def test_anything(array: np.ndarray, bound: float, factor: float, dither: int | None) -> None:
    round_trip(array, bound, factor, dither)


@pytest.mark.parametrize("dither", DITHERS)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_negative_values_use_their_bound_and_the_others_keep_theirs(
    dtype: type, dither: int | None
) -> None:
    array = CASES["noise"].astype(dtype)
    exact = round_trip(array, 0.1, 1, dither)
    wide = round_trip(array, 0.1, 4, dither)
    negative = array < 0
    assert np.array_equal(wide[~negative], exact[~negative])
    assert errors_of(array, wide)[negative].max() > 0.35


@pytest.mark.parametrize("dither", DITHERS)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_negative_values_are_in_the_middle_of_their_step(dtype: type, dither: int | None) -> None:
    bound, factor = 0.1, 2.7
    noise = CASES["noise"].astype(dtype).ravel()
    stream = compress(noise, bound, factor, dither)
    step = dtype(np.frombuffer(stream, F64, 1, STEP_AT)[0] * factor)
    inverse = dtype(1 / F64(step))
    edges = -np.arange(2000).astype(dtype) * step  # further away, rounding makes exceptions
    array = np.concatenate([edges, np.nextafter(edges, dtype(-np.inf)), noise])
    restored = round_trip(array, bound, factor, dither)
    negative = array < 0
    codes = np.floor(-array[negative] * inverse + dtype(1))
    assert np.array_equal(restored[negative], -(codes - dtype(0.5)) * step)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_dither_is_for_positive_values_alone(dtype: type) -> None:
    array = CASES["noise"].astype(dtype)
    plain = round_trip(array, 0.1, 4)
    one, another = (round_trip(array, 0.1, 4, dither) for dither in [1, 2])
    below, above = array < 0, array > 0
    assert np.array_equal(one[below], plain[below])
    assert np.array_equal(another[below], plain[below])
    for a, b in [(one, plain), (another, plain), (one, another)]:
        assert np.mean(a[above] != b[above]) > 0.95


def test_ranges_are_slices() -> None:
    array = gaussian(200_000)
    stream = compress(array, 0.1, 4, 5)
    whole = sz.decompress(stream)
    size = sz.info(stream)["chunk_values"]
    assert sz.info(stream)["chunks"] >= 2
    for first, count in [(0, 1), (size - 3, 7), (size, size), (size // 2, size), (199_999, 1)]:
        part = sz.decompress_range(stream, first, count)
        assert np.array_equal(bits_of(part), bits_of(whole[first : first + count]))


def test_a_share_of_the_range() -> None:
    array = CASES["noise"]
    stream = sz.compress(array, 0.01, "rel", True, negative_factor=4)
    assert sz.info(stream)["error_bound"] == pytest.approx(0.01 * float(np.ptp(array)))
    check(array, sz.info(stream)["error_bound"], 4, sz.decompress(stream))


def test_codes_reach_further_below_zero() -> None:
    """The lookahead that decides whether the stream is lossless minds both steps."""
    array = -np.abs(gaussian(70_000)) * F32(20_000)
    assert modes(compress(array, 0.5, 1)) == [LOSSLESS] * 2
    assert modes(compress(array, 0.5, 8)) == [QUANTISED] * 2


def test_info_tells_the_factor() -> None:
    array = gaussian(100)
    assert sz.info(compress(array, 0.25, 3.5))["negative_factor"] == 3.5
    assert sz.info(compress(array, 0.0, 3.5))["negative_factor"] == 3.5
    assert sz.info(compress(array, 0.25, 1))["negative_factor"] == 1
    assert sz.info(sz.compress(array, 0.25))["negative_factor"] == 1


# --- the bytes ---


def checksums(name: str) -> list[int]:
    return [zlib.crc32(compress(CASES[name], 0.1, 4, dither)) for dither in DITHERS]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_streams(name: str) -> None:
    assert checksums(name) == GOLDEN[name]


def test_a_factor_of_one_leaves_no_trace() -> None:
    array = CASES["noise"]
    assert compress(array, 0.1, 1) == sz.compress(array, 0.1, keep_sign=True)
    assert not compress(array, 0.1, 1)[FLAGS_AT] & FLAG
    assert compress(array, 0.1, 2)[FLAGS_AT] & FLAG


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("factor", [1.3, 4.0, 1000.0])
@pytest.mark.parametrize("name", CASES)
def test_instruction_sets_agree(name: str, factor: float, isa: str) -> None:
    if not _core.sz.supported(isa):
        pytest.skip(f"this processor or build has no {isa}")
    for bound in BOUNDS:
        for dither in DITHERS:
            scalar, wide = (
                _core.sz.compress(
                    CASES[name], bound, True, dither=dither, negative_factor=factor, isa=each
                )
                for each in ["scalar", isa]
            )
            assert scalar == wide
            a, b = (_core.sz.decompress(scalar, isa=each) for each in ["scalar", isa])
            assert np.array_equal(bits_of(a), bits_of(b))


@pytest.mark.parametrize("factor", [1.3, 4.0, 1000.0])
@pytest.mark.parametrize("name", CASES)
def test_the_format_description_suffices(name: str, factor: float) -> None:
    array = CASES[name]
    array = array[:1500] if array.ndim == 1 else array[..., :20, :40][:1, :2]
    for bound, dither in [(0.0, None), (0.05, None), (0.5, 2**32 - 1)]:
        stream = compress(array, bound, factor, dither)
        restored, reference = sz.decompress(stream), decode(stream)
        assert np.array_equal(bits_of(restored), bits_of(reference))


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
@pytest.mark.parametrize("factor", [1.3, 4.0])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_the_smallest_step(dtype: type, factor: float, isa: str) -> None:
    """No encoder makes one so small; yet no value is zero, or has another sign."""
    if not _core.sz.supported(isa):
        pytest.skip(f"this processor or build has no {isa}")
    array = gaussian(1500).astype(dtype)
    stream = bytearray(compress(array, 0.1, factor, 3))
    stream[STEP_AT : STEP_AT + 8] = F64(np.finfo(dtype).tiny).tobytes()
    restored, reference = _core.sz.decompress(bytes(stream), isa=isa), decode(bytes(stream))
    assert np.array_equal(bits_of(restored), bits_of(reference))
    assert np.array_equal(np.sign(restored), np.sign(array))


# Shares that factor 4 leaves of the bytes, with a margin of 2%; bounds are in standard deviations.
@pytest.mark.parametrize(
    ("bound", "dither", "share"), [(0.1, 1, 0.79), (0.3, 1, 0.7), (0.3, None, 0.715)]
)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_ratio(bound: float, dither: int | None, share: float, dtype: type) -> None:
    array = gaussian(1 << 20, 5).reshape(16, 64, 32, 32).astype(dtype)
    bound *= float(array.std())
    exact, wide = (len(compress(array, bound, factor, dither)) for factor in [1, 4])
    assert wide <= share * exact


# --- what is refused ---


@pytest.mark.parametrize("factor", [0.5, 0.0, -4.0, 1025.0, float("inf"), float("nan")])
def test_a_factor_out_of_range_is_refused(factor: float) -> None:
    for call in [sz.compress, _core.sz.compress]:
        with pytest.raises(ValueError, match=r"negative_factor:? is") as caught:
            call(np.zeros(3, F32), 0.1, keep_sign=True, negative_factor=factor)
        assert "\n" not in str(caught.value)


def test_a_factor_without_signs_is_refused() -> None:
    for call in [sz.compress, _core.sz.compress]:
        with pytest.raises(ValueError, match=r"is 2\.0+\b.* needs keep_sign"):
            call(np.zeros(3, F32), 0.1, negative_factor=2.0)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1025.0, -2.0, np.inf, -np.inf, np.nan])
def test_a_bad_factor_in_a_header_is_refused(factor: float, dtype: type) -> None:
    stream = bytearray(compress(gaussian(100).astype(dtype), 0.1, 4))
    at = FIXED_HEADER + 8
    assert stream[at : at + 8] == F64(4).tobytes()
    stream[at : at + 8] = F64(factor).tobytes()
    for call in [sz.decompress, sz.info]:
        with pytest.raises(sz.Error, match="bad factor of negative values"):
            call(stream)


def test_a_header_whose_parts_contradict_each_other_is_refused() -> None:
    largest = {F32: float(np.finfo(F32).max), F64: float(np.finfo(F64).max)}
    for dtype, step in largest.items():
        stream = bytearray(compress(gaussian(100).astype(dtype), 0.1, 4))
        without_signs = stream.copy()
        without_signs[FLAGS_AT] &= ~1
        too_far = stream.copy()  # the step of negative values would be infinite
        too_far[16:24] = F64(step).tobytes()
        for bad in [without_signs, too_far]:
            with pytest.raises(sz.Error, match="bad factor of negative values"):
                sz.decompress(bad)
    empty = compress(np.zeros(0, F32), 0.1, 4)
    assert len(empty) == FIXED_HEADER + 8 + 8
    for size in range(len(empty)):
        with pytest.raises(sz.Error):
            sz.decompress(empty[:size])


if __name__ == "__main__":
    print({name: checksums(name) for name in GOLDEN})
