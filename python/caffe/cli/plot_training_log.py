"""`caffe plot_training_log`: a chart of training logs."""

from __future__ import annotations

from caffe.cli.flags import Flag, Flags, UsageError
from caffe.training_chart import chart_list, plot_training_log

USAGE = (
    "caffe plot_training_log CHART_TYPE PICTURE LOGFILE...\nwhere CHART_TYPE is\n  "
    + chart_list().replace(", ", "\n  ")
)
FLAGS: tuple[Flag, ...] = ()


def run(flags: Flags) -> int:
    """Draw.

    Raises:
        UsageError: words that are missing or make no sense.
        ImportError: matplotlib is missing.
        ValueError, OSError: what is wrong with the logs, or the picture cannot be written.
    """
    if len(flags.arguments) < 3:
        raise UsageError("give a CHART_TYPE, a PICTURE and LOGFILEs (caffe help plot_training_log)")
    number, picture, *logs = flags.arguments
    if not number.isdigit():
        raise UsageError(f"CHART_TYPE is '{number}', needs to be a number; {chart_list()}")
    plot_training_log(int(number), picture, logs)
    print(picture)
    return 0
