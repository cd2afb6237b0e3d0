"""Images a second that the layer Data gives on one core, and that a plain loop in NumPy does.

    python benchmarks/data_speed.py -out docs/data-speed.md

256x256 images in colour from an LMDB, as pixels and as JPEG files, cropped to 227x227 at random
places, mirrored at random, and a mean image subtracted. The process keeps to one core (as with
taskset), its background threads too. The databases, made for this, are read from the page cache.
The images are noise with the spectrum of photographs. Both loops take turns; of the rounds, the
median counts. Processor time is measured, which on an idle core is the time that passes: other
work on the machine does not count.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lmdb
import numpy as np
import numpy.typing as npt
from PIL import Image

import caffe
from caffe import layers as L
from caffe import params as P
from caffe import prepare
from caffe.data.datum import array_to_datum
from caffe.data.lmdb_writer import LmdbWriter
from caffe.proto import caffe_pb2 as pb
from common import heading, markdown

SIDE, CROP, BATCH = 256, 227, 64
JPEG_QUALITY = 90
TITLE = "# How fast images are read"
LEGEND = """\
Images a second of processor time on one core, all threads included: 256x256 images in colour from
an LMDB in the page cache, cropped to 227x227 at random places, mirrored at random, a mean image
subtracted, in batches of 64. JPEG records are files of quality 90. The NumPy loop reads with the
same packages (lmdb, protobuf, Pillow) and does the rest image by image. Medians of rounds in
turns; written by `benchmarks/data_speed.py`."""


def main() -> None:
    """Make the databases, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-images", type=int, default=1024)
    parser.add_argument("-rounds", type=int, default=5)
    parser.add_argument("-out", type=Path, help="file to write; standard output by default")
    given = parser.parse_args()
    keep_to_one_core()
    rows = [["records", "KiB each", "layer Data", "NumPy loop", "Data / NumPy"]]
    with tempfile.TemporaryDirectory() as folder:
        for name, encode in (("pixels", pixels), ("JPEG", jpeg)):
            database, mean = Path(folder, name), Path(folder, f"{name}.binaryproto")
            size = make_database(database, given.images, encode)
            prepare.mean(database, mean)
            net = data_net(database, mean)
            # A process opens an LMDB once only: the other reader has a copy.
            loop = NumpyLoop(Path(shutil.copytree(database, f"{database}_copy")), mean)
            contestants = (net.forward, loop.forward)
            speeds: list[list[float]] = [[], []]
            for forward in contestants:
                measure(forward, given.images)
            for _ in range(given.rounds):
                for times, forward in zip(speeds, contestants):
                    times.append(measure(forward, given.images))
            net.close()
            loop.close()
            ours, numpys = map(statistics.median, speeds)
            ratio = f"{ours / numpys:.2f}"
            rows.append([name, f"{size / 1024:.0f}", f"{ours:.0f}/s", f"{numpys:.0f}/s", ratio])
    text = "\n".join([TITLE, "", *heading(), *markdown(rows), "", LEGEND]) + "\n"
    if given.out is None:
        print(text, end="")
    else:
        given.out.write_text(text, encoding="utf-8")


def keep_to_one_core() -> None:
    """Start this script anew on one core, unless that has been done: threads are counted early."""
    cores = os.sched_getaffinity(0)
    if len(cores) > 1 or os.environ.get("OMP_NUM_THREADS") != "1":
        os.sched_setaffinity(0, {max(cores)})
        os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])


def measure(forward: Callable[[], object], images: int) -> float:
    """Return images a second of processor time, of as many whole batches as there are images."""
    batches = max(images // BATCH, 1)
    began = time.process_time()
    for _ in range(batches):
        forward()
    return batches * BATCH / (time.process_time() - began)


def pixels(image: npt.NDArray[np.uint8], label: int) -> pb.Datum:
    """Return a record of pixels."""
    return array_to_datum(image, label)


def jpeg(image: npt.NDArray[np.uint8], label: int) -> pb.Datum:
    """Return a record that is a JPEG file."""
    file = io.BytesIO()
    colours = np.ascontiguousarray(image[::-1].transpose(1, 2, 0))
    Image.fromarray(colours).save(file, "JPEG", quality=JPEG_QUALITY)
    return pb.Datum(
        channels=3, height=SIDE, width=SIDE, encoded=True, data=file.getvalue(), label=label
    )


def make_database(path: Path, count: int, record: Callable[..., pb.Datum]) -> float:
    """Write `count` images; returns the mean size of a record in bytes."""
    rng = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None])
    frequency[0, 0] = 1
    total = 0
    with LmdbWriter(path) as writer:
        for i in range(count):
            noise = np.fft.rfft2(rng.standard_normal((3, SIDE, SIDE)))
            noise[1:] = (noise[1:] + 4 * noise[:1]) / 5  # colours go together
            field = np.fft.irfft2(noise / frequency, (SIDE, SIDE))
            image = np.clip(128 + 50 * field / field.std(), 0, 255).astype(np.uint8)
            content = record(image, i % 1000).SerializeToString()
            writer.put(f"{i:08}", content)
            total += len(content)
    return total / count


def data_net(database: Path, mean: Path) -> caffe.Net:
    """Return a net of one layer Data, as it trains."""
    n = caffe.NetSpec()
    n.data, n.label = L.Data(
        source=str(database),
        backend=P.Data.LMDB,
        batch_size=BATCH,
        transform_param={"crop_size": CROP, "mirror": True, "mean_file": str(mean)},
        ntop=2,
    )
    return caffe.Net(n.to_proto(), caffe.TRAIN)


class NumpyLoop:
    """What one would write without a framework."""

    def __init__(self, database: Path, mean: Path) -> None:
        """Open the database."""
        self._environment = lmdb.open(str(database), readonly=True, lock=False)
        self._transaction = self._environment.begin()
        self._cursor = self._transaction.cursor()
        blob = pb.BlobProto.FromString(mean.read_bytes())
        self._mean = np.array(blob.data, np.float32).reshape(3, SIDE, SIDE)
        self._rng = np.random.default_rng(1)
        self.data = np.empty((BATCH, 3, CROP, CROP), np.float32)
        self.labels = np.empty(BATCH, np.float32)

    def forward(self) -> None:
        """Fill the next batch."""
        for i in range(BATCH):
            if not self._cursor.next():
                self._cursor.first()
            datum = pb.Datum.FromString(self._cursor.value())
            if datum.encoded:
                with Image.open(io.BytesIO(datum.data)) as file:
                    image = np.asarray(file.convert("RGB"))[:, :, ::-1].transpose(2, 0, 1)
            else:
                image = np.frombuffer(datum.data, np.uint8).reshape(3, SIDE, SIDE)
            top, left = self._rng.integers(0, SIDE - CROP + 1, 2)
            window = np.s_[:, top : top + CROP, left : left + CROP]
            cropped = image[window].astype(np.float32) - self._mean[window]
            self.data[i] = cropped[:, :, ::-1] if self._rng.integers(2) else cropped
            self.labels[i] = datum.label

    def close(self) -> None:
        """Close the database."""
        self._transaction.abort()
        self._environment.close()


if __name__ == "__main__":
    main()
