"""Whole nets against BVLC Caffe's figures, in plain mode and with the memory plan on."""

from __future__ import annotations

import pytest
from golden import check_layer_case, layer_cases


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS", "FIXED"])
@pytest.mark.parametrize("case", layer_cases())
def test_layer_case(case: str, mode: str) -> None:
    check_layer_case(case, mode)
