"""solver.compression: what is kept, read and set between steps."""

from __future__ import annotations

import numpy as np
import pytest
from nets import make_solver, model

SHAPE = (16, 1, 28, 28)


def solver(compression, text=""):
    made = make_solver(model("lenet", SHAPE), text, compression)
    rng = np.random.default_rng(4)
    made.net.blobs["data"].data[...] = rng.normal(size=SHAPE)
    made.net.blobs["label"].data[...] = rng.integers(0, 10, SHAPE[0])
    return made


def weights(made):
    return [blob.data.copy() for blobs in made.net.params.values() for blob in blobs]


def test_rows_are_those_of_the_report() -> None:
    made = solver("mode: FIXED error_bound: 0.05")
    assert len(made.compression) == 0
    made.step(1)
    found = made.compression
    assert {"conv2", "ip2"} <= set(found)
    assert len(found) == len(made.net.compression_report())
    row = found["conv2"]
    assert (row.blob, row.form) == ("pool1", "bounded")
    assert row.raw_bytes == 4 * made.net.blobs["pool1"].count
    assert row.ratio == row.raw_bytes / row.stored_bytes > 2
    assert row.error_bound > 0
    assert found.raw_bytes == sum(report.raw_bytes for report in made.net.compression_report())
    assert found.ratio == found.raw_bytes / found.stored_bytes > 1
    assert "pool1: bounded" in repr(row)


def test_rows_follow_each_step() -> None:
    made = solver("mode: ADAPTIVE interval: 1")
    bounds = []
    for _ in range(4):
        made.step(1)
        bounds.append(made.compression["conv2"].error_bound)
    assert len(set(bounds)) > 1


def test_a_bound_that_is_set_holds() -> None:
    made = solver("mode: FIXED error_bound: 0.01")
    made.step(1)
    before = made.compression["conv2"].stored_bytes
    made.compression["conv2"].error_bound = 0.25
    assert made.compression["conv2"].error_bound == 0.25
    for _ in range(2):
        made.step(1)
        row = made.compression["conv2"]
        assert row.error_bound == 0.25
        assert row.stored_bytes < before
    (report,) = [r for r in made.net.compression_report() if r.saved.value.name == "pool1"]
    assert report.error_bound == 0.25


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS", "FIXED", "ADAPTIVE"])
def test_mode_changes_between_steps(mode) -> None:
    """From any mode to LOSSLESS and NONE: the rest of the run is exact."""
    made, plain = solver(f"mode: {mode}"), solver("mode: NONE")
    made.step(2)
    plain.step(2)
    for name, blobs in made.net.params.items():
        for ours, theirs in zip(blobs, plain.net.params[name]):
            theirs.data[...] = ours.data
    for ours, theirs in zip(made.history, plain.history):
        theirs.copy_from(ours)
    for exact in ("LOSSLESS", "NONE", "LOSSLESS"):
        made.compression.set(mode=exact)
        made.step(2)
        plain.step(2)
        for ours, theirs in zip(weights(made), weights(plain)):
            np.testing.assert_array_equal(ours, theirs)
    made.compression.set(mode="ADAPTIVE")
    made.step(2)
    plain.step(2)
    assert made.compression["conv2"].form == "bounded"
    for ours, theirs in zip(weights(made), weights(plain)):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_fields_change_what_is_kept() -> None:
    made = solver("mode: FIXED error_bound: 0.001")
    made.step(1)
    fine = made.compression["conv2"]
    sizes = fine.stored_bytes
    made.compression.set(error_bound=0.5)
    made.step(1)
    coarse = made.compression["conv2"]
    assert coarse.stored_bytes < sizes / 2
    assert made.compression.param.error_bound == 0.5
    made.compression.set(error_bound=0.125, bound_type="ABS", keep=["conv2"])
    made.step(1)
    assert made.compression["conv2"].error_bound == 0.125
    assert made.net.blobs["conv2"].data.shape == (16, 50, 8, 8)


def test_new_mode_drops_old_bounds() -> None:
    made = solver("mode: ADAPTIVE")
    made.step(2)
    adaptive = made.compression["conv2"].error_bound
    made.compression.set(mode="FIXED", error_bound=0.25, bound_type="ABS")
    made.step(1)
    assert made.compression["conv2"].error_bound == 0.25 != adaptive


def test_what_is_kept_can_be_asked_of_any_net() -> None:
    made = solver("mode: NONE")
    made.step(1)
    assert list(made.compression) == []
    assert made.compression.ratio == 0
    assert made.net.compression_report() == []


def test_mistakes() -> None:
    made = solver('mode: FIXED keep: "conv2"')
    made.step(1)
    with pytest.raises(KeyError, match="nothing is kept for 'cnov2'; did you mean 'conv2'"):
        made.compression["cnov2"]
    with pytest.raises(ValueError, match="needs to be a number above 0"):
        made.compression["conv2"].error_bound = 0
    raw = next(row for row in made.compression.values() if row.form != "bounded")
    with pytest.raises(ValueError, match="it has no bound that could be set"):
        raw.error_bound = 1
    for fields, error, message in (
        (dict(mod="FIXED"), AttributeError, "no field 'mod'; did you mean 'mode'"),
        (dict(mode="FIXD"), ValueError, "no value 'FIXD'; did you mean 'FIXED'"),
        (dict(error_bound=-1), ValueError, "error_bound is -1"),
        (dict(keep=["cnov1"]), ValueError, "keep names no blob 'cnov1'"),
    ):
        with pytest.raises(error, match=message):
            made.compression.set(**fields)
    made.step(1)  # what was refused changed nothing
    assert list(made.compression.param.keep) == ["conv2"]
    assert made.compression["conv2"].form == "bounded"
