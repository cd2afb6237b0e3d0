"""Loading CaffeNet's weights (233 MiB): time against reading the plain file, and memory besides.

    python benchmarks/load_weights.py

Each format is loaded into a net that is already there. `memory` is what the process's resident peak
(VmHWM) grows by meanwhile; a second copy of the file would show as its size.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import caffe
from caffe import prototxt, wire
from caffe.proto import caffe_pb2 as pb
from caffe.report.measure import peak_resident_bytes
from common import ROOT, heading, markdown

MIB = 2**20


def main() -> None:
    """Write the files, load them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    net = caffe.Net(
        prototxt.read_net(ROOT / "models/bvlc_reference_caffenet/deploy.prototxt"), caffe.TEST
    )
    rows = [["file", "MiB", "load", "read", "load / read", "memory"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights")
        for name, save in (("current", net.save), ("V1", lambda p: save_v1(net, p)),
                           ("HDF5", net.save_hdf5)):  # fmt: skip
            try:
                save(path)
            except ImportError as error:
                print(f"{name}: {error}")
                continue
            rows.append([name, *measure(net, path, rounds)])
    print("\n".join([*heading(), *markdown(rows)]))


def measure(net: caffe.Net, path: Path, rounds: int) -> list[str]:
    """Return a row of the table: medians, load and read in turns."""
    size = path.stat().st_size
    buffer = np.empty(size, np.uint8)
    buffer.fill(0)  # its pages are there before the clock runs

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            left = memoryview(buffer)
            while left:
                left = left[file.readinto(left) :]

    read()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM starts anew
    before = peak_resident_bytes()
    net.copy_from(path)
    grown = peak_resident_bytes() - before
    loads, reads = [], []
    for _ in range(rounds):
        loads.append(seconds(lambda: net.copy_from(path)))
        reads.append(seconds(read))
    load, plain = statistics.median(loads), statistics.median(reads)
    return [
        f"{size / MIB:.0f}",
        f"{load * 1e3:.0f} ms",
        f"{plain * 1e3:.0f} ms",
        f"{load / plain:.2f}",
        f"{grown / MIB:.1f} MiB",
    ]


def seconds(what: Callable[[], None]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def save_v1(net: caffe.Net, path: Path) -> None:
    """Write the weights as files of 2014 have them: V1 layers, blobs with four sizes."""
    with path.open("wb") as file:
        for name, blobs in net.params.items():
            layer = pb.V1LayerParameter(name=name).SerializeToString()
            for blob in blobs:
                sizes = [1] * (4 - len(blob.shape)) + list(blob.shape)
                head = pb.BlobProto(
                    num=sizes[0], channels=sizes[1], height=sizes[2], width=sizes[3]
                ).SerializeToString()
                data = blob.data.tobytes()
                body = head + wire.header(5, len(data)) + data
                layer += wire.header(6, len(body)) + body
            file.write(wire.header(2, len(layer)) + layer)


if __name__ == "__main__":
    main()
