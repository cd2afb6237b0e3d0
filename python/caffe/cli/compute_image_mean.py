"""`caffe compute_image_mean`: the mean image of a database."""

from __future__ import annotations

import numpy as np

from caffe import log, prepare
from caffe.cli.common import BACKEND
from caffe.cli.flags import Flags, UsageError
from caffe.data.mean import compute_mean
from caffe.stored_blob import blob_to_array

USAGE = "caffe compute_image_mean FLAGS INPUT_DB [OUTPUT_FILE]"
FLAGS = (BACKEND,)


def run(flags: Flags) -> int:
    """Compute, and write if there is a file to write to.

    Raises:
        UsageError: no database given, or too many words.
        ImportError: a LevelDB, and plyvel is not installed.
        ValueError, OSError: what is wrong with the database or the output.
    """
    if len(flags.arguments) not in (1, 2):
        raise UsageError(f"{len(flags.arguments)} files given: {USAGE}")
    source, *targets = flags.arguments
    mean = compute_mean(source, flags.text("backend"))
    for target in targets:
        prepare.write_mean(mean, target)
        log.info(f"Write to {target}")
    image = blob_to_array(mean)[0]
    log.info(f"Number of channels: {len(image)}")
    for index, channel in enumerate(image):
        value = channel.mean(dtype=np.float64)
        log.info(f"mean_value channel [{index}]: {value:g}")
    return 0
