"""The matrix product that layers in Python use, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from harness import random_array

from caffe._core.layers import multiply


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(3, 4, 5), (1, 7, 1), (64, 33, 129), (2, 0, 3), (0, 2, 3)]
)
def test_agrees_with_numpy(m: int, k: int, n: int, transpose_a: bool, transpose_b: bool) -> None:
    a = random_array(*((k, m) if transpose_a else (m, k)))
    b = random_array(*((n, k) if transpose_b else (k, n)), seed=1)
    expected = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    out = np.full((m, n), np.nan, np.float32)
    multiply(a, b, out, transpose_a, transpose_b)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    multiply(a, b, out, transpose_a, transpose_b, accumulate=True)
    np.testing.assert_allclose(out, 2 * expected, rtol=1e-4, atol=1e-4)


def test_rows_may_lie_apart() -> None:
    a, b = random_array(3, 9), random_array(4, 8, seed=1)
    out = np.zeros((3, 10), np.float32)
    multiply(a[:, 2:6], b[:, 1:6], out[:, 3:8])
    np.testing.assert_allclose(out[:, 3:8], a[:, 2:6] @ b[:, 1:6], rtol=1e-4, atol=1e-5)
    assert not out[:, :3].any()
    assert not out[:, 8:].any()


def test_what_is_refused() -> None:
    a, b, out = random_array(3, 4), random_array(4, 5), np.zeros((3, 5), np.float32)
    with pytest.raises(ValueError, match="matrices of 3x4 and 4x5 do not give one of 3x4"):
        multiply(a, b, a)
    with pytest.raises(ValueError, match="matrices of 3x4 and 5x4"):
        multiply(a, b, out, transpose_b=True)
    with pytest.raises(ValueError, match="a has 1 axes, needs 2"):
        multiply(a[0], b, out)
    with pytest.raises(ValueError, match="b needs the values of a row side by side"):
        multiply(a, b.T.copy().T, out)
    with pytest.raises(TypeError):
        multiply(a.astype(np.float64), b, out)
