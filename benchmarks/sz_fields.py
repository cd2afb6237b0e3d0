"""Made fields like those of simulations, for sz_bench.py: what SZ3 and zfp were written for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def spectral_field(shape: tuple[int, ...], exponent: float, lowest: float = 1.0) -> np.ndarray:
    """Return a Gaussian random field with amplitudes |k|**-exponent, k from `lowest` on; float32.

    Args:
        shape: sizes of 2 or 3 axes.
        exponent: energy at wave number k is then k**(dimensions - 1 - 2 * exponent), so that 11/6
            in 3-D is Kolmogorov's -5/3.
        lowest: wave number below which there is nothing.
    """
    rng = np.random.default_rng(1)
    spectrum = np.fft.rfftn(rng.standard_normal(shape, dtype=np.float32))
    axes = [np.fft.fftfreq(size, 1 / size) for size in shape[:-1]]
    axes.append(np.fft.rfftfreq(shape[-1], 1 / shape[-1]))
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    wave = np.sqrt(sum(axis**2 for axis in grid))
    spectrum *= np.where(wave >= lowest, np.maximum(wave, 1) ** -exponent, 0)
    field = np.fft.irfftn(spectrum, shape, axes=range(len(shape)))
    return (field / field.std()).astype(np.float32)


def noisy_steps(shape: tuple[int, int]) -> np.ndarray:
    """Return cells of constant value, sides 64, under normal noise of 0.05; float32."""
    rng = np.random.default_rng(2)
    cells = rng.standard_normal([-(-size // 64) for size in shape])
    steps = np.kron(cells, np.ones((64, 64)))[: shape[0], : shape[1]]
    return (steps + 0.05 * rng.standard_normal(shape)).astype(np.float32)


FIELDS: dict[str, Callable[[int], np.ndarray]] = {
    # each for the side of its squares or cubes
    "smooth_2d": lambda side: spectral_field((8 * side, 8 * side), 3.0),
    "smooth_3d": lambda side: spectral_field((side, side, side), 3.5),
    "turbulence_3d": lambda side: spectral_field((side, side, side), 11 / 6),
    "steps_2d": lambda side: noisy_steps((8 * side, 8 * side)),
}
