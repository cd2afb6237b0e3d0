"""One contestant of speed.py, a process of its own: runs training iterations when told to.

Prints a line when ready; then, for each number of iterations read from standard input, one JSON
list of the milliseconds that each took.

    python benchmarks/speed_worker.py CONTESTANT MODEL "N C H W" THREADS
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

WARM_UP = 5  # iterations; within them ADAPTIVE has set its bounds three times


def comet(mode: str, model: str, shape: str, threads: int) -> Callable[[], object]:
    """Return what runs one iteration in COMET."""
    import caffe  # noqa: PLC0415 - a contestant must not pay for the other's libraries
    from caffe.proto import caffe_pb2 as pb  # noqa: PLC0415
    from common import training_solver  # noqa: PLC0415

    caffe.set_num_threads(threads)
    param = training_solver(model, "RandomBatch", shape)
    param.compression_param.mode = getattr(pb.CompressionParameter, mode)
    param.compression_param.display = 0
    solver = caffe.get_solver(param)
    return lambda: solver.step(1)


def pytorch(model: str, shape: str, threads: int) -> Callable[[], object]:
    """Return what runs one iteration in PyTorch."""
    from common import training_solver  # noqa: PLC0415

    os.environ.pop("GOMP_SPINCOUNT", None)  # ours, which PyTorch's users do not set
    import torch  # noqa: PLC0415

    from torch_net import TorchNet  # noqa: PLC0415

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    sizes = [int(word) for word in shape.split()]
    net = TorchNet(training_solver(model, "RandomBatch", shape).net_param, tuple(sizes[1:]))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)
    data, labels = torch.randn(sizes), torch.randint(10, sizes[:1])

    def iterate() -> None:
        optimizer.zero_grad()
        net(data, labels).backward()
        optimizer.step()

    return iterate


def main() -> None:
    """Serve standard input until it ends."""
    contestant, model, shape, threads = sys.argv[1:5]
    if contestant == "PyTorch":
        iterate = pytorch(model, shape, int(threads))
    else:
        iterate = comet(contestant, model, shape, int(threads))
    for _ in range(WARM_UP):
        iterate()
    print("ready", flush=True)
    for line in sys.stdin:
        took = []
        for _ in range(int(line)):
            began = time.perf_counter()
            iterate()
            took.append(1e3 * (time.perf_counter() - began))
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
