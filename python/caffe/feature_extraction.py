"""What a net makes of its data, as databases: the function behind `caffe extract_features`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.data.databases import WRITERS, checked_backend
from caffe.names import suggestion
from caffe.net import Net
from caffe.progress import Progress
from caffe.proto import caffe_pb2 as pb


def extract_features(
    model: str | Path | pb.NetParameter,
    weights: str | Path,
    outputs: Mapping[str, str | Path],
    batches: int,
    *,
    overwrite: bool = False,
    backend: str = "lmdb",
) -> int:
    """Run a net on its own data and write blobs to databases, a record a row.

    A record is a Datum of floats; its key is its number, of ten digits. Its channels, height and
    width are the blob's axes behind the first; a blob of more than four axes is written flat.

    Args:
        model: the net, with a data layer; it is run in the phase TEST.
        weights: its .caffemodel.
        outputs: blob name -> folder of the database.
        batches: how many batches to run.
        overwrite: replace databases that are there.
        backend: their kind, lmdb or leveldb.

    Returns:
        The number of records in each database.

    Raises:
        FileNotFoundError, FileExistsError: an input is missing, or an output is there already.
        ImportError: LevelDBs, and plyvel is not installed.
        ValueError: the net makes no sense, or has no such blob.
        caffe.Error: a layer failed.
    """
    make = WRITERS[checked_backend(backend)]
    net = Net(model, pb.TEST, weights=weights)
    for name in outputs:
        if name not in net.blobs:
            raise ValueError(f"the net has no blob '{name}'{suggestion(name, net.blobs)}")
        if not net.blobs[name].shape:
            raise ValueError(f"blob '{name}' has one value for the whole batch: no features")
    counts = dict.fromkeys(outputs, 0)
    with ExitStack() as stack:
        stack.callback(net.close)
        writers = {
            name: stack.enter_context(make(path, overwrite)) for name, path in outputs.items()
        }
        progress = stack.enter_context(Progress(batches, "batches"))
        for batch in range(batches):
            progress.update(batch)
            net.forward()
            for name, writer in writers.items():
                for row in net.blobs[name].data:
                    writer.put(f"{counts[name]:010}", _datum(row).SerializeToString())
                    counts[name] += 1
    return next(iter(counts.values()), 0)


def _datum(row: npt.NDArray[np.float32]) -> pb.Datum:
    axes = row.shape if row.ndim <= 3 else (row.size,)
    channels, height, width = (*axes, 1, 1, 1)[:3]
    datum = pb.Datum(channels=channels, height=height, width=width)
    datum.float_data.extend(row.ravel().tolist())
    return datum
