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
    "relu": ("0100", [2967862366, 3075781128, 2509499858, 1576863235]),
    "relu60": ("0100", [983531332, 366164687, 874279930, 117076197]),
    "gaussian": ("0000", [2799303154, 1531818198, 2427512361, 174652063]),
    "sparse95": ("0000", [1442422750, 3060228708, 840229986, 3512765871]),
    "mixed": ("0000", [2225859141, 503776927, 902259070, 369489084]),
    "outliers": ("0100", [1694901955, 3063247050, 4248313663, 1982067161]),
    "any_bits": ("0000", [2990870888, 3724375156, 3752752330, 1207075210]),
    "specials": ("1111", [1084099722, 816740807, 922850702, 725687804]),
    "ramp": ("1111", [3305628681, 653588143, 2957899891, 2259713118]),
    "saw": ("1111", [4204823881, 2824342240, 3903578070, 817160485]),
    "negative": ("1100", [587869938, 1804868674, 2324608666, 2978905043]),
    "zeros": ("0000", [2374558310, 2251629302, 3504906344, 3580393754]),
    "minus_zeros": ("1000", [1864035439, 2251629302, 3504906344, 3580393754]),
    "ones": ("0100", [3648249252, 2280838638, 1922781489, 2744529962]),
    "denormals": ("1000", [2511055963, 3767218988, 2658357805, 372629144]),
    "huge": ("1111", [308588198, 476456515, 2874520021, 1302614632]),
    "nan": ("1111", [3018712292, 2977947988, 27450793, 1048156800]),
    "relu64": ("0100", [3518026772, 3344602903, 3802256239, 1612886163]),
    "gaussian64": ("0000", [534451431, 3775185087, 3031161969, 2452344280]),
    "sparse64": ("0000", [3055248413, 3339395389, 12848130, 3142560018]),
    "mixed64": ("0000", [346791387, 3540123817, 1223540509, 4103125927]),
    "any_bits64": ("0000", [1739338677, 763132279, 2598594568, 3736736525]),
    "specials64": ("1111", [209756520, 1384929780, 3167433950, 1002302679]),
    "ramp64": ("1111", [3078283273, 2505266987, 3636706312, 976130758]),
    "float32s64": ("0000", [396707590, 2426683041, 4178322584, 3196731636]),
    "ones64": ("0100", [4092869558, 4253660309, 2547833854, 4057289856]),
    "minus_zeros64": ("1000", [576824717, 2832968314, 3081873997, 2867123674]),
    "denormals64": ("1000", [1645038156, 2796505924, 2990017368, 3478637724]),
    "huge64": ("1111", [586604180, 1562780336, 3145247127, 2027075465]),
    "images": ("1222", [3052045503, 2938907563, 725753517, 984921578]),
    "images_relu": ("1222", [4122028726, 4294767892, 834552366, 811994824]),
    "images64": ("0222", [1729795702, 3017246253, 3093732149, 3547540755]),
    "page": ("1222", [4112451725, 1329818998, 863399333, 1758475681]),
    "wide_page": ("1111", [4794656, 1967907956, 3134679678, 709893053]),
    "small_maps": ("0222", [972058030, 3350570528, 3398881311, 4000054625]),
    "columns": ("2222", [3298262790, 3148716171, 1294004197, 2847516311]),
    "noise": ("0000", [809890889, 2944001903, 1958570637, 2832215065]),
    "noise64": ("0000", [1453406001, 188411511, 40934950, 1456755510]),
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
    # Half of the chunks are codes: with fewer, the whole stream would be lossless.
    array = np.concatenate([few, few[::-1], many, any_bits(values)])
    stream = sz.compress(array, 0.01)
    assert modes(stream) == [QUANTISED, QUANTISED, LOSSLESS, RAW]
    check_reference(stream)


def test_dither_of_pairs_beyond_32_bits() -> None:
    """The reference's dither against another form of the same hash."""
    from sz_reference_decoder import dither_of  # noqa: PLC0415

    pairs = np.array([0, 1, 2**32 - 1, 2**32, 2**32 + 5, 2**41 + 3], np.uint64)
    with np.errstate(over="ignore"):
        h = pairs.astype(np.uint32) * np.uint32(0x9E3779B1) + np.uint32(77)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x7FEB352D)
        h = (h ^ h >> np.uint32(15)) * np.uint32(0x846CA68B)
        h ^= h >> np.uint32(16)
    for t, half in enumerate([h.astype(np.uint16), (h >> np.uint32(16)).astype(np.uint16)]):
        expected = (2 * half.astype(F64) + 1) / 2**17
        assert [dither_of(int(pair), t, 77) for pair in pairs] == expected.tolist()


if __name__ == "__main__":
    for case in CASES:
        print(f'    "{case}": {summary(case)},'.replace("'", '"'))
