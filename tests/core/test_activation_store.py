"""The activation store's options for the compressor."""

from __future__ import annotations

import numpy as np
import pytest
from harness import to_tensor

from caffe._core.store import ActivationStore, Form

BOUND = 0.1
VALUES = np.random.default_rng(1).normal(size=(4, 8, 30, 30)).astype(np.float32)


def save(form: Form, factor: float, *, keep_sign: bool = True) -> tuple[np.ndarray, int]:
    """Return the restored values and the bytes that they took."""
    store = ActivationStore()
    stored = store.save(to_tensor(VALUES), form, BOUND, keep_sign, 5, negative_factor=factor)
    assert stored.error_bound == (BOUND if form == Form.BOUNDED else 0)
    return store.restore(stored).numpy(), stored.stored_bytes


def test_a_wider_bound_for_negative_values() -> None:
    exact, exact_bytes = save(Form.BOUNDED, 1)
    wide, wide_bytes = save(Form.BOUNDED, 4)
    assert wide_bytes < 0.79 * exact_bytes
    negative = VALUES < 0
    assert np.array_equal(wide[~negative], exact[~negative])
    assert np.array_equal(wide < 0, negative)
    errors = np.abs(wide.astype(np.float64) - VALUES)
    assert 3.5 * BOUND < errors[negative].max() <= 4 * BOUND


def test_other_forms_have_no_bound_to_widen() -> None:
    restored, _ = save(Form.LOSSLESS, 4)
    assert np.array_equal(restored, VALUES)
    save(Form.RAW, 4)


@pytest.mark.parametrize(("factor", "keep_sign"), [(0.5, True), (2000, True), (2, False)])
def test_a_factor_that_makes_no_sense(factor: float, keep_sign: bool) -> None:
    with pytest.raises(ValueError, match="negative_factor"):
        save(Form.BOUNDED, factor, keep_sign=keep_sign)
