"""`python -m caffe.sz`: files in and out, what it prints, and errors in one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sz_arrays import F32, F64, gaussian64, relu, specials

from caffe import sz
from caffe.sz import __main__ as command
from caffe.sz import files

SHAPE = (4, 8, 14, 14)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    array = relu(int(np.prod(SHAPE))).reshape(SHAPE)
    np.save(tmp_path / "x.npy", array)
    array.tofile(tmp_path / "x.f32")
    gaussian64(600).tofile(tmp_path / "x.f64")
    np.save(tmp_path / "whole.npy", np.arange(6))
    (tmp_path / "bad.sz").write_bytes(b"COSZ, but nothing more")
    damaged = bytearray(sz.compress(array, 0.1, checksum=True))
    damaged[-1] ^= 1
    (tmp_path / "damaged.sz").write_bytes(damaged)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, line: str) -> tuple[int, str, str]:
    status = command.main(line.split())
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def done(capsys, line: str) -> str:
    status, out, err = run(capsys, line)
    assert (status, err) == (0, "")
    return out


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_npy_there_and_back(capsys, folder: Path, dashes: str) -> None:
    out = done(capsys, f"compress x.npy {dashes}e 0.01 {dashes}checksum")
    array = np.load("x.npy")
    stream = Path("x.npy.sz").read_bytes()
    assert stream == sz.compress(array, 0.01, checksum=True)
    assert f"ratio {array.nbytes / len(stream):.3f}" in out
    assert f"{8 * len(stream) / array.size:.3f} bits a value" in out
    assert re.search(r"compressed at [\d.]+ GB/s; decompressed at [\d.]+ GB/s", out)
    largest = np.abs(sz.decompress(stream).astype(F64) - array).max()
    assert f"largest error {largest:.6g}, bound 0.01" in out
    done(capsys, f"decompress x.npy.sz {dashes}o y.npy")
    assert np.array_equal(np.load("y.npy"), sz.decompress(stream))
    assert not list(folder.glob(".*"))  # temporary files


def test_defaults_do_not_overwrite(capsys, folder: Path) -> None:
    before = Path("x.npy").read_bytes()
    done(capsys, "compress x.npy -e 0.5")
    status, _, err = run(capsys, "decompress x.npy.sz")
    assert (status, err) == (
        1, "sz: error: 'x.npy' exists; give -overwrite, or another name with -o\n",
    )  # fmt: skip
    assert Path("x.npy").read_bytes() == before
    assert run(capsys, "compress x.npy -e 0.5")[0] == 1
    done(capsys, "decompress x.npy.sz -overwrite")
    assert np.array_equal(np.load("x.npy"), sz.decompress(Path("x.npy.sz").read_bytes()))


@pytest.mark.parametrize(
    "shape", ["-d 4x8x14x14", "-d 4 8 14 14", "--d=4x8x14x14", "-d 4,8,14,14", "-d 4x8 14 14"]
)
def test_shapes_of_raw_files(capsys, folder: Path, shape: str) -> None:
    done(capsys, f"compress {shape} -e 0.01 -m rel -keep_sign -dither 9 -o out.sz -- x.f32")
    array = np.fromfile("x.f32", F32).reshape(SHAPE)
    expected = sz.compress(array, 0.01, "rel", True, dither=9)
    assert Path("out.sz").read_bytes() == expected


def test_raw_float64_there_and_back(capsys, folder: Path) -> None:
    done(capsys, "compress x.f64 -t float64 -e 0 -threads 1 -no_verify")
    assert sz.info(Path("x.f64.sz").read_bytes())["shape"] == (600,)
    done(capsys, "decompress x.f64.sz -raw -o y.f64")
    assert Path("y.f64").read_bytes() == Path("x.f64").read_bytes()
    done(capsys, "decompress x.f64.sz")  # .npy unless -raw says otherwise
    assert np.array_equal(np.load("x.f64.npy"), np.fromfile("x.f64"))


def test_zero_is_a_seed(capsys, folder: Path) -> None:
    done(capsys, "compress x.npy -e 0.1 -dither 0")
    assert sz.info(Path("x.npy.sz").read_bytes())["dither"] == 0


def test_awkward_arrays(capsys, folder: Path) -> None:
    arrays = {
        "specials": specials(),
        "empty": np.zeros((0, 3)),
        "single": np.float32(3).reshape(()),
        "fortran": np.asfortranarray(relu(60).reshape(6, 10)),
        "foreign": relu(60).astype(">f4"),
    }
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
        done(capsys, f"compress {name}.npy -e 0.01")
        done(capsys, f"decompress {name}.npy.sz -o back.npy -overwrite")
        expected = sz.decompress(sz.compress(array, 0.01))
        assert np.load("back.npy").tobytes() == expected.tobytes()
        assert np.load("back.npy").shape == array.shape


def test_info(capsys, folder: Path) -> None:
    done(capsys, "compress x.npy -e 0.25 -keep_sign -dither 5 -checksum")
    out = done(capsys, "info x.npy.sz")
    assert "x.npy.sz: float32 4x8x14x14, 25088 bytes, format version 3" in out
    assert "error bound 0.25, dither seed 5, signs kept yes, checksums yes" in out
    assert "1 chunks of" in out


def test_a_factor_of_negative_values(capsys, folder: Path) -> None:
    array = gaussian64(600)
    line = "compress x.f64 -d 600 -t float64 -e 0.1 -keep_sign -negative_factor 4"
    out = done(capsys, line)
    stream = Path("x.f64.sz").read_bytes()
    assert stream == sz.compress(array, 0.1, keep_sign=True, negative_factor=4)
    errors, negative = np.abs(sz.decompress(stream) - array), array < 0
    largest, below = errors[~negative].max(), errors[negative].max()
    assert below > 0.3
    assert (
        f"largest error {largest:.6g}, bound 0.1; of negative values {below:.6g}, bound 0.4" in out
    )
    out = done(capsys, "info x.f64.sz")
    assert "error bound 0.1, of negative values 0.4, dither none, signs kept yes" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compres x.npy", "unknown command 'compres'; did you mean 'compress'?"),
        ("compress", "compress takes one file, got none"),
        ("compress x.npy x.f32 -e 1", "compress takes one file, got 'x.npy', 'x.f32'"),
        ("compress x.npy", "flag -e is needed: the error bound, as in -e 1e-3"),
        ("compress x.npy -e x", "flag -e needs a number, got 'x'"),
        ("compress x.npy -e -1", "error_bound is -1.0; needs a finite number, 0 or more"),
        ("compress x.npy -e nan", "error_bound is nan; needs a finite number, 0 or more"),
        ("compress x.npy -e 1 -m std", "flag -m is 'std', but must be one of abs, rel"),
        ("compress x.npy -e 1 -dither -3", "dither is -3; needs a seed"),
        ("compress x.npy -e 1 -negative_factor 2", "negative_factor is 2.0; needs keep_sign"),
        (
            "compress x.npy -e 1 -keep_sign -negative_factor 0.5",
            "negative_factor is 0.5; needs a number from 1 to 1024",
        ),
        ("compress x.npy -e 1 -threads -3", "threads is -3; needs 0"),
        ("compress x.npy -e 1 -keepsign", "unknown flag '-keepsign'; did you mean '-keep_sign'?"),
        ("compress x.npy -e 1 -d 4x4", "'x.npy' is a .npy file, which has its own shape"),
        ("compress x.f32 -e 1", "'x.f32' is no .npy file; give a shape"),
        ("compress x.f32 -e 1 -d 3x3", "'x.f32' has 25088 bytes, but 3x3 float32 values are 36"),
        ("compress x.f32 -e 1 -d 3y3", "flag -d is '3y3', needs a shape such as 64x32x28x28"),
        ("compress x.f32 -e 1 -t int8", "flag -t is 'int8', but must be one of float32, float64"),
        ("compress whole.npy -e 1", "array has dtype int64; needs float32 or float64"),
        ("compress none -e 1", "No such file or directory: 'none'"),
        ("compress x.npy -e 1 -o .", "'.' is a folder; give the name of a file with -o"),
        ("compress x.npy -e 1 -o a/b", "cannot write 'a/b': there is no folder 'a'"),
        ("decompress x.npy", "'x.npy' does not end in .sz; name the file to write with -o"),
        ("decompress x.npy -o y", "'x.npy' is no stream of sz, or a damaged one: "),
        ("decompress bad.sz", "'bad.sz' is no stream of sz, or a damaged one: "),
        ("decompress damaged.sz", "malformed stream: chunk 0 is damaged"),
        ("info none.sz", "No such file or directory: 'none.sz'"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(capsys, folder: Path, line: str, message) -> None:
    before = sorted(folder.iterdir())
    status, out, err = run(capsys, line)
    assert (status, out) == (1, "")
    assert err.startswith(f"sz: error: {message}")
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_a_write_that_fails_leaves_the_old_file(folder: Path) -> None:
    target = Path("x.npy")
    before = target.read_bytes()

    def write(file) -> None:
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write_whole(target, write)
    assert target.read_bytes() == before
    assert not list(folder.glob(".*"))


def test_a_broken_promise_is_noticed(capsys, folder: Path, monkeypatch) -> None:
    """If the library were wrong, compress would write nothing."""
    right = sz.decompress
    monkeypatch.setattr(sz, "decompress", lambda *a, **k: right(*a, **k) + F32(1))
    status, _, err = run(capsys, "compress x.npy -e 0.01")
    assert status == 1
    assert "more than the bound of 0.01" in err
    assert not Path("x.npy.sz").exists()


def test_a_broken_promise_about_negative_values_is_noticed(
    capsys, folder: Path, monkeypatch
) -> None:
    right = sz.decompress
    monkeypatch.setattr(sz, "decompress", lambda *a, **k: right(*a, **k) - F32(0.1))
    array = np.full(3, -1, F32)
    np.save("negative.npy", array)
    status, _, err = run(capsys, "compress negative.npy -e 0.01 -keep_sign -negative_factor 4")
    assert status == 1
    assert "more than the bound of 0.04" in err


def test_help_lists_every_flag(capsys) -> None:
    out = done(capsys, "--help")
    names = {flag.name for flags in command.FLAGS.values() for flag in flags}
    assert all(f"  -{name} " in out for name in names)
    assert run(capsys, "")[0] == 1


def test_as_a_module(folder: Path) -> None:
    words = [sys.executable, "-m", "caffe.sz", "compress", "x.npy", "-e", "0.1"]
    finished = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "ratio" in finished.stdout
