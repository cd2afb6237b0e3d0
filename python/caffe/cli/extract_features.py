"""`caffe extract_features`: what a net makes of its data, as databases."""

from __future__ import annotations

from caffe import log
from caffe.cli.common import OVERWRITE
from caffe.cli.flags import Flags, UsageError
from caffe.data.databases import WRITERS
from caffe.feature_extraction import extract_features
from caffe.file_kind import require_file
from caffe.mode import set_mode_gpu

USAGE = """caffe extract_features WEIGHTS MODEL BLOB[,BLOB...] DB[,DB...] BATCHES DB_TYPE [CPU|GPU]
  WEIGHTS  .caffemodel
  MODEL    net prototxt with a data layer
  DB_TYPE  lmdb or leveldb"""
FLAGS = (OVERWRITE,)
_LEAST, _MOST = 6, 8  # words; the last is a device


def run(flags: Flags) -> int:
    """Extract.

    Raises:
        UsageError: words that are missing or make no sense.
        ValueError, OSError, caffe.Error: whatever is wrong with the files or the run.
    """
    words = flags.arguments
    if not _LEAST <= len(words) <= _MOST:
        raise UsageError(f"{len(words)} arguments given, needs 6: {USAGE.splitlines()[0]}")
    weights, model, blobs, targets, batches, kind, *device = words
    if kind.lower() not in WRITERS:
        raise UsageError(f"DB_TYPE is '{kind}', but must be one of {', '.join(WRITERS)}")
    if not batches.isdigit() or int(batches) < 1:
        raise UsageError(f"BATCHES is '{batches}', needs to be 1 or more")
    if device and device[0].upper() == "GPU":
        set_mode_gpu()
    elif device and device[0].upper() != "CPU":
        raise UsageError(f"'{device[0]}' is neither CPU nor GPU")
    names, paths = blobs.split(","), targets.split(",")
    if len(names) != len(paths) or len(set(paths)) != len(paths):
        raise UsageError(f"{len(names)} blobs need as many databases, not {len(set(paths))}")
    require_file(model, "model")
    count = extract_features(
        model,
        weights,
        dict(zip(names, paths)),
        int(batches),
        overwrite=flags.on("overwrite"),
        backend=kind,
    )
    for name in names:
        log.info(f"Extracted features of {count} query images for feature blob {name}")
    log.info("Successfully extracted the features!")
    return 0
