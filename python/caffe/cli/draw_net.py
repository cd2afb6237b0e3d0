"""`caffe draw_net`: a picture of a net."""

from __future__ import annotations

from caffe.cli.common import arguments
from caffe.cli.flags import Flag, Flags
from caffe.draw import draw_net_to_file
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_net

USAGE = "caffe draw_net MODEL PICTURE FLAGS"
_PHASES = {"ALL": None, "TRAIN": pb.TRAIN, "TEST": pb.TEST}
FLAGS = (
    Flag("rankdir", "LR", "direction of the graph", ("LR", "RL", "TB", "BT")),
    Flag("phase", "ALL", "which layers to draw", tuple(_PHASES)),
    Flag("display_lrm", False, "write learning rate multipliers"),
)


def run(flags: Flags) -> int:
    """Draw; the ending of PICTURE is the format.

    Raises:
        UsageError: not two files.
        ImportError, FileNotFoundError: pydot, Graphviz or the net is missing.
        ValueError, OSError: the net makes no sense, or the picture cannot be written.
    """
    model, picture = arguments(flags, 2, USAGE)
    draw_net_to_file(
        read_net(model),
        picture,
        flags.text("rankdir"),
        _PHASES[flags.text("phase")],
        flags.on("display_lrm"),
    )
    print(picture)
    return 0
