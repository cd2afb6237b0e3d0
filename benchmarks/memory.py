"""Memory and time of training with and without compression, against PyTorch, net by net.

    python benchmarks/photographs.py                     # once; without it, Fashion-MNIST enlarged
    python benchmarks/memory.py -out out/memory.jsonl    # an hour on two cores; needs torch
    python benchmarks/memory.py -net resnet50,vgg16 -mode "ADAPTIVE;NONE" -batch 8 -steps 12
    python benchmarks/memory.py -out out/memory.jsonl -table overview    # of what is in the file

Each configuration is a process of its own. Its figures become a line of the file -out, and what is
there already is not measured again: delete lines to repeat them. Tables go to standard output, the
memory over one iteration to a PNG a net beside the file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import ROOT, heading
from memory_report import by_mode, overview, plot, tables
from photographs import FOLDER, write_crops


@dataclass(frozen=True)
class Configuration:
    """One way to train."""

    name: str
    framework: str  # "comet" or "pytorch", the functions of memory_worker.py
    compression: str = ""  # text of compression_param; {slice} is -slice
    variant: str = ""  # of PyTorch: eager, checkpoints, micro-batches


CONFIGURATIONS = [
    Configuration("NONE", "comet", "mode: NONE"),
    Configuration("LOSSLESS", "comet", "mode: LOSSLESS"),
    # A bound that ADAPTIVE might choose; the default of 1e-3 is where that starts.
    Configuration("FIXED", "comet", "mode: FIXED error_bound: 0.05"),
    Configuration("ADAPTIVE", "comet", "mode: ADAPTIVE"),
    Configuration("ADAPTIVE, slices", "comet", "mode: ADAPTIVE slice: {slice}"),
    Configuration("PyTorch", "pytorch", variant="eager"),
    Configuration("PyTorch, checkpoints", "pytorch", variant="checkpoints"),
    Configuration("PyTorch, micro-batches", "pytorch", variant="micro-batches"),
]

#: Net -> batch size, side of the images.
NETS = {
    "bvlc_reference_caffenet": (64, 227),
    "vgg16": (16, 224),
    "resnet18": (32, 224),
    "resnet50": (16, 224),
    "bvlc_googlenet": (32, 224),
    "efficientnet_b0": (16, 224),
}
#: Tables of a file's records, by what -table says.
TABLES = {"full": tables, "overview": overview, "modes": by_mode}
CROPS = 256  # images that a run goes through, over and over
MOST_STEPS = 20


def measure(configuration: Configuration, task: dict[str, Any]) -> dict[str, Any]:
    """Run one configuration in a process of its own; returns its figures, or its `error`."""
    worker = str(Path(__file__).with_name("memory_worker.py"))
    job = {
        "framework": configuration.framework,
        "compression": configuration.compression,
        "variant": configuration.variant,
        **task,
    }
    done = subprocess.run(
        [sys.executable, worker, json.dumps(job)], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return figures
    if done.returncode < 0:
        return {"error": f"killed by signal {-done.returncode}; 9 mostly means out of memory"}
    last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
    return {"error": "".join(last) or f"exit status {done.returncode}"}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def main() -> None:
    """Measure what is not in the file yet; print tables, draw pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [configuration.name for configuration in CONFIGURATIONS]
    parser.add_argument("-net", default=",".join(NETS), help="nets, separated by commas")
    parser.add_argument("-mode", default=";".join(names), help="configurations, separated by ;")
    parser.add_argument("-batch", type=int, help="images a step, instead of the nets' own numbers")
    parser.add_argument("-steps", type=int, default=12, help=f"at most {MOST_STEPS}")
    parser.add_argument("-slice", type=int, default=4, help="images in a micro-batch or slice")
    parser.add_argument("-threads", type=int, default=2)
    parser.add_argument("-images", type=Path, default=FOLDER, help="folder of photographs")
    parser.add_argument("-out", type=Path, default=ROOT / "out" / "memory.jsonl")
    parser.add_argument("-table", choices=TABLES, help="measure nothing; print this of the file")
    given = parser.parse_args()
    if given.table:
        print(*heading(), *TABLES[given.table](read(given.out)), sep="\n")
        return
    nets = given.net.split(",")
    modes = [name.strip() for name in given.mode.split(";")]
    for kind, words, known in (("net", nets, NETS), ("mode", modes, names)):
        if not set(words) <= set(known):
            parser.error(f"-{kind}: unknown {set(words) - set(known)}; known are {list(known)}")
    if not 4 <= given.steps <= MOST_STEPS:
        parser.error(f"-steps is {given.steps}, needs 4 to {MOST_STEPS}")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    wanted = []
    for net in nets:
        batch, side = NETS[net]
        with tempfile.TemporaryDirectory() as folder:
            crops = Path(folder, "crops.npz")
            images = write_crops(crops, given.images, side, CROPS)
            for configuration in CONFIGURATIONS:
                if configuration.name not in modes:
                    continue
                task = {
                    "net": net,
                    "batch": given.batch or batch,
                    "steps": given.steps,
                    "slice": given.slice,
                    "threads": given.threads,
                }
                key = {"mode": configuration.name, "images": images, **task}
                record = next((r for r in read(given.out) if key.items() <= r.items()), None)
                if record is None:
                    record = key | measure(configuration, {**task, "crops": str(crops)})
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
                note = record.get("error") or f"{record['seconds']:.2f} s a step"
                print(f"{net}, {configuration.name}: {note}", file=sys.stderr, flush=True)
                wanted.append(record)
        picture = given.out.with_name(f"{given.out.stem}_{net}.png")
        plot([record for record in wanted if record["net"] == net], picture)
        print(f"memory over one iteration: {picture}", file=sys.stderr, flush=True)
    print(*heading(), *tables(wanted), sep="\n")


if __name__ == "__main__":
    main()
