"""Writes the seeds of the fuzzers: small streams of every kind, and inputs of the round trip.

python tests/fuzz/make_corpus.py FOLDER      # FOLDER/decode and FOLDER/round_trip
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "sz"))
from sz_arrays import F32, F64, any_bits, gaussian, relu, smooth, specials

from caffe import sz


def arrays() -> dict[str, np.ndarray]:
    mixed = gaussian(500, 1)
    mixed[::31] = np.resize(specials(), mixed[::31].shape)
    return {
        "empty": np.zeros(0, F32),
        "one": np.ones((), F32),
        "raw": any_bits(40),
        "relu": relu(700).reshape(7, 100),
        "mixed": mixed,
        "image": smooth((3, 16, 20), 1),
        "constant": np.full(300, 3, F32),
    }


def write_streams(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for name, array in arrays().items():
        for dtype in (F32, F64):
            for bound in (0.0, 0.05):
                for keep_sign, dither, factor in ((False, None, 1), (True, 5, 1), (True, 6, 3.5)):
                    with np.errstate(invalid="ignore"):
                        values = array.astype(dtype)
                    stream = sz.compress(
                        values,
                        bound,
                        keep_sign=keep_sign,
                        dither=dither,
                        negative_factor=factor,
                        checksum=keep_sign,
                    )
                    written += 1
                    (folder / f"{name}-{written:03}").write_bytes(stream)
    return written


def write_inputs(folder: Path) -> int:
    """As round_trip_fuzzer.cpp reads them: flags, exponent, ..., factor, values."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for name, array in arrays().items():
        for flags in (0, 1, 2, 3, 4 | 16, 8, 8 | 3, 8 | 32):
            with np.errstate(invalid="ignore"):
                values = array.astype(F64 if flags & 8 else F32)
            for rest in ((0, 0, 0, 0, 0), (136, 19, 15, 3, 12), (130, 9, 0, 20, 0)):
                choices = bytes([flags, *rest])
                written += 1
                (folder / f"{name}-{written:03}").write_bytes(choices + values.tobytes()[:4000])
    return written


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: make_corpus.py FOLDER", file=sys.stderr)
        return 1
    folder = Path(sys.argv[1])
    print(write_streams(folder / "decode"), write_inputs(folder / "round_trip"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
