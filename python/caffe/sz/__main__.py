"""`python -m caffe.sz`: compress, decompress and describe files of arrays."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caffe import sz
from caffe.cli.flags import Flag, Flags, UsageError, describe, parse
from caffe.names import suggestion
from caffe.sz.files import output_path, read_array, write_whole

USAGE = """usage: python -m caffe.sz compress FILE -e BOUND FLAGS
       python -m caffe.sz decompress FILE.sz FLAGS
       python -m caffe.sz info FILE.sz

FILE is a .npy file, or raw little-endian values of shape -d and type -t."""

_OUT = Flag("o", "", "file to write; by default FILE with .sz at its end, or without")
_OVERWRITE = Flag("overwrite", False, "replace the file if it is there")
_THREADS = Flag("threads", 0, "threads; 0 is OpenMP's default")
FLAGS = {
    "compress": (
        Flag("e", 0.0, "error bound, 0 or more; 0 is lossless"),
        Flag("m", "abs", "unit of the bound: the values' own, or their range", ("abs", "rel")),
        Flag("d", "", "shape of raw values, as 64x32x28x28 or 64 32 28 28"),
        Flag("t", "float32", "type of raw values", ("float32", "float64")),
        Flag("keep_sign", False, "keep the sign of every value"),
        Flag("negative_factor", 1.0, "bound of negative values in bounds; needs -keep_sign"),
        Flag("dither", 0, "make errors independent of the values, from this seed"),
        Flag("checksum", False, "add checksums, which find damage"),
        Flag("no_verify", False, "do not decode again to measure the error"),
        _THREADS,
        _OUT,
        _OVERWRITE,
    ),
    "decompress": (
        Flag("raw", False, "write raw values instead of .npy"),
        _THREADS,
        _OUT,
        _OVERWRITE,
    ),
    "info": (),
}
_INTERRUPTED = 130
_BLOCK = 1 << 20  # values compared at a time


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the command line without the program's name; None takes the process's.

    Returns:
        The exit status: 0, or 1 after one line on standard error that says what is wrong.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except KeyboardInterrupt:
        print("sz: error: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (ValueError, TypeError, OSError, RuntimeError, MemoryError) as error:
        if os.environ.get("CAFFE_TRACEBACK", "") not in ("", "0"):
            traceback.print_exc()
        print(f"sz: error: {_one_line(error)}", file=sys.stderr)
        return 1


def _run(words: list[str]) -> int:
    if not words or any(word.lstrip("-") in ("help", "h") for word in words):
        tables = [f"{name}:\n{describe(FLAGS[name])}" for name in FLAGS if FLAGS[name]]
        print("\n\n".join([USAGE, *tables]))
        return 0 if words else 1
    command = words.pop(0)
    if command not in FLAGS:
        raise UsageError(f"unknown command '{command}'{suggestion(command, FLAGS)}")
    flags = parse(_join_shape(words), FLAGS[command])
    if len(flags.arguments) != 1:
        raise UsageError(
            f"{command} takes one file, got {', '.join(map(repr, flags.arguments)) or 'none'}"
        )
    _COMMANDS[command](Path(flags.arguments[0]), flags)
    return 0


def _join_shape(words: Sequence[str]) -> list[str]:
    """Make one word of the numbers behind -d."""
    joined: list[str] = []
    in_shape = False
    for word in words:
        if in_shape and word.isascii() and word.isdigit():
            joined[-1] += f"x{word}"
            continue
        in_shape = bool(joined) and joined[-1] in ("-d", "--d")
        joined.append(word)
    return joined


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]+([x,][0-9]+)*", text):
        raise UsageError(f"flag -d is '{text}', needs a shape such as 64x32x28x28")
    return tuple(int(word) for word in re.split("[x,]", text))


def _compress(path: Path, flags: Flags) -> None:
    if "e" not in flags.given:
        raise UsageError("flag -e is needed: the error bound, as in -e 1e-3")
    target = output_path(flags.text("o"), path.with_name(path.name + ".sz"), flags.on("overwrite"))
    array = read_array(
        path,
        _shape(flags.text("d")) if "d" in flags.given else None,
        flags.text("t") if "t" in flags.given else None,
    )
    begin = time.perf_counter()
    stream = sz.compress(
        array,
        float(flags.values["e"]),
        flags.text("m"),
        flags.on("keep_sign"),
        dither=flags.number("dither") if "dither" in flags.given else None,
        negative_factor=float(flags.values["negative_factor"]),
        checksum=flags.on("checksum"),
        threads=flags.number("threads"),
    )
    seconds = time.perf_counter() - begin
    verified = "not verified"
    if not flags.on("no_verify"):
        verified = _verify(array, stream, flags.number("threads"))
    write_whole(target, lambda file: file.write(stream))
    header = sz.info(stream)
    print(f"{path}: {_array_text(header)}")
    print(f"{target}: {_sizes_text(header)}")
    print(f"compressed at {_speed(header, seconds)}; {verified}")


def _verify(array: NDArray[Any], stream: bytes, threads: int) -> str:
    """Decode and measure; an error that is too large is a defect of the library."""
    begin = time.perf_counter()
    restored = sz.decompress(stream, threads=threads).ravel()
    seconds = time.perf_counter() - begin
    header = sz.info(stream)
    values = np.asarray(array, restored.dtype, order="C").ravel()
    largest = [0.0, 0.0]  # of values that are not negative, and of those that are
    for at in range(0, values.size, _BLOCK):
        x, y = values[at : at + _BLOCK], restored[at : at + _BLOCK]
        finite = np.isfinite(x)
        if x[~finite].tobytes() != y[~finite].tobytes():
            raise RuntimeError("the decoded stream lost NaN or an infinity; please report this")
        with np.errstate(over="ignore"):
            error = np.abs(x[finite].astype(np.longdouble) - y[finite])
        negative = x[finite] < 0
        for side, chosen in enumerate((~negative, negative)):
            largest[side] = max(largest[side], float(error[chosen].max(initial=0)))
    bounds = _bounds(header)
    for off, bound in zip(largest, bounds):
        if off > bound:
            raise RuntimeError(
                f"the decoded stream is off by {off:g}, more than the bound of {bound:g}; "
                "please report this"
            )
    text = f"decompressed at {_speed(header, seconds)}\n"
    if header["negative_factor"] == 1:
        return text + f"largest error {max(largest):.6g}, bound {bounds[0]:.6g}"
    return text + (
        f"largest error {largest[0]:.6g}, bound {bounds[0]:.6g}; of negative values "
        f"{largest[1]:.6g}, bound {bounds[1]:.6g}"
    )


def _decompress(path: Path, flags: Flags) -> None:
    raw = flags.on("raw")
    stem = path.name[:-3] if path.name.endswith(".sz") else ""
    if not flags.text("o") and not stem:
        raise UsageError(f"'{path}' does not end in .sz; name the file to write with -o")
    if not raw and not stem.endswith(".npy"):
        stem += ".npy"
    target = output_path(flags.text("o"), path.with_name(stem), flags.on("overwrite"))
    stream = path.read_bytes()
    header = _header(path, stream)
    begin = time.perf_counter()
    array = sz.decompress(stream, threads=flags.number("threads"))
    seconds = time.perf_counter() - begin
    write_whole(target, array.tofile if raw else lambda file: np.save(file, array))
    print(f"{target}: {_array_text(header)}")
    print(f"decompressed at {_speed(header, seconds)}")


def _info(path: Path, _flags: Flags) -> None:
    header = _header(path, path.read_bytes())
    dither = "none" if header["dither"] is None else f"seed {header['dither']}"
    print(f"{path}: {_array_text(header)}, format version {header['version']}")
    print(_sizes_text(header))
    bounds = _bounds(header)
    of_negative = "" if header["negative_factor"] == 1 else f", of negative values {bounds[1]:g}"
    print(f"error bound {bounds[0]:g}{of_negative}, dither {dither}", end="")
    print(f", signs kept {_yes(header['keep_sign'])}, checksums {_yes(header['checksum'])}")
    print(f"{header['chunks']} chunks of {header['chunk_values']} values")


def _header(path: Path, stream: bytes) -> sz.Info:
    try:
        return sz.info(stream)
    except sz.Error as error:
        raise sz.Error(f"'{path}' is no stream of sz, or a damaged one: {error}") from None


def _bounds(header: sz.Info) -> tuple[float, float]:
    """Return the bound of values that are not negative, and of those that are."""
    return header["error_bound"], header["error_bound"] * header["negative_factor"]


def _yes(condition: bool) -> str:
    return "yes" if condition else "no"


def _array_text(header: sz.Info) -> str:
    shape = "x".join(map(str, header["shape"])) or "one value"
    return f"{header['dtype']} {shape}, {header['raw_bytes']} bytes"


def _sizes_text(header: sz.Info) -> str:
    raw, compressed = header["raw_bytes"], header["compressed_bytes"]
    count = raw // np.dtype(header["dtype"]).itemsize
    bits = f"{8 * compressed / count:.3f} bits a value" if count else "no values"
    return f"{compressed} bytes, ratio {raw / compressed:.3f}, {bits}"


def _speed(header: sz.Info, seconds: float) -> str:
    return f"{header['raw_bytes'] / max(seconds, 1e-9) / 1e9:.2f} GB/s"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": '{error.filename}'" if error.filename else "")
    text = " ".join(str(error).split())
    return re.sub(r"^sz(\.\w+)?: ", "", text) or type(error).__name__


_COMMANDS = {"compress": _compress, "decompress": _decompress, "info": _info}

if __name__ == "__main__":
    sys.exit(main())
