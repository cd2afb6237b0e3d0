"""`caffe detect`: scores of windows of images."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from caffe import log
from caffe.atomic_file import write_atomically
from caffe.cli.common import arguments, required
from caffe.cli.flags import Flag, Flags, UsageError
from caffe.cli.image_nets import IMAGE_FLAGS, image_net
from caffe.detector import Detection, Detector
from caffe.file_kind import require_file
from caffe.net_inputs import input_channels

USAGE = "caffe detect INPUT OUTPUT.csv -model_def FILE -pretrained_model FILE FLAGS"
FLAGS = (
    *IMAGE_FLAGS,
    Flag("crop_mode", "list", "where windows come from", ("list", "selective_search")),
    Flag("context_pad", 16, "pixels of the net's input around each window"),
)
_EDGES = ("ymin", "xmin", "ymax", "xmax")


def run(flags: Flags) -> int:
    """Score windows.

    INPUT is a table with the columns filename, ymin, xmin, ymax, xmax; for selective_search, lines
    with the names of images. OUTPUT is that table with a column a class.

    Raises:
        UsageError: flags or files that make no sense.
        ImportError: selective_search without its module.
        ValueError, OSError, caffe.Error: whatever is wrong with the files or the net.
    """
    source, target = arguments(flags, 2, USAGE)
    if Path(target).suffix != ".csv":
        raise UsageError(f"'{target}' needs to end in .csv, the one format that is written")
    net = image_net(flags, input_channels(required(flags, "model_def", "the net prototxt")))
    require_file(source, "input")
    pad = flags.number("context_pad")
    detector = Detector(net.model, net.weights, context_pad=pad, **net.options)
    if flags.text("crop_mode") == "list":
        found = detector.detect_windows(_windows(Path(source)))
    else:
        names = [line.strip() for line in Path(source).read_text(encoding="utf-8").splitlines()]
        found = detector.detect_selective_search([name for name in names if name])
    write_atomically(target, _table(found).encode())
    log.info(f"Processed {len(found)} windows, saved to {target}")
    return 0


def _windows(path: Path) -> list[tuple[str, list[tuple[float, ...]]]]:
    """Read the windows of each image, in the order of the table.

    Raises ValueError for a table without the columns, or with something else than numbers; says
    where.
    """
    windows: dict[str, list[tuple[float, ...]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in ("filename", *_EDGES) if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(
                f"'{path}' has no column {', '.join(missing)}: it needs filename, "
                f"{', '.join(_EDGES)}"
            )
        for row in reader:
            try:
                box = tuple(float(row[name]) for name in _EDGES)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{path}:{reader.line_num}: {', '.join(_EDGES)} need to be numbers"
                ) from None
            windows.setdefault(row["filename"], []).append(box)
    return list(windows.items())


def _table(found: Sequence[Detection]) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    classes = len(found[0]["prediction"])
    writer.writerow(["filename", *_EDGES, *(f"class{index}" for index in range(classes))])
    for one in found:
        scores = (f"{score:.9g}" for score in one["prediction"])
        writer.writerow([one["filename"], *(f"{edge:g}" for edge in one["window"]), *scores])
    return file.getvalue()
