"""The streams: the same from everywhere, small, and harmless when damaged."""

from __future__ import annotations

import numpy as np
import pytest
from sz_arrays import (
    F32,
    F64,
    all_cases,
    any_bits,
    any_bits64,
    gaussian,
    random_bits,
    relu,
    relu64,
    smooth,
)
from sz_reference_decoder import split

from caffe import _core, sz

CASES = all_cases()
BOUNDS = [0.0, 1e-3, 0.05, 0.5]
WIDE = ["avx2", "avx512"]  # instruction sets beside the scalar code
SHAPE_AT = 40  # where a header's shape begins
MODELLED = 8  # the flag of streams with frequencies


def streams(array: np.ndarray, bound: float, **options) -> list[bytes]:
    return [
        _core.sz.compress(array, bound, keep_sign=keep_sign, dither=dither, **options)
        for keep_sign in [False, True]
        for dither in [None, 3]
    ]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def skip_unless_supported(isa: str) -> None:
    if not _core.sz.supported(isa):
        pytest.skip(f"this processor or build has no {isa}")


@pytest.mark.parametrize("isa", WIDE)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_instruction_sets_agree(name: str, bound: float, isa: str) -> None:
    skip_unless_supported(isa)
    scalar, wide = (streams(CASES[name], bound, isa=i) for i in ["scalar", isa])
    assert scalar == wide
    for stream in scalar:
        a, b = (_core.sz.decompress(stream, isa=i) for i in ["scalar", isa])
        assert same_bits(a, b)


