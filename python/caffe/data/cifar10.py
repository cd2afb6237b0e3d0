"""CIFAR-10 (Krizhevsky, 2009): its binary version to LMDBs."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe.data.datum import array_to_datum
from caffe.data.lmdb_writer import LmdbWriter
from caffe.data.mean import MeanSum
from caffe.progress import Progress

SETS = {
    "train": [f"data_batch_{number}.bin" for number in range(1, 6)],
    "test": ["test_batch.bin"],
}
LABELS = "batches.meta.txt"
_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32  # a label, then the pixels
CLASSES = 10


def read_files(source: str | Path) -> dict[str, bytes]:
    """Return the content of the six batches, and of the list of labels where it is there, by name.

    Args:
        source: cifar-10-binary.tar.gz, or a folder with its files, at any depth.

    Raises:
        FileNotFoundError: `source` or one of the batches is missing.
        ValueError: a damaged tar file, or the version for Python, which is pickled.
    """
    wanted = [name for names in SETS.values() for name in names]
    found: dict[str, bytes] = {}
    others: set[str] = set()
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"'{source}' does not exist")
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            others.add(file.name)
            if file.name in (*wanted, LABELS):
                found.setdefault(file.name, file.read_bytes())
    else:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    name = Path(member.name).name
                    others.add(name)
                    file_in = archive.extractfile(member) if member.isfile() else None
                    if file_in is not None and name in (*wanted, LABELS):
                        found[name] = file_in.read()
        except (tarfile.TarError, EOFError, OSError) as error:
            raise ValueError(f"'{source}' is no tar file, or is cut off: {error}") from error
    for name in wanted:
        if name not in found and Path(name).stem in others:
            raise ValueError(
                f"'{source}' is the version for Python, which is pickled, and could run any code: "
                "get the binary version, cifar-10-binary.tar.gz"
            )
        if name not in found:
            raise FileNotFoundError(f"no file '{name}' in '{source}'")
    return found


def parse_batch(content: bytes, name: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return labels (N) and images (N x 3 x 32 x 32) of a batch.

    Raises:
        ValueError: no whole number of records, or a label above 9.
    """
    if not content or len(content) % _RECORD:
        raise ValueError(
            f"'{name}' has {len(content)} bytes, no multiple of {_RECORD}; was it cut off?"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    labels = rows[:, 0]
    if labels.max() >= CLASSES:
        bad = int(np.argmax(labels >= CLASSES))
        raise ValueError(f"'{name}': record {bad} has label {labels[bad]}, needs to be 0 to 9")
    return labels, rows[:, 1:].reshape(-1, *_SHAPE)


def write_set(files: dict[str, bytes], part: str, out: Path, mean: MeanSum | None) -> int:
    """Write the batches of "train" or "test" to an LMDB; returns the number of records.

    The keys are those of BVLC Caffe's, five digits; so is the order of the channels: red, green,
    blue, as the files have them. The images are added to `mean`.

    Raises:
        ValueError: a damaged batch.
        OSError: the database cannot be written.
    """
    batches = [parse_batch(files[name], name) for name in SETS[part]]
    labels = np.concatenate([batch[0] for batch in batches])
    images = np.concatenate([batch[1] for batch in batches])
    with LmdbWriter(out) as writer, Progress(len(images), "images") as progress:
        for number, image in enumerate(images):
            progress.update(number)
            datum = array_to_datum(image, int(labels[number]))
            writer.put(f"{number:05}", datum.SerializeToString())
            if mean is not None:
                mean.add(image)
    return len(images)
