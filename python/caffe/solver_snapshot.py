"""Snapshots of a solver: writing its weights and state, and going on from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from caffe import binary_snapshot, hdf5_snapshot, log, solver_state
from caffe.lr_policy import steps_taken
from caffe.proto import caffe_pb2 as pb
from caffe.snapshot import load_state, weights_beside

if TYPE_CHECKING:
    from caffe.solver import Solver


def write(solver: Solver) -> tuple[Path, Path]:
    """Write <prefix>_iter_<N>.caffemodel and .solverstate, as snapshot_format says.

    Returns their paths. Raises OSError where they cannot be written; files written before stay
    whole.
    """
    param = solver.param
    is_hdf5 = param.snapshot_format == pb.SolverParameter.HDF5
    kind, ending = ("HDF5", ".h5") if is_hdf5 else ("binary proto", "")
    prefix = f"{param.snapshot_prefix or 'caffe'}_iter_{solver.iter}"
    model, path = Path(f"{prefix}.caffemodel{ending}"), Path(f"{prefix}.solverstate{ending}")
    log.info(f"Snapshotting to {kind} file {model}")
    save = solver.net.save_hdf5 if is_hdf5 else solver.net.save
    save(model, write_diff=param.snapshot_diff)
    log.info(f"Snapshotting solver state to {kind} file {path}")
    state = pb.SolverState(
        iter=solver.iter,
        learned_net=str(model),
        current_step=steps_taken(param, solver.iter),
    )
    solver_state.collect(solver, state.comet)
    files = hdf5_snapshot if is_hdf5 else binary_snapshot
    files.save_state(path, state, [tensor.numpy() for tensor in solver.history])
    return model, path


def restore(solver: Solver, path: str | Path) -> None:
    """Go on from a state of either format, BVLC Caffe's or our own, and the weights it names.

    Raises:
        FileNotFoundError: the state, or the weights it names, are not there.
        ImportError: h5py is needed and missing.
        ValueError: a file of another kind, or history that does not fit the net.
    """
    state, history = load_state(path)
    if len(history) != len(solver.history):
        raise ValueError(
            f"'{path}' has {len(history)} history blobs, this solver needs "
            f"{len(solver.history)}; is it of another net or solver type?"
        )
    for index, (stored, tensor) in enumerate(zip(history, solver.history)):
        # Sizes of 1 apart, which old files pad shapes with.
        if [n for n in stored.shape if n != 1] != [n for n in tensor.shape if n != 1]:
            raise ValueError(
                f"'{path}': history blob {index} has shape {stored.shape}, "
                f"the net needs {tensor.shape}"
            )
    solver.net.copy_all_from(weights_beside(Path(path), state.learned_net))
    for stored, tensor in zip(history, solver.history):
        stored.copy_to(tensor.numpy())
    solver.iter = state.iter
    if state.HasField("comet"):
        solver_state.apply(solver, state.comet)
    else:
        log.warning(
            f"'{path}' was not written by COMET: error bounds, random numbers and the position "
            "in the data start afresh"
        )
