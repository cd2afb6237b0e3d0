"""The weights of a net: from and to files of either format, and shared with another net."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from caffe import binary_snapshot, hdf5_snapshot, log
from caffe.blob import ParameterBlob
from caffe.snapshot import load_weights
from caffe.stored_blob import StoredBlob

if TYPE_CHECKING:
    from caffe.net import Net

Parameters = Mapping[str, Sequence[ParameterBlob]]


def copy(params: Parameters, path: str | Path, *, whole: bool = False) -> None:
    """Copy what the file has for the layers of `params`.

    Args:
        params: layer name -> its blobs.
        path: a .caffemodel, or .caffemodel.h5.
        whole: refuse a file that lacks one of the layers.

    Raises:
        FileNotFoundError: no such file.
        ImportError: h5py is needed and missing.
        ValueError: a wrong file, shapes that differ, weights for none of the layers, or not all.
    """
    found = load_weights(path)
    shared = _shared(params)
    copied = set()
    for name, stored in found:
        if name in params:
            _copy_layer(params[name], stored, shared[name], f"layer '{name}' in '{path}'")
            copied.add(name)
        else:
            log.info(f"Ignoring source layer {name}")
    if params and not copied:
        raise ValueError(
            f"'{path}' has weights for none of the net's layers: it names "
            f"{_some([name for name, _ in found])}, the net {_some(list(params))}"
        )
    for name in params:
        if whole and name not in copied and len(shared[name]) < len(params[name]):
            raise ValueError(f"'{path}' has no weights for layer '{name}': they are another net's")


def _shared(params: Parameters) -> dict[str, set[int]]:
    """Return the indices of each layer's blobs that an earlier layer owns."""
    owned: set[int] = set()
    shared: dict[str, set[int]] = {}
    for name, blobs in params.items():
        shared[name] = {index for index, blob in enumerate(blobs) if id(blob.parameter) in owned}
        owned.update(id(blob.parameter) for blob in blobs)
    return shared


def _copy_layer(
    blobs: Sequence[ParameterBlob],
    stored: Mapping[int, StoredBlob],
    shared: set[int],
    where: str,
) -> None:
    """Fill a layer's blobs; those that another layer owns may be missing in the file."""
    if not set(range(len(blobs))) - shared <= set(stored) <= set(range(len(blobs))):
        raise ValueError(f"{where} has {len(stored)} blobs, the net's has {len(blobs)}")
    for index, source in stored.items():
        blob = blobs[index]
        if _squeezed(source.shape) != _squeezed(blob.shape):
            raise ValueError(
                f"{where}: blob {index} has shape {source.shape}, the net's has {blob.shape}; "
                "to learn this layer from scratch, give it another name"
            )
        source.copy_to(blob.data)


def _some(names: Sequence[str]) -> str:
    """Return the first few names, for a message."""
    few = ", ".join(f"'{name}'" for name in names[:3])
    return f"{few}, ..." if len(names) > 3 else few or "none"


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape without leading ones, as old files pad it to four axes."""
    sizes = list(shape)
    while sizes and sizes[0] == 1:
        sizes.pop(0)
    return tuple(sizes)


def save(net: Net, path: str | Path, write_diff: bool) -> None:
    """Write a .caffemodel, with gradients if asked for. OSError where it cannot be written."""
    layers = [net.params.get(node.name, []) for node in net.graph.nodes]
    diffs = [[blob.diff for blob in blobs] for blobs in layers] if write_diff else []
    data = [[blob.data for blob in blobs] for blobs in layers]
    binary_snapshot.save_weights(path, net.to_param(), data, diffs)


def save_hdf5(net: Net, path: str | Path, write_diff: bool) -> None:
    """Write a .caffemodel.h5, with gradients if asked for.

    A layer without weights gets an empty folder, and a blob that an earlier layer owns is left out,
    as BVLC Caffe does. Raises ImportError without h5py, or OSError where it cannot be written.
    """
    shared = _shared(net.params)
    data, diffs = [], []
    for node in net.graph.nodes:
        blobs = dict(enumerate(net.params.get(node.name, [])))
        own = {i: blob for i, blob in blobs.items() if i not in shared.get(node.name, ())}
        data.append((node.name, {i: blob.data for i, blob in own.items()}))
        if write_diff:
            diffs.append((node.name, {i: blob.diff for i, blob in own.items()}))
    hdf5_snapshot.save_weights(path, data, diffs)


def share(net: Net, other: Net) -> None:
    """Let `net` use the parameters of the layers of the same name in `other`, from now on.

    Raises ValueError where their shapes differ.
    """
    for runtime in net.executor.layers:
        node = runtime.node
        if node.name not in other.params:
            continue
        ours, theirs = net.params.get(node.name, []), other.params[node.name]
        shapes = [[blob.shape for blob in blobs] for blobs in (ours, theirs)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"layer '{node.name}': its blobs have shapes {shapes[0]}, in the net to share with "
                f"{shapes[1]}; do both nets get inputs of one size?"
            )
        runtime.layer.parameters = [blob.parameter for blob in theirs]
        replaced = {id(o.parameter): t.parameter for o, t in zip(ours, theirs)}
        for learned in net.learned:
            learned.parameter = replaced.get(id(learned.parameter), learned.parameter)
        net.params[node.name] = list(theirs)