@pytest.mark.parametrize(
    "shape",
    [(1,), (63,), (64,), (65,), (2, 31), (33, 2), (3, 5, 7), (1, 1, 9, 9), (7, 300), (2, 3, 17, 16),
     (300, 1, 2), (31, 33), (5, 2047), (5, 2048), (5, 2049), (2, 45, 46), (3, 2, 1024)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("isa", WIDE)
def test_instruction_sets_agree_on_shapes(shape: tuple[int, ...], dtype: type, isa: str) -> None:
    skip_unless_supported(isa)
    array = smooth((2, *shape) if len(shape) == 1 else shape, 1, 3).astype(dtype)
    for row_length in [0, 5, 16]:
        scalar, wide = (streams(array, 0.1, row_length=row_length, isa=i) for i in ["scalar", isa])
        assert scalar == wide
        for stream in scalar:
            a, b = (_core.sz.decompress(stream, isa=i) for i in ["scalar", isa])
            assert same_bits(a, b)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("bound", [0.0, 0.05])
def test_thread_counts_agree(bound: float, dtype: type) -> None:
    noise = any_bits(70_000) if dtype == F32 else any_bits64(70_000)
    array = np.concatenate([relu(400_000).astype(dtype), noise, np.zeros(300_000, dtype)])
    one = streams(array, bound, threads=1, checksum=True)
    for threads in [0, 2, 3, 7]:
        assert streams(array, bound, threads=threads, checksum=True) == one
    a, b = (sz.decompress(one[0], threads=threads) for threads in [1, 4])
    assert same_bits(a, b)
    a, b = (sz.decompress_range(one[0], 99, 600_000, threads=threads) for threads in [1, 4])
    assert same_bits(a, b)


# Ratios with a margin of 3%: of ReLU data (normal values, half of them cut to 0), and of smooth
# images after a ReLU. Bounds are in standard deviations of the non-zeros.
@pytest.mark.parametrize(
    ("kind", "bound", "keep_sign", "dither", "ratio"),
    [
        ("relu", 0.05, False, None, 8.40),
        ("relu", 0.05, True, None, 8.23),
        ("relu", 0.3, False, None, 15.1),
        ("relu", 0.3, True, None, 13.5),
        ("relu", 0.3, False, 1, 13.1),
        ("relu", 0.3, True, 1, 13.1),
        ("relu", 1.0, False, None, 30.1),
        ("relu", 1.0, True, None, 21.3),
        ("relu", 1.0, False, 1, 18.2),
        ("images", 0.05, False, None, 10.6),
        ("images", 0.3, False, None, 21.6),
        ("images", 0.3, True, None, 19.4),
        ("images", 0.3, False, 1, 17.9),
        ("images", 1.0, False, None, 46.3),
    ],
)
@pytest.mark.parametrize("dtype", [F32, F64])
def test_ratio(
    kind: str, bound: float, keep_sign: bool, dither: int | None, ratio: float, dtype: type
) -> None:
    images = np.maximum(smooth((8, 16, 64, 64), 1), F32(0))
    array = (relu(1 << 20, 11) if kind == "relu" else images).astype(dtype)
    std = float(array[array > 0].std())
    stream = sz.compress(array, bound * std, keep_sign=keep_sign, dither=dither)
    # The codes of float64 are those of float32: they take the same space.
    assert array.nbytes / len(stream) >= ratio * array.itemsize / 4


@pytest.mark.parametrize(
    ("array", "ratio"),
    [
        (relu(1 << 20, 11), 2.17),
        (np.maximum(smooth((8, 16, 64, 64), 1), F32(0)), 2.24),
        (relu64(1 << 19, 11), 2.04),
        (relu(1 << 19, 11).astype(F64), 4.3),  # the low bytes are zeros
    ],
)
def test_ratio_without_loss(array: np.ndarray, ratio: float) -> None:
    assert array.nbytes / len(sz.compress(array, 0)) >= ratio


def test_neighbours_above_pay_on_images() -> None:
    images = smooth((4, 8, 64, 64), 1)
    assert len(sz.compress(images, 0.02)) < 0.93 * len(sz.compress(images.ravel(), 0.02))


def test_row_length_is_as_good_as_an_axis() -> None:
    images = smooth((100, 300), 1)
    with_rows = sz.compress(images.ravel(), 0.02, row_length=300)
    assert with_rows[SHAPE_AT + 8 :] == sz.compress(images, 0.02)[SHAPE_AT + 16 :]


@pytest.mark.parametrize("dtype", [F32, F64])
def test_zeros_cost_next_to_nothing(dtype: type) -> None:
    for bound in [0.1, 0.0]:
        stream = sz.compress(np.zeros(1 << 20, dtype), bound)
        chunks = sz.info(stream)["chunks"]
        assert len(stream) < 100 + 150 * chunks


@pytest.mark.parametrize("noise", [any_bits(1 << 18), any_bits64(1 << 17)])
def test_incompressible_data_grow_by_little(noise: np.ndarray) -> None:
    for bound in [0.0, 1e-3]:
        stream = sz.compress(noise, bound)
        assert len(stream) <= noise.nbytes + 600 + 5 * sz.info(stream)["chunks"]


def test_the_worst_case_suffices_for_every_case() -> None:
    for name, array in CASES.items():
        most = _core.sz.max_compressed_size(array.size, array.ndim, array.dtype == F64)
        for bound in BOUNDS:
            assert len(sz.compress(array, bound, checksum=True)) <= most, name


@pytest.mark.parametrize("name", CASES)
def test_statistics(name: str) -> None:
    array = CASES[name]
    reference = None
    for isa in filter(_core.sz.supported, ["scalar", *WIDE]):
        for threads in [1, 2]:
            _, got = _core.sz.compress_with_statistics(array, 0.1, threads=threads, isa=isa)
            reference = reference or got
            assert repr(got) == repr(reference)  # NaN included
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        finite = array[np.isfinite(array)].astype(F64)
        total, squares, scale = finite.sum(), (finite**2).sum(), abs(finite).sum()
    assert reference["count"] == array.size
    assert reference["nonzeros"] == np.count_nonzero(array)
    if np.isfinite(scale):  # else the order of adding decides whether inf comes up
        assert reference["sum"] == pytest.approx(total, rel=1e-9, abs=1e-9 * scale)
    assert reference["sum_squares"] == pytest.approx(squares, rel=1e-9)
    assert reference["min"] == (finite.min() if finite.size else 0)
    assert reference["max"] == (finite.max() if finite.size else 0)


def test_every_truncation_is_an_error() -> None:
    stream = sz.compress(relu(3000), 0.05)
    for size in range(len(stream)):
        with pytest.raises(sz.Error):
            sz.decompress(stream[:size])
    with pytest.raises(sz.Error):
        sz.decompress(stream + b"\0")


@pytest.mark.parametrize("bound", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("name", ["mixed", "mixed64", "images"])
def test_damaged_streams_never_crash(name: str, bound: float) -> None:
    stream = sz.compress(CASES[name].ravel()[:20_000], bound, keep_sign=True, dither=1)
    refused = 0
    for seed in range(300):
        damaged = bytearray(stream)
        for bits in random_bits(1 + seed % 4, seed):
            near_start = len(stream) if seed % 2 else min(len(stream), 200)
            damaged[int(bits % np.uint64(near_start))] ^= 1 << int(bits >> np.uint64(61))
        for isa in ["scalar", "auto"]:
            try:
                restored = _core.sz.decompress(bytes(damaged), isa=isa)
            except sz.Error as error:
                assert "\n" not in str(error)
                refused += 1
                continue
            assert restored.dtype in (F32, F64)
    assert refused > 200  # what only changes a value goes through: there is no checksum


def test_checksums_find_every_flipped_bit_and_byte_of_a_chunk() -> None:
    stream = sz.compress(relu(700), 0.1, checksum=True)
    _, _, [(chunk, *_)] = split(stream)
    first = len(stream) - len(chunk)
    with pytest.raises(sz.Error, match="chunk 0 is damaged"):  # in the checksum itself
        sz.decompress(stream[: first - 1] + bytes([stream[first - 1] ^ 1]) + chunk)
    for at in range(first, len(stream)):
        flipped = {stream[at] ^ 1 << bit for bit in range(8)}
        for value in flipped | ({0, 255, stream[at] + 1 & 255} - {stream[at]}):
            damaged = bytearray(stream)
            damaged[at] = value
            with pytest.raises(sz.Error, match="chunk 0 is damaged"):
                sz.decompress(damaged)


def test_damage_of_one_chunk_spares_the_others() -> None:
    array = relu(200_000)
    stream = bytearray(sz.compress(array, 0.1, checksum=True))
    whole = sz.decompress(stream)
    info = sz.info(stream)
    stream[-1] ^= 64
    last = (info["chunks"] - 1) * info["chunk_values"]
    assert np.array_equal(sz.decompress_range(stream, 0, last), whole[:last])
    with pytest.raises(sz.Error, match=f"chunk {info['chunks'] - 1} is damaged"):
        sz.decompress_range(stream, last, 1)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (0, b"X", "header"),
        (4, b"\1", "version 1, this library reads 3"),
        (5, b"\x40", "unknown flags"),
        (5, b"\x20", "does not describe them"),
        (5, b"\x18", "bad factor of negative values"),  # without keep_sign
        (6, b"\2", "unknown type"),
        (7, b"\x21", "bad shape"),
        (8, np.float64(-1).tobytes(), "bad error bound"),
        (16, np.float64(np.nan).tobytes(), "bad error bound"),
        (16, np.float64(np.inf).tobytes(), "bad error bound"),
        (16, np.float64(1e300).tobytes(), "bad error bound"),  # infinite as a float32
        (16, np.float64(0.1).tobytes(), "bad error bound"),  # no float32
        (16, np.float64(2.0**-127).tobytes(), "bad error bound"),  # not a normal float32
        (28, (3000).to_bytes(4, "little"), "bad row length"),
        (32, (1).to_bytes(4, "little"), "bad row length"),
        (36, b"\2", "bad row length"),
        (36, b"\3", "unknown neighbourhood"),
        (SHAPE_AT, (1 << 55).to_bytes(8, "little"), "table"),
        (SHAPE_AT, (1 << 63).to_bytes(8, "little"), "bad shape"),
        (SHAPE_AT, (1 << 61).to_bytes(8, "little"), "bad shape"),
        (SHAPE_AT + 8, b"\x37", "bad frequencies"),
    ],
)
def test_a_bad_header_is_refused(at: int, value: bytes, words: str) -> None:
    stream = bytearray(sz.compress(gaussian(100), 0.1))
    assert stream[5] & MODELLED
    stream[at : at + len(value)] = value
    for call in [sz.decompress, sz.info]:
        with pytest.raises(sz.Error, match=words):
            call(stream)


def test_a_huge_shape_takes_no_memory() -> None:
    stream = bytearray(sz.compress(np.zeros(0, F32), 0.1))
    stream[SHAPE_AT : SHAPE_AT + 8] = (1 << 50).to_bytes(8, "little")
    with pytest.raises(sz.Error, match="table"):
        sz.decompress(stream)
