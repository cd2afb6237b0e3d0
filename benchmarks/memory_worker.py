"""One configuration of memory.py, in a process of its own: trains, measures, prints a JSON object.

    python benchmarks/memory_worker.py '{"net": "resnet18", "framework": "comet", ...}'

Every figure is of the last steps, when bounds and statistics have settled; `resident` is of the
whole run, above what the process took with libraries and images loaded.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf import text_format

import caffe
from caffe._core import memory
from common import training_solver
from photographs import Batches, load_crops

SETTLED = 3  # the last steps, that figures are taken of
RATE = 0.1  # of the solver's learning rate, which needs more than a few steps to settle
KEPT = ("raw_activations", "stored_activations", "data")
LEARNED = ("parameters", "parameter_gradients", "history")
Figures = dict[str, Any]


def comet(task: Figures) -> Figures:
    """Train in COMET."""
    caffe.set_num_threads(task["threads"])
    param = training_solver(task["net"], "Crops", f"{task['batch']} {task['crops']}")
    param.random_seed = 1
    param.base_lr *= RATE
    param.ClearField("compression_param")
    text = task["compression"].format(slice=task["slice"])
    text_format.Merge(f"compression_param {{ display: 0 {text} }}", param)
    load_crops(task["crops"])
    empty = resident_now()
    solver = caffe.get_solver(param)
    times, peaks, losses, ratios = [], [], [], []
    for step in range(task["steps"]):
        began = time.perf_counter()
        solver.step(1)
        times.append(time.perf_counter() - began)
        losses.append(solver.loss_window[-1])
        peaks.append(memory.peak())
        if step >= task["steps"] - SETTLED:
            ratios.append(_conv_inputs(solver))
    resident = resident_peak() - empty
    timeline = _timeline(solver)
    peak = max(peaks[-SETTLED:], key=lambda one: one["total"])
    learned = sum(peak["by_kind"][kind] for kind in LEARNED)
    turn = max(i for i, moment in enumerate(timeline) if moment["pass"] == "forward")
    figures = {
        "seconds": statistics.median(times[-SETTLED:]),
        "losses": losses,
        "kept": sum(timeline[turn].get(kind, 0) for kind in KEPT),
        "peak": peak["total"],
        "peak_layer": peak["layer"],
        "peak_with_parameters": peak["total"] + learned,
        "first_peak": peaks[0]["total"],
        "resident": resident,
        "timeline": timeline,
        "rows": [
            [row.blob, row.form, row.raw_bytes, row.stored_bytes, row.error_bound]
            for row in solver.compression.values()
        ],
    }
    if any(raw for raw, _ in ratios):
        figures["conv_raw"] = sum(raw for raw, _ in ratios) // len(ratios)
        figures["conv_stored"] = sum(stored for _, stored in ratios) // len(ratios)
    return figures


def _conv_inputs(solver: Any) -> tuple[int, int]:
    """Return raw and stored bytes of what convolutions read for their weights, less the image."""
    graph = solver.net.graph
    raw = stored = 0
    for report in solver.net.compression_report():
        types = {graph.nodes[reader.layer].type for reader in report.saved.readers}
        if "Convolution" in types and graph.nodes[report.saved.value.producer].bottoms:
            raw += report.raw_bytes
            stored += report.stored_bytes
    return raw, stored


def _timeline(solver: Any) -> list[Figures]:
    """Run one more step; return the live bytes by kind before and after each layer."""
    moments: list[Figures] = []
    names = [node.name for node in solver.net.graph.nodes]

    def note(name: str) -> Callable[[int], None]:
        def take(layer: int) -> None:
            live = {kind: size for kind, size in memory.live().items() if size}
            moments.append({"pass": name, "layer": names[layer], **live})

        return take

    hooks = solver.net.executor.hooks
    for place in ("before_forward", "after_forward", "before_backward", "after_backward"):
        getattr(hooks, place).append(note(place.split("_")[1]))
    solver.step(1)
    return moments


def pytorch(task: Figures) -> Figures:
    """Train in PyTorch."""
    os.environ.pop("GOMP_SPINCOUNT", None)  # ours, which PyTorch's users do not set
    import torch  # noqa: PLC0415 - COMET's processes must not pay for it

    from torch_memory import LiveStorages, saved_bytes  # noqa: PLC0415
    from torch_net import TorchNet  # noqa: PLC0415

    torch.set_num_threads(task["threads"])
    torch.manual_seed(1)
    param = training_solver(task["net"], "Crops", f"{task['batch']} {task['crops']}")
    batches = Batches(task["crops"])
    empty = resident_now()
    net = TorchNet(param.net_param, batches.shape)
    optimizer = torch.optim.SGD(
        net.parameters(), RATE * param.base_lr, param.momentum, weight_decay=param.weight_decay
    )
    run = net.forward_checkpointed if task["variant"] == "checkpoints" else net.forward
    part = task["slice"] if task["variant"] == "micro-batches" else task["batch"]

    def step(turn: Callable[[], None] = lambda: None) -> float:
        images, labels = map(torch.from_numpy, batches.next(task["batch"]))
        optimizer.zero_grad()
        total = 0.0
        for some, theirs in zip(images.split(part), labels.split(part)):
            loss = run(some, theirs) * (len(some) / len(images))
            turn()
            loss.backward()
            total += loss.item()
        optimizer.step()
        return total

    times, losses = [], []
    for _ in range(task["steps"]):
        began = time.perf_counter()
        losses.append(step())
        times.append(time.perf_counter() - began)
    resident = resident_peak() - empty
    figures = {"seconds": statistics.median(times[-SETTLED:]), "losses": losses}
    with LiveStorages(net, optimizer) as storages:
        step(storages.turn)
    figures |= {
        "kept": storages.most_at_turn,
        "peak": storages.peak,
        "peak_with_parameters": storages.peak_with_parameters,
        "resident": resident,
        "timeline": storages.timeline,
    }
    if task["variant"] == "eager":
        images, labels = map(torch.from_numpy, batches.next(task["batch"]))
        figures["saved_tensors"] = saved_bytes(net, lambda: net(images, labels))
    return figures


# -- what the system sees --------------------------------------------------------------------------


def resident_now() -> int:
    """Return the bytes in memory, and let the peak start anew from here."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def resident_peak() -> int:
    """Return the most bytes in memory since resident_now()."""
    return _status("VmHWM")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}: not a Linux with a process file system?")


def main() -> None:
    """Do what the argument says."""
    task = json.loads(sys.argv[1])
    figures = {"comet": comet, "pytorch": pytorch}[task["framework"]](task)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
