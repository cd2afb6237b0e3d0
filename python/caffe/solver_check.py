"""What the settings of a solver must be; found out before anything runs."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from caffe.hdf5_snapshot import require_h5py
from caffe.lr_policy import check_policy
from caffe.memory_limit import parse_limit
from caffe.proto import caffe_pb2 as pb
from caffe.sz import LARGEST_FACTOR

#: Fields that any finite number will do for.
_FINITE = ("weight_decay", "clip_gradients", "gamma", "power")
#: Field -> the least that it may be.
_LEAST = {"iter_size": 1, "average_loss": 1, "snapshot": 0, "max_iter": 0}
#: What only the solver can say of compression, not one of its layers.
_SOLVER_ONLY = ("interval", "memory_limit", "slice", "budget", "keep", "display")


def check_solver(param: pb.SolverParameter) -> None:
    """Raise ValueError for settings that make no sense.

    FileNotFoundError, PermissionError and ImportError where snapshots could not be written.

    With snapshots to come, a file is made and removed in the folder that they go to.
    """
    if not param.HasField("base_lr"):
        raise ValueError("the solver has no base_lr: the learning rate to start from")
    if not (math.isfinite(param.base_lr) and param.base_lr >= 0):
        raise ValueError(f"base_lr is {param.base_lr:g}, needs to be a number from 0 up")
    if not 0 <= param.momentum < 1:
        raise ValueError(f"momentum is {param.momentum:g}, needs to be from 0 to below 1")
    for name in _FINITE:
        if not math.isfinite(getattr(param, name)):
            raise ValueError(f"{name} is {getattr(param, name):g}, needs to be a finite number")
    for name, least in _LEAST.items():
        if getattr(param, name) < least:
            raise ValueError(f"{name} is {getattr(param, name)}, needs at least {least}")
    for index, count in enumerate(param.test_iter):
        if count < 1:
            raise ValueError(f"test_iter of test net {index} is {count}, needs at least 1")
    check_policy(param)
    check_compression(param.compression_param)
    if param.snapshot or param.snapshot_after_train:
        _check_snapshots(param)


def check_compression(compression: pb.CompressionParameter) -> None:
    """Raise ValueError for compression that cannot be."""
    for name in ("error_bound", "sigma_factor", "bound_cap", "paper_a"):
        value = getattr(compression, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(
                f"compression_param: {name} is {value:g}, needs to be a number from 0 up"
            )
    if not 1 <= compression.negative_factor <= LARGEST_FACTOR:
        raise ValueError(
            f"compression_param: negative_factor is {compression.negative_factor:g}, needs to be "
            f"from 1 to {LARGEST_FACTOR}"
        )
    if compression.interval < 1:
        raise ValueError(f"compression_param: interval is {compression.interval}, needs at least 1")
    if compression.slice < 0:
        raise ValueError(f"compression_param: slice is {compression.slice}, needs to be from 0 up")
    if compression.memory_limit:
        parse_limit(compression.memory_limit)


def check_layer_compression(compression: pb.CompressionParameter) -> None:
    """Raise ValueError for compression that cannot be, or that one layer cannot ask for."""
    for field, _ in compression.ListFields():
        if field.name in _SOLVER_ONLY:
            raise ValueError(
                f"compression_param: {field.name} belongs in the solver, not in a layer"
            )
    check_compression(compression)


def _check_snapshots(param: pb.SolverParameter) -> None:
    if param.snapshot_format == pb.SolverParameter.HDF5:
        require_h5py()
    prefix = param.snapshot_prefix
    folder = Path(prefix).parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"snapshot_prefix '{prefix}': its folder '{folder}' does not exist; "
            "make it before training, or nothing could be saved at the end"
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"snapshot_prefix '{prefix}': nothing can be written in its folder '{folder}' "
            f"({error.strerror}); snapshots would be lost"
        ) from error
