"""The measurements of benchmarks/sz_bench.py, on made activations."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sz_arrays import gaussian, relu

from caffe import sz

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import sz_figures  # noqa: E402
import sz_limits  # noqa: E402

SHAPE = (16, 8, 20, 20)
FACTORS = (0.05, 0.3)


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = str(BENCHMARKS / "sz_bench.py")
    command = [sys.executable, script, "-acts", str(folder), "-out", str(folder / "out")]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    folder = tmp_path_factory.mktemp("acts")
    count = math.prod(SHAPE)
    made = {
        "conv_input": relu(count, 1).reshape(SHAPE),
        "bn_output": gaussian(count, 2).reshape(SHAPE),
    }
    for kind, values in made.items():
        np.save(folder / f"made__layer__{kind}.npy", values)
    return folder, made


def test_figures_of_ours_are_those_of_sz(arrays: tuple[Path, dict[str, np.ndarray]]) -> None:
    pytest.importorskip("matplotlib", reason="sz_bench.py draws with matplotlib")
    folder, made = arrays
    result = run(folder, "-quick", "-without-rivals", "-no-dither", "-net", "made", "-bounds",
                 *map(str, FACTORS))  # fmt: skip
    assert result.returncode == 0, result.stderr
    figures = json.loads((folder / "out" / "sz_bench.json").read_text())["figures"]
    assert len(figures) == len(made) * len(FACTORS)
    stored = dict.fromkeys(FACTORS, 0)
    trained = dict.fromkeys(FACTORS, 0)
    for row in figures:
        values = made[row["kind"]]
        deviation = np.std(values[values != 0], dtype=np.float64)
        assert row["bound"] == float(np.float32(row["factor"] * deviation))
        plain = len(sz.compress(values, row["bound"]))
        signed = len(sz.compress(values, row["bound"], keep_sign=True))
        assert row["sizes"]["plain"] == plain
        assert row["sizes"].get("sign kept", signed) == signed
        assert ("sign kept" in row["sizes"]) == (row["kind"] == "bn_output")
        assert all(set(check.values()) == {0} for check in row["checks"].values())
        stored[row["factor"]] += plain
        trained[row["factor"]] += signed if row["kind"] == "bn_output" else plain
    raw = sum(values.nbytes for values in made.values())
    table = (folder / "out" / "sz_bench.md").read_text()
    for factor in FACTORS:
        ratio, in_training = raw / stored[factor], raw / trained[factor]
        assert f"| ratio | {factor:g} std | {ratio:.3g} |" in table
        assert f"| ratio as training keeps it | {factor:g} std | {in_training:.3g} |" in table
    assert (folder / "out" / "sz_bench.png").read_bytes().startswith(b"\x89PNG")


def test_rivals_are_measured(arrays: tuple[Path, dict[str, np.ndarray]]) -> None:
    for package in ("matplotlib", "pysz", "zfpy", "zstandard"):
        pytest.importorskip(package, reason=f"compares with rivals: pip install {package}")
    folder, made = arrays
    result = run(folder, "-quick", "-no-speed", "-no-dither", "-net", "made", "-bounds", "0.3")
    assert result.returncode == 0, result.stderr
    for row in json.loads((folder / "out" / "sz_bench.json").read_text())["figures"]:
        sizes = row["sizes"]
        raw = made[row["kind"]].nbytes
        assert sizes["SZ3 best"] <= sizes["SZ3 default"] < raw
        # No coder of independent values beats their entropy; zfp and zstd code more than that.
        assert row["limits"]["plain"] / 8 < min(sizes["zfp"], sizes["zstd"]) < raw
        assert 0.8 < row["jpeg_rms"] < 1.25


def test_unknown_net_is_one_line(arrays: tuple[Path, dict[str, np.ndarray]]) -> None:
    result = run(arrays[0], "-net", "alexnet")
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        f"sz_bench.py: {arrays[0]} has no alexnet; sz_activations.py -out {arrays[0]} makes them"
    ]


def test_limit_of_a_case_worked_by_hand() -> None:
    coded = np.array([[0, 1], [1, 0]], np.int32)
    limit = sz_limits.limit(coded)
    # Without contexts: four values of 1 bit, and log2(4) / 2 for the one free frequency.
    assert limit.order0 == pytest.approx(4 + 1)
    # The last value alone has the context (1, 1) and is free; the others, 0, 1, 1, share (0, 0).
    entropy = 3 * (math.log2(3) / 3 + 2 * math.log2(1.5) / 3)
    assert limit.order1 == pytest.approx(entropy + math.log2(3) / 2)
    assert limit.bits == limit.order1


def test_limit_with_prediction_of_a_ramp() -> None:
    # Of the three neighbours' plane and themselves the median is the one above or to the left:
    # one difference almost everywhere.
    rows, columns = np.mgrid[:64, :64]
    limit = sz_limits.limit((3 * rows + 5 * columns).astype(np.int32))
    assert limit.predicted < 0.1 * min(limit.bits, limit.signed)
    assert limit.strict_bits == limit.predicted


def test_codes_keep_the_bound_and_the_sign() -> None:
    values = gaussian(1000)
    assert np.abs(sz_limits.codes(values, 0.1) * 0.2 - values).max() <= 0.1 + 1e-6
    assert np.array_equal(np.sign(sz_limits.sign_codes(values, 0.1)), np.sign(values))


def test_check_counts_what_is_broken() -> None:
    values = np.array([0, 1, -1, 2], np.float32)
    restored = np.array([0.1, 1.2, 0.5, 2], np.float32)
    assert sz_figures.check(values, restored, 0.15, True) == sz_figures.Check(2, 1, 2)


def test_dependence_of_error_and_value() -> None:
    values = np.array([0, 1, 2, 3], np.float32)
    found = sz_figures.dependence(values, values * np.float32(1.25), 0.5)
    # Errors 1/4, 2/4, 3/4: proportional to the value; their mean is one bound.
    assert found.count == 3
    assert found.correlation == pytest.approx(1)
    assert found.mean == pytest.approx(1)
