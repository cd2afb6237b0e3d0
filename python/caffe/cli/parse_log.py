"""`caffe parse_log`: a training log to two tables."""

from __future__ import annotations

from caffe.cli.common import arguments
from caffe.cli.flags import Flag, Flags
from caffe.training_log import parse_log, save_csv_files

USAGE = "caffe parse_log LOGFILE OUTPUT_DIR FLAGS"
FLAGS = (Flag("delimiter", ",", "between the columns"),)


def run(flags: Flags) -> int:
    """Write OUTPUT_DIR/<name of LOGFILE>.train and .test.

    Raises:
        UsageError: not two files.
        ValueError, OSError: the log is none, or the tables cannot be written.
    """
    path, folder = arguments(flags, 2, USAGE)
    for written in save_csv_files(path, folder, parse_log(path), flags.text("delimiter")):
        print(written)
    return 0
