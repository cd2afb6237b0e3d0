"""The bytes: as they were, and as the format says.

python tests/sz/test_sz_golden.py      # prints the table for streams as they are now
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from sz_arrays import F32, F64, all_cases, any_bits, gaussian64, relu, smooth
from sz_reference_decoder import LOSSLESS, QUANTISED, RAW, decode, decode_chunk, modes, split

from caffe import sz

CASES = all_cases()
BOUNDS = [0.0, 1e-3, 0.05, 0.5]
NEIGHBOURHOOD = 36  # where the header says which

# Of each bound's streams the neighbourhood and the crc32. A change here is a change of the format,
# which needs a new version, or of what the encoder chooses.
GOLDEN = {
    "relu": ("0100", [1807524766, 447312044, 2991084801, 2403131713]),
    "relu60": ("0100", [2162818894, 2232628580, 4175418859, 880924335]),
    "gaussian": ("0000", [1266389986, 2114807950, 2776966092, 984428319]),
    "sparse95": ("0000", [4095426643, 2344399248, 3075149098, 1369741268]),
    "mixed": ("0000", [2443342665, 192998444, 542275457, 1568635622]),
    "outliers": ("0100", [2560089297, 3141368499, 4143586665, 2796725023]),
    "any_bits": ("0000", [2916181463, 1680602408, 238350367, 1582705747]),
    "specials": ("1001", [3121760597, 2824544858, 419092138, 3298410505]),
    "ramp": ("1111", [1667363330, 51876402, 1762259846, 3193677180]),
    "saw": ("1111", [745331625, 454678500, 1866033189, 1106667209]),
    "negative": ("1100", [2802066144, 477860233, 2010563392, 1512130952]),
    "zeros": ("0000", [2647266208, 2514467823, 1237302921, 1570433112]),
    "minus_zeros": ("1000", [3879443208, 2514467823, 1237302921, 1570433112]),
    "ones": ("0100", [4075251432, 952426994, 3191048205, 2627210842]),
    "denormals": ("1000", [3988256936, 391919854, 1166302708, 1079547926]),
    "huge": ("1000", [1852898471, 3694277294, 92490553, 3314759474]),
    "nan": ("1000", [1536896239, 2128416796, 3593934516, 484384837]),
    "relu64": ("0100", [2277361750, 2004412672, 1476415501, 190309034]),
    "gaussian64": ("0000", [2607418307, 410283227, 21589454, 2341001733]),
    "sparse64": ("0000", [2926351762, 4268467503, 3078610069, 2528231375]),
    "mixed64": ("0000", [4269130606, 3420164583, 594985213, 433657740]),
    "any_bits64": ("0000", [3295281164, 2865635027, 1782995803, 925237842]),
    "specials64": ("1001", [3512670810, 23106857, 2006797232, 2543467878]),
    "ramp64": ("1111", [3804938641, 3110628574, 61775063, 2144070393]),
    "float32s64": ("0000", [3434975810, 2442799841, 3256042441, 2519711806]),
    "ones64": ("0100", [3335591121, 1536554733, 3375524856, 2616699375]),
    "minus_zeros64": ("1000", [703159438, 4112322139, 3933671020, 4146229755]),
    "denormals64": ("1000", [4236515194, 3490508965, 4109973368, 2463698182]),
    "huge64": ("1000", [4018061039, 1468498922, 663577343, 1651541597]),
    "images": ("1222", [3805282381, 3072379903, 520252822, 994371760]),
    "images_relu": ("1222", [1634295034, 3755430603, 1710450941, 827743856]),
    "images64": ("0222", [2404727729, 3342950932, 2837069997, 2602666247]),
    "page": ("1222", [3054769404, 208391167, 674791343, 3665539531]),
    "wide_page": ("1111", [2922093889, 3517706734, 2459814608, 3457749430]),
    "small_maps": ("0222", [3671078303, 2256133379, 408136871, 3711291692]),
    "columns": ("2222", [3617836800, 2900836496, 3886151106, 3164606566]),
    "noise": ("0000", [980674449, 2212475940, 1390867696, 899285708]),
    "noise64": ("0000", [1749012867, 454998503, 3112959198, 1483609928]),
}


def bits_of(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint32 if array.dtype == F32 else np.uint64)


def streams(array: np.ndarray, bound: float) -> list[bytes]:
    return [
        sz.compress(array, bound, keep_sign=keep_sign, dither=dither, checksum=keep_sign)
        for keep_sign in [False, True]
        for dither in [None, 7]
    ]


def summary(name: str) -> tuple[str, list[int]]:
    each = [streams(CASES[name], bound) for bound in BOUNDS]
    return "".join(str(s[0][NEIGHBOURHOOD]) for s in each), [zlib.crc32(b"".join(s)) for s in each]


@pytest.mark.parametrize("name", CASES)
def test_golden_streams(name: str) -> None:
    assert summary(name) == GOLDEN[name]


def test_the_cases_have_all_neighbourhoods_in_both_types() -> None:
    for dtype in [F32, F64]:
        found = "".join(GOLDEN[name][0] for name in CASES if CASES[name].dtype == dtype)
        assert set(found) == set("012")


def check_reference(stream: bytes) -> None:
    restored, reference = sz.decompress(stream), decode(stream)
    assert (restored.dtype, restored.shape) == (reference.dtype, reference.shape)
    assert np.array_equal(bits_of(restored), bits_of(reference))


def cut(array: np.ndarray) -> np.ndarray:
    """About 2500 values, with several axes where the array has some."""
    return array[:2500] if array.ndim == 1 else array[..., :20, :60][:1, :4]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_the_format_description_suffices(name: str, bound: float) -> None:
    array = cut(CASES[name])
    for keep_sign, dither in [(False, None), (True, None), (False, 5), (True, 2**32 - 1)]:
        check_reference(
            sz.compress(array, bound, keep_sign=keep_sign, dither=dither, checksum=keep_sign)
        )


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 63, 64, 65, 500, 2047, 2049])
def test_the_format_description_suffices_for_few_values(count: int) -> None:
    for array in [relu(count), gaussian64(count), relu(2 * count).reshape(2, count)]:
        for bound in [0.0, 0.1]:
            check_reference(sz.compress(array, bound, dither=1, checksum=True))


@pytest.mark.parametrize(
    ("shape", "row_length", "neighbourhood"),
    [
        ((3, 5, 150, 40), None, 2),  # planes too large for a lane
        ((9, 40, 50), None, 2),  # a plane a lane
        ((40, 7, 10, 10), None, 2),  # many planes a lane, and a last chunk that ends inside one
        ((90_000,), 300, 2),  # rows, but no planes
        ((5, 17_000), None, 1),  # rows too long
        ((70_001,), None, 1),
    ],
)
def test_the_format_description_suffices_for_all_layouts(shape, row_length, neighbourhood) -> None:
    rows = (-(-int(np.prod(shape)) // 300), 300)
    array = smooth(shape if len(shape) > 2 else rows, 2).ravel()[: int(np.prod(shape))]
    array = array.reshape(shape)
    stream = sz.compress(array, 0.1, row_length=row_length)
    assert stream[NEIGHBOURHOOD] == neighbourhood
    check_reference(stream)


@pytest.mark.parametrize("dtype", [F32, F64])
def test_the_format_description_suffices_for_long_lanes(dtype: type) -> None:
    """An array so large that its lanes have 4096 steps; its first and last chunk."""
    array = np.resize(smooth((64, 97, 113), 3), (6, 64, 97, 113)).astype(dtype)
    assert array.size >= 1 << 22
    stream = sz.compress(array, 0.05, dither=3)
    header, slots, chunks = split(stream)
    assert header.neighbourhood == 2
    restored = sz.decompress(stream).ravel()
    for chunk, first, n in [chunks[0], chunks[-1]]:
        reference = decode_chunk(chunk, header, slots, first, n)
        assert np.array_equal(bits_of(restored[first : first + n]), bits_of(reference))


def test_all_modes_in_one_stream() -> None:
    values = 32 * 2048
    few = relu(values)
    # Exceptions are values beyond the codes; one in eight is too many for a chunk of codes.
    many = relu(values, 1)
    many[::8] = F32(1e9)
    array = np.concatenate([few, many, any_bits(values)])
    stream = sz.compress(array, 0.01)
    assert modes(stream) == [QUANTISED, LOSSLESS, RAW]
    check_reference(stream)


def test_dither_of_indices_beyond_32_bits() -> None:
    """The reference's dither against another form of the same hash."""
    from sz_reference_decoder import dither_of  # noqa: PLC0415

    with np.errstate(over="ignore"):
        index = np.array([0, 1, 2**32 - 1, 2**32, 2**32 + 5, 2**41 + 3], np.uint64)
        h = index.astype(np.uint32) ^ (index >> np.uint64(32)).astype(np.uint32) * np.uint32(
            0x9E3779B9
        )
        h ^= np.uint32(77)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        h = (h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
    expected = ((h >> np.uint32(8)).astype(np.int64) - 2**23) / 2**24
    assert [dither_of(int(i), 77) for i in index] == expected.tolist()


if __name__ == "__main__":
    for case in CASES:
        print(f'    "{case}": {summary(case)},'.replace("'", '"'))
