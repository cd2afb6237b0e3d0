"""What the benchmarks share: the nets with a data layer of their own, and the tables."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from caffe import prototxt
from caffe.proto import caffe_pb2 as pb

ROOT = Path(__file__).resolve().parents[1]


def training_solver(model: str, data_layer: str, options: str = "") -> pb.SolverParameter:
    """Return the solver of models/<model>, without tests, fed by a class of sources.py.

    Args:
        model: folder of the model.
        data_layer: class in sources.py.
        options: its param_str.
    """
    solver = prototxt.read_solver(ROOT / "models" / model / "solver.prototxt")
    net = prototxt.read_net(ROOT / "models" / model / "train_val.prototxt")
    for field in ("net", "test_iter", "test_interval", "snapshot", "snapshot_prefix"):
        solver.ClearField(field)
    solver.net_param.CopyFrom(fed_net(net, data_layer, options))
    solver.display = 0
    solver.snapshot_after_train = False
    return solver


def fed_net(net: pb.NetParameter, data_layer: str, options: str) -> pb.NetParameter:
    """Return a copy of `net`, without Accuracy, that a class of sources.py feeds."""
    layers = [layer for layer in net.layer if layer.type not in ("Data", "Accuracy")]
    source = pb.LayerParameter(name="data", type="Python", top=["data", "label"])
    source.python_param.module = "sources"
    source.python_param.layer = data_layer
    source.python_param.param_str = options
    fed = pb.NetParameter(name=net.name)
    fed.layer.extend([source, *layers])
    return fed


def heading() -> list[str]:
    """Markdown lines that say where, how and when the figures below were measured."""
    model = platform.processor()
    cores = set()
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        elif key.strip() == "processor":
            cores.add(value)
    script = Path(sys.argv[0]).resolve().relative_to(ROOT)
    command = " ".join(["python", str(script), *sys.argv[1:]])
    return [f"Machine: {model}, {len(cores)} cores. {time.strftime('%Y-%m-%d')}. `{command}`", ""]


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
