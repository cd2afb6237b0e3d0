"""What a wider bound of negative values saves: the table of docs/compressor.md.

    python benchmarks/sz_negative_factor.py

Ratios for normally distributed values, with signs kept and dither; they depend on no machine.
"""

from __future__ import annotations

import argparse

import numpy as np

from caffe import sz
from common import heading, markdown

SHAPE = (16, 64, 32, 32)
BOUNDS = (0.1, 0.3, 0.5, 1.0)  # in standard deviations
FACTORS = (1, 2, 3, 4, 8)


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    values = np.random.default_rng(1).standard_normal(SHAPE, np.float32)
    rows = [["bound", *(f"factor {factor}" for factor in FACTORS)]]
    for bound in BOUNDS:
        streams = [
            sz.compress(values, bound, keep_sign=True, dither=1, negative_factor=factor)
            for factor in FACTORS
        ]
        rows.append([f"{bound:g}", *(f"{values.nbytes / len(stream):.1f}" for stream in streams)])
    print(*heading(), *markdown(rows), sep="\n")


if __name__ == "__main__":
    main()
