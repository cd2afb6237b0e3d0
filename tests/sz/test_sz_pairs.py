"""Streams whose codes are in pairs: when they are, that nothing gets lost, and what it saves."""

from __future__ import annotations

import numpy as np
import pytest
from sz_arrays import F32, F64, gaussian, relu, smooth
from sz_reference_decoder import decode

from caffe import _core, sz

FLAGS_AT, PAIRS = 5, 32
HEADER = 40  # then 8 bytes an axis


def in_pairs(stream: bytes) -> bool:
    return bool(stream[FLAGS_AT] & PAIRS)


def check(array: np.ndarray, bound: float, **options: object) -> bytes:
    """Compress and expand with every instruction set; return the stream, which is the same."""
    streams = [
        _core.sz.compress(array, bound, isa=isa, **options)
        for isa in ["scalar", "avx2", "avx512"]
        if _core.sz.supported(isa)
    ]
    assert all(stream == streams[0] for stream in streams)
    for isa in ["scalar", "avx2", "avx512"]:
        if not _core.sz.supported(isa):
            continue
        restored = _core.sz.decompress(streams[0], isa=isa)
        finite = np.isfinite(array)
        assert np.array_equal(restored[~finite], array[~finite], equal_nan=True)
        wide = np.abs(restored[finite].astype(np.longdouble) - array[finite])
        assert wide.max(initial=0) <= bound
    return streams[0]


def test_pairs_are_for_small_codes() -> None:
    array = gaussian(100_000)
    assert in_pairs(check(array, 0.5))
    assert in_pairs(check(relu(100_000), 0.5))
    assert not in_pairs(check(array, 0.001))


@pytest.mark.parametrize("dtype", [F32, F64])
def test_codes_without_a_class_survive(dtype: type) -> None:
    """Codes beyond a byte and beyond all codes among small ones: escapes and exceptions."""
    array = smooth((700, 100), 5).astype(dtype).ravel()
    array /= array.std()
    for at, value in enumerate([40, -40, 90, -90, 200, -3000, 15_000, 1e6, np.inf, np.nan]):
        array[1000 + 701 * at :: 9000] = value
    stream = check(array, 0.5, keep_sign=True, dither=3, row_length=100)
    assert in_pairs(stream)
    assert decode(stream).tobytes() == sz.decompress(stream).tobytes()


@pytest.mark.parametrize("row", [2, 3, 7, 13, 28, 100])
def test_ends_of_rows_planes_and_lanes(row: int) -> None:
    """Rows of odd length, lanes of odd length, lanes that are not full, and few values."""
    for count in [64, 97, 1000, 2049, 65_537]:
        array = smooth((-(-count // row), row), row).ravel()[:count]
        bound = 0.5 * float(array.std())
        stream = check(array, bound, row_length=row, dither=1)
        check(array[: count // row // 5 * row * 5].reshape(-1, 5, row), bound)
    assert in_pairs(stream)  # fewer values may not pay the description


def test_a_state_that_no_encoder_makes_is_refused() -> None:
    array = smooth((600, 100), 2)
    stream = bytearray(sz.compress(array, 0.5 * float(array.std())))
    assert in_pairs(stream)
    (size,) = np.frombuffer(stream[-_chunk_bytes(stream) - 4 :][:4], "<u4")
    assert size == _chunk_bytes(stream)
    state = len(stream) - int(size) + 5 + 5 + 3  # mode, no exceptions, skip and w; its highest byte
    stream[state] |= 0x80
    with pytest.raises(sz.Error, match="chunk 0"):
        sz.decompress(bytes(stream))


def _chunk_bytes(stream: bytes | bytearray) -> int:
    """Return the size of the only chunk: the last u32 that is the number of bytes after it."""
    return next(
        left
        for left in range(len(stream) - HEADER)
        if int.from_bytes(stream[-left - 4 : len(stream) - left], "little") == left > 0
    )


def test_samples_do_not_favour_a_place_in_the_planes() -> None:
    """Planes are alike, with an empty edge above or in the middle: both are as easy to code."""
    planes = np.maximum(smooth((64, 16, 28, 28), 4), 0)
    planes[:, :, :8] = 0
    bound = 0.5 * float(planes[planes > 0].std())
    above = len(sz.compress(planes, bound, dither=1))
    middle = len(sz.compress(np.roll(planes, 14, axis=2), bound, dither=1))
    assert middle == pytest.approx(above, rel=0.04)
