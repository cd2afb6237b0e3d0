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
    "relu": ("0100", [1307221676, 3189652350, 769956859, 716558267]),
    "relu60": ("0100", [2047892413, 1439208350, 3686179814, 3306657377]),
    "gaussian": ("0000", [1759248844, 1875977223, 3297607419, 1106279044]),
    "sparse95": ("0000", [2422931951, 3425962174, 3156164004, 4055506697]),
    "mixed": ("0000", [153400768, 3026152370, 2057627762, 681603266]),
    "outliers": ("0100", [241491642, 3337146981, 703561807, 2895986822]),
    "any_bits": ("0000", [545174418, 2951039369, 2206018441, 1713805828]),
    "specials": ("1001", [3121760597, 2824544858, 419092138, 3298410505]),
    "ramp": ("1111", [1761341185, 51876402, 1762259846, 3825643893]),
    "saw": ("1111", [3797100500, 2195265085, 1543902405, 284363928]),
    "negative": ("1100", [2254827758, 2100799883, 4284898549, 3348273234]),
    "zeros": ("0000", [2647266208, 2514467823, 1237302921, 1570433112]),
    "minus_zeros": ("1000", [3879443208, 2514467823, 1237302921, 1570433112]),
    "ones": ("0100", [4075251432, 871411857, 3638483099, 1156540128]),
    "denormals": ("1000", [3988256936, 808591239, 1659533981, 1731641215]),
    "huge": ("1000", [3844366121, 3694277294, 92490553, 3314759474]),
    "nan": ("1000", [1536896239, 2128416796, 3593934516, 484384837]),
    "relu64": ("0100", [1276308729, 4006919010, 2548875670, 4082392754]),
    "gaussian64": ("0000", [2335677599, 2712526537, 3631762026, 1547402126]),
    "sparse64": ("0000", [580559899, 443155465, 3749564688, 4246445274]),
    "mixed64": ("0000", [882110254, 1419423252, 3336510391, 308745447]),
    "any_bits64": ("0000", [3042623226, 3682516015, 2017054318, 54150191]),
    "specials64": ("1001", [3512670810, 23106857, 2006797232, 2543467878]),
    "ramp64": ("1111", [1417783690, 3110628574, 3104889518, 1624743887]),
    "float32s64": ("0000", [1010617995, 986033164, 74976640, 701888922]),
    "ones64": ("0100", [3335591121, 956466165, 2572063456, 1581457894]),
    "minus_zeros64": ("1000", [703159438, 4112322139, 3933671020, 4146229755]),
    "denormals64": ("1000", [4236515194, 1535084533, 2139766824, 430602838]),
    "huge64": ("1000", [2567381874, 1468498922, 663577343, 1651541597]),
    "images": ("1222", [3805282381, 3072379903, 520252822, 994371760]),
    "images_relu": ("1222", [1634295034, 3755430603, 1710450941, 827743856]),
    "images64": ("0222", [2404727729, 3342950932, 2837069997, 2602666247]),
    "page": ("1222", [2304515064, 3788193523, 2130255439, 1770128705]),
    "wide_page": ("1111", [758700643, 25890117, 2662979768, 2406878749]),
    "small_maps": ("0222", [3671078303, 2256133379, 408136871, 3711291692]),
    "columns": ("2222", [313828272, 1374979317, 2352934814, 1484380160]),
    "noise": ("0000", [944067630, 2701964992, 2713801239, 3617293175]),
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
