"""The bytes: the same from everywhere, small, and harmless when damaged."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sz_arrays import F32, any_bits, cases, gaussian, random_bits, relu
from sz_reference_decoder import decode

from caffe import _core, sz

ROOT = Path(__file__).parents[2]
CASES = cases()
BOUNDS = [0.0, 1e-3, 0.05, 0.5]

# crc32 of streams. A change here is a change of the format: it needs a new version byte.
GOLDEN = {
    "relu": [1494066407, 3688869392, 1617330654, 4101565709],
    "relu60": [1628950128, 2897956073, 649083970, 4236375800],
    "gaussian": [4229613268, 2273068531, 3256827168, 1775397187],
    "sparse95": [2697673727, 932159533, 4099146007, 1201818660],
    "mixed": [4158671289, 967999740, 4153888603, 4175044595],
    "outliers": [3211311814, 2442265979, 3629408009, 402590140],
    "any_bits": [2426937002, 1993992321, 2365925526, 1641940595],
    "specials": [3148675279, 3844635849, 812946468, 3445104021],
    "ramp": [1622115936, 174660726, 1423953969, 2215669796],
    "saw": [2822726140, 1789038192, 2138289163, 92876663],
    "negative": [257121352, 3952174729, 1855726559, 2220424423],
    "zeros": [2964245948, 1427967308, 3513407312, 908555935],
    "minus_zeros": [4171240546, 1427967308, 3513407312, 908555935],
    "ones": [719392289, 3085898456, 1636917783, 457312264],
    "denormals": [2806257345, 70455738, 68283740, 1823498549],
    "huge": [347651373, 366236070, 1424551278, 3054571460],
    "nan": [1702738319, 4095010674, 1660298053, 1676300929],
}


def streams(array: np.ndarray, bound: float, **options) -> list[bytes]:
    return [
        _core.sz.compress(array, bound, keep_sign=keep_sign, **options)
        for keep_sign in [False, True]
    ]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_instruction_sets_agree(name: str, bound: float) -> None:
    if not _core.sz.supported("avx2"):
        pytest.skip("this processor has no AVX2")
    scalar, avx2 = (streams(CASES[name], bound, isa=isa) for isa in ["scalar", "avx2"])
    assert scalar == avx2
    for stream in scalar:
        a, b = (_core.sz.decompress(stream, isa=isa) for isa in ["scalar", "avx2"])
        assert np.array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("bound", [0.0, 0.05])
def test_thread_counts_agree(bound: float) -> None:
    array = np.concatenate([relu(400_000), any_bits(70_000), np.zeros(300_000, F32)])
    one = streams(array, bound, threads=1)
    for threads in [0, 2, 3, 7]:
        assert streams(array, bound, threads=threads) == one
    a, b = (sz.decompress(one[0], threads=threads) for threads in [1, 4])
    assert np.array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("name", CASES)
def test_golden_checksums(name: str) -> None:
    sums = [zlib.crc32(b"".join(streams(CASES[name], bound))) for bound in BOUNDS]
    assert sums == GOLDEN[name]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", CASES)
def test_the_format_description_suffices(name: str, bound: float) -> None:
    array = CASES[name][:9000]
    for stream in streams(array.reshape(-1, 10), bound):
        restored, reference = sz.decompress(stream), decode(stream)
        assert restored.shape == reference.shape
        assert np.array_equal(restored.view(np.uint32), reference.view(np.uint32))


# Ratios on synthetic ReLU data (normal values, half of them cut to 0), with a margin of 3%.
@pytest.mark.parametrize(
    ("bound", "keep_sign", "ratio"),
    [
        (0.0, False, 2.2),
        (0.05, False, 8.8),
        (0.05, True, 8.6),
        (0.3, False, 15.1),
        (0.3, True, 13.6),
        (1.0, False, 29.8),
        (1.0, True, 21.3),
    ],
)
def test_ratio(bound: float, keep_sign: bool, ratio: float) -> None:
    array = relu(1 << 20, 11)
    std = float(array[array > 0].std())
    stream = sz.compress(array, bound * std, keep_sign=keep_sign)
    assert array.nbytes / len(stream) >= ratio


def test_zeros_cost_next_to_nothing() -> None:
    assert len(sz.compress(np.zeros(1 << 20, F32), 0.1)) < 400
    assert len(sz.compress(np.zeros(1 << 20, F32), 0.0)) < 400


def test_incompressible_data_grow_by_a_header_only() -> None:
    array = any_bits(1 << 18)
    for bound in [0.0, 1e-3]:
        assert len(sz.compress(array, bound)) <= array.nbytes + 32 + 5 * 4


@pytest.mark.parametrize("name", CASES)
def test_statistics(name: str) -> None:
    array = CASES[name]
    reference = None
    for isa in ["scalar", "avx2"] if _core.sz.supported("avx2") else ["scalar"]:
        for threads in [1, 2]:
            for bound in [0.0, 0.1]:
                _, got = _core.sz.compress_with_statistics(array, bound, threads=threads, isa=isa)
                reference = reference or got
                assert got == reference
    finite = array[np.isfinite(array)].astype(np.float64)
    assert reference["count"] == array.size
    assert reference["nonzeros"] == np.count_nonzero(array)
    assert reference["sum"] == pytest.approx(finite.sum(), rel=1e-9, abs=1e-9 * abs(finite).sum())
    assert reference["sum_squares"] == pytest.approx((finite**2).sum(), rel=1e-9)
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
def test_damaged_streams_never_crash(bound: float) -> None:
    stream = sz.compress(CASES["mixed"][:20_000], bound, keep_sign=True)
    for seed in range(300):
        damaged = bytearray(stream)
        for bits in random_bits(1 + seed % 4, seed):
            near_start = len(stream) if seed % 2 else min(len(stream), 200)
            damaged[int(bits % np.uint64(near_start))] ^= 1 << int(bits >> np.uint64(61))
        try:
            restored = sz.decompress(bytes(damaged))
        except sz.Error:
            continue
        assert restored.dtype == np.float32


def test_a_huge_shape_is_refused() -> None:
    stream = bytearray(sz.compress(gaussian(10), 0.1))
    stream[24:32] = (1 << 55).to_bytes(8, "little")
    with pytest.raises(sz.Error, match="table"):
        sz.decompress(bytes(stream))


def test_decoder_under_sanitizers(tmp_path: Path) -> None:
    """Builds the library with ASan and UBSan and decodes thousands of damaged streams."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    sources = sorted((ROOT / "sz/src").glob("*.cpp"))
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wno-unknown-pragmas",
             "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
             f"-I{ROOT / 'sz/include'}", f"-I{ROOT / 'sz/src'}"]  # fmt: skip
    avx2 = ["-mavx2", "-mbmi", "-mbmi2", "-mpopcnt"] if _core.sz.supported("avx2") else []

    def build(source: Path) -> None:
        extra = avx2 if source.stem.endswith("_avx2") else []
        command = ["g++", *flags, *extra, "-c", source, "-o", tmp_path / f"{source.stem}.o"]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, [*sources, Path(__file__).with_name("fuzz_main.cpp")]))
    program = tmp_path / "fuzz"
    subprocess.run(["g++", *flags, *tmp_path.glob("*.o"), "-o", program], check=True)
    result = subprocess.run([program, "600"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
