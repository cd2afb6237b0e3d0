"""Copies weights from a .caffemodel into the layers of a net that have the same names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe import log
from caffe.blob import ParameterBlob
from caffe.snapshot import load_weights


def copy_weights(params: Mapping[str, list[ParameterBlob]], path: str | Path) -> set[str]:
    """Copy what the file has for the layers of `params`; returns the names of those it had.

    Raises FileNotFoundError, or ValueError for a wrong file, shapes that differ, or a file that has
    weights for none of the layers.
    """
    found = load_weights(path)
    copied = set()
    for name, arrays in found:
        if name in params:
            _copy_layer(params[name], arrays, f"layer '{name}' in '{path}'")
            copied.add(name)
        else:
            log.info(f"Ignoring source layer {name}")
    if params and not copied:
        raise ValueError(
            f"'{path}' has weights for none of the net's layers: it names "
            f"{_some([name for name, _ in found])}, the net {_some(list(params))}"
        )
    return copied


def _copy_layer(
    blobs: Sequence[ParameterBlob], arrays: Sequence[npt.NDArray[np.float32]], where: str
) -> None:
    if len(arrays) != len(blobs):
        raise ValueError(f"{where} has {len(arrays)} blobs, the net's has {len(blobs)}")
    for index, (array, blob) in enumerate(zip(arrays, blobs)):
        if _squeezed(array.shape) != _squeezed(blob.shape):
            raise ValueError(
                f"{where}: blob {index} has shape {array.shape}, the net's has {blob.shape}; "
                "to learn this layer from scratch, give it another name"
            )
        blob.data[...] = array.reshape(blob.shape)


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
