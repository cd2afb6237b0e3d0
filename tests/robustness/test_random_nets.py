"""An in-place layer never changes a gradient, nor does lossless compression: to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from nets import batches, make_solver, train
from random_nets import CLASSES, SHAPE, RandomNet

from caffe.prototxt import parse_net

MODES = {
    "in place": "mode: NONE",
    "in place, LOSSLESS": "mode: LOSSLESS",
    "in place, bound 0": "mode: FIXED bound_type: ABS error_bound: 0",
    "plain, LOSSLESS": "mode: LOSSLESS",
}


def run(text: str, compression: str, seed: int) -> list[np.ndarray]:
    """Losses, parameters and their gradients after two steps."""
    solver = make_solver(parse_net(text), f"iter_size: {1 + seed % 2}", compression)
    losses = train(solver, batches(SHAPE, 2, classes=CLASSES))
    blobs = [blob for blobs in solver.net.params.values() for blob in blobs]
    arrays = [array.copy() for blob in blobs for array in (blob.data, blob.diff)]
    return [np.array(losses), *arrays]


@pytest.mark.parametrize("seed", range(60))
def test_every_spelling_and_lossless_mode_agrees(seed: int) -> None:
    net = RandomNet(seed)
    expected = run(net.plain, "mode: NONE", seed)
    for name, compression in MODES.items():
        text = net.plain if name.startswith("plain") else net.in_place
        for ours, theirs in zip(run(text, compression, seed), expected):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{name}\n{text}")


@pytest.mark.parametrize("mode", ["FIXED error_bound: 0.05", "ADAPTIVE"])
def test_lossy_modes_run_and_keep_the_first_loss(mode: str) -> None:
    for seed in range(20):
        text = RandomNet(seed).in_place
        expected = run(text, "mode: NONE", seed)[0]
        np.testing.assert_array_equal(run(text, f"mode: {mode}", seed)[0][0], expected[0])
