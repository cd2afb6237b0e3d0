"""Labels, indices and what losses divide by: what the layers with labels have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe.proto import caffe_pb2 as pb

IndexArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def class_labels(
    labels: npt.NDArray[np.float32], classes: int, inner: int, ignored: int | None = None
) -> tuple[IndexArray, BoolArray]:
    """Return labels as whole numbers, and which of them count (are not `ignored`).

    Labels that do not count are returned as 0.

    Args:
        labels: any shape, in the order of samples and their positions.
        classes: labels go from 0 to classes - 1; fractions are cut off, as in Caffe.
        inner: positions of one sample.
        ignored: the label of what does not count; None: all do.

    Raises:
        ValueError: a label that is no class; with the sample's index and the value.
    """
    raw = labels.ravel()
    whole = np.trunc(raw)
    counted = np.ones(raw.shape, bool) if ignored is None else whole != ignored
    bad = np.flatnonzero(counted & ~((raw > -1) & (raw < classes)))
    if bad.size:
        raise ValueError(
            f"label {raw[bad[0]]:g} of sample {bad[0] // inner} is not one of the {classes} "
            f"classes (0 to {classes - 1})"
        )
    return np.where(counted, whole, 0).astype(np.int64), counted


def check_label_count(scores: Sequence[int], labels: Sequence[int], axis: int) -> None:
    """Make sure that there is one label for each position outside `axis` (ValueError)."""
    positions = math.prod(scores[:axis]) * math.prod(scores[axis + 1 :])
    count = math.prod(labels)
    if count != positions:
        raise ValueError(
            f"the scores of shape {tuple(scores)} have {positions} positions outside axis {axis}, "
            f"the labels of shape {tuple(labels)} are {count}; one label a position is needed"
        )


def check_batch(first: Sequence[int], other: Sequence[int], what: str) -> None:
    """Make sure that bottom 0 and `what` have an axis 0, of one length (ValueError)."""
    if not first or not other or first[0] != other[0]:
        raise ValueError(
            f"bottom 0 has shape {tuple(first)} and {what} {tuple(other)}; both need a first axis "
            "of one length, the batch"
        )


def check_one_label_a_sample(scores: Sequence[int], labels: Sequence[int]) -> None:
    """Make sure that labels are as many as samples (ValueError)."""
    check_batch(scores, labels, "the labels")
    if math.prod(labels) != scores[0]:
        raise ValueError(
            f"the labels have shape {tuple(labels)}, needs one for each of the {scores[0]} samples"
        )


def row_indices(raw: npt.NDArray[np.float32], rows: int) -> IndexArray:
    """Return indices of rows as whole numbers, flat.

    Raises:
        ValueError: an index that is no row; with its position and the value.
    """
    flat = raw.ravel()
    bad = np.flatnonzero(~((flat > -1) & (flat < rows)))
    if bad.size:
        raise ValueError(
            f"index {flat[bad[0]]:g} at position {bad[0]} is not one of the {rows} rows "
            f"(0 to {rows - 1})"
        )
    return flat.astype(np.int64)


def add_rows(target: npt.NDArray[np.float32], indices: IndexArray, rows: Any) -> None:
    """Add rows[i] to target[indices[i]] for each i, in the order of i."""
    if not indices.size:
        return
    order = np.argsort(indices, kind="stable")
    in_order = indices[order]
    starts = np.flatnonzero(np.r_[True, in_order[1:] != in_order[:-1]])
    target[in_order[starts]] += np.add.reduceat(rows[order], starts, axis=0)


def normalization(param: pb.LossParameter, otherwise: int = pb.LossParameter.VALID) -> int:
    """Return how a loss is normalised: as written, in the new field or the old, or `otherwise`."""
    if param.HasField("normalization"):
        return param.normalization
    if param.HasField("normalize"):
        return pb.LossParameter.VALID if param.normalize else pb.LossParameter.BATCH_SIZE
    return otherwise


def divisor(mode: int, outer: int, inner: int, valid: int) -> int:
    """Return what a loss is divided by, at least 1.

    Args:
        mode: FULL: outer * inner; VALID: valid; BATCH_SIZE: outer; NONE: 1.
        outer: samples.
        inner: positions of a sample.
        valid: positions that are not ignored.
    """
    counts = {
        pb.LossParameter.FULL: outer * inner,
        pb.LossParameter.VALID: valid,
        pb.LossParameter.BATCH_SIZE: outer,
        pb.LossParameter.NONE: 1,
    }
    return max(counts[mode], 1)  # type: ignore[index]
