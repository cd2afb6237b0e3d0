"""The modes of compression against plain training of the same net."""

from __future__ import annotations

import numpy as np
import pytest
from nets import batches, make_solver, model, parameters, small_models, train

from caffe._core import memory
from caffe.compression_log import needed_bytes

MODELS = small_models()


@pytest.mark.parametrize("name", MODELS)
def test_lossless_equals_plain_to_the_bit(name: str) -> None:
    net, shape = MODELS[name]
    data = batches(shape, 3)
    plain = make_solver(net)
    lossless = make_solver(net, compression="mode: LOSSLESS")
    assert train(plain, data) == train(lossless, data)
    for ours, theirs in zip(parameters(plain), parameters(lossless)):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", ["FIXED error_bound: 1e-5", "ADAPTIVE sigma_factor: 1e-5"])
@pytest.mark.parametrize("name", MODELS)
def test_tight_bounds_stay_close_to_plain(name: str, mode: str) -> None:
    net, shape = MODELS[name]
    data = batches(shape, 3)
    plain = make_solver(net)
    bounded = make_solver(net, compression=f"mode: {mode} bound_cap: 1e-4")
    np.testing.assert_allclose(train(bounded, data), train(plain, data), rtol=2e-3)


@pytest.mark.parametrize("name", MODELS)
def test_forward_is_exact_whatever_the_bound(name: str) -> None:
    net, shape = MODELS[name]
    data = batches(shape, 1)
    losses = {
        train(make_solver(net, compression=text), data)[0]
        for text in ("mode: NONE", "mode: FIXED error_bound: 1", "mode: ADAPTIVE bound_cap: 1")
    }
    assert len(losses) == 1


@pytest.mark.parametrize("name", MODELS)
def test_compression_lowers_stored_bytes_and_peak(name: str) -> None:
    _, shape = MODELS[name]
    shape = (32, *shape[1:])
    net, data = model(name, shape), batches(shape, 4)
    peaks, stored = {}, {}
    for mode in ("NONE", "LOSSLESS", "ADAPTIVE"):
        solver = make_solver(net, compression=f"mode: {mode}")
        train(solver, data)
        peaks[mode] = solver.peak_bytes
        stored[mode] = sum(row.stored_bytes for row in solver.net.compression_report())
        needed = needed_bytes(solver.net.executor)
        del solver
    assert peaks["ADAPTIVE"] <= peaks["LOSSLESS"] < peaks["NONE"]
    # Noise compresses worse than images, and the smallest values are kept raw.
    assert stored["ADAPTIVE"] < 0.35 * needed
    assert stored["ADAPTIVE"] < 0.7 * stored["LOSSLESS"]


def test_nothing_stays_allocated_between_steps() -> None:
    net, shape = MODELS["lenet"]
    solver = make_solver(net, compression="mode: ADAPTIVE")
    data = batches(shape, 60)
    train(solver, data[:20])
    before, extent = memory.live(), memory.extent()
    train(solver, data[20:])
    after = memory.live()
    for kind in ("raw_activations", "stored_activations", "gradients", "workspace"):
        assert after[kind] <= before[kind] + 4096, kind
    assert memory.extent() <= extent * 1.1


def test_dither_errs_anew_in_every_pass_and_not_on_average() -> None:
    net, shape = MODELS["lenet"]
    data = batches(shape, 1)

    def gradients(compression: str, passes: int) -> np.ndarray:
        """The gradient of conv2's weights in passes over one batch, nothing learned between."""
        solver = make_solver(net, "base_lr: 1e-20", compression)
        found = []
        for _ in range(passes):
            train(solver, data)
            found.append(solver.net.params["conv2"][0].diff.copy().ravel())
        return np.array(found)

    exact = gradients("mode: NONE", 1)[0]
    coarse = "mode: FIXED error_bound: 0.7"
    plain = gradients(f"{coarse} dither: false", 2) - exact
    dithered = gradients(f"{coarse} dither: true", 32) - exact
    np.testing.assert_array_equal(plain[0], plain[1])
    assert not np.array_equal(dithered[0], dithered[1])
    assert np.array_equal(dithered, gradients(f"{coarse} dither: true", 32) - exact)
    single = np.linalg.norm(dithered, axis=1).mean()
    # 32 independent errors of mean 0 average to 1 / sqrt(32) = 0.18 of one.
    assert np.linalg.norm(dithered.mean(axis=0)) < 0.3 * single
