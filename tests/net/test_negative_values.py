"""Negative values in front of a ReLU: where their bound is wider, and that it holds."""

from __future__ import annotations

import numpy as np
import pytest
from nets import batches, make_solver, train

from caffe import kept_values
from caffe._core import Tensor
from caffe._core.store import StoredActivation
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import parse_net
from caffe.solver import Solver

SHAPE = (8, 3, 24, 24)
FILLER = 'weight_filler { type: "xavier" }'


def convolution(bottom: str, top: str) -> str:
    return f"""
      layer {{ name: "{top}" type: "Convolution" bottom: "{bottom}" top: "{top}"
        convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 {FILLER} }} }}
    """


NORMALISED = (
    convolution("data", "a")
    + """
  layer { name: "bn" type: "BatchNorm" bottom: "a" top: "a" }
  layer { name: "scale" type: "Scale" bottom: "a" top: "s"
    scale_param { bias_term: true filler { type: "uniform" min: 0.5 max: 1.5 } } }
"""
)
RELU = 'layer { name: "relu" type: "ReLU" bottom: "s" top: "r" }'
LEAKY = """
  layer { name: "relu" type: "ReLU" bottom: "s" top: "r" relu_param { negative_slope: 0.1 } }
"""
POOL = """
  layer { name: "pool" type: "Pooling" bottom: "r" top: "p"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
"""
SUM = 'layer { name: "sum" type: "Eltwise" bottom: "s" bottom: "c" top: "e" }'
#: Layers behind the Scale -> whether its negative values' bound is wider.
BODIES = {
    "a ReLU and a convolution": (RELU + convolution("r", "e"), True),
    "a pooled ReLU": (RELU + POOL + convolution("p", "e"), True),
    "a leaky ReLU": (LEAKY + convolution("r", "e"), False),
    "a convolution": (convolution("s", "e"), False),
    "a sum beside the ReLU": (RELU + convolution("r", "c") + SUM, False),
}


def net_of(body: str) -> pb.NetParameter:
    dims = " ".join(f"dim: {size}" for size in SHAPE)
    return parse_net(f"""
      layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ {dims} }} }} }}
      layer {{ name: "label" type: "Input" top: "label" input_param {{ shape {{ dim: 8 }} }} }}
      {NORMALISED} {body}
      layer {{ name: "fc" type: "InnerProduct" bottom: "e" top: "fc"
        inner_product_param {{ num_output: 10 {FILLER} }} }}
      layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }}
    """)


def factor_of(solver: Solver) -> float:
    """What the bound of negative values of the Scale's top is multiplied by."""
    nodes = solver.net.graph.nodes
    (saved,) = [
        saved
        for saved in solver.net.executor.plan.saved.values()
        if nodes[saved.value.producer].name in ("bn", "scale")
    ]
    return saved.negative_factor


@pytest.mark.parametrize("name", BODIES)
def test_where_it_is_wider(name: str) -> None:
    body, wider = BODIES[name]
    net = net_of(body)
    mode = "mode: ADAPTIVE negative_factor: 3"
    assert factor_of(make_solver(net, compression=mode)) == (3 if wider else 1)
    assert factor_of(make_solver(net, compression="mode: ADAPTIVE negative_factor: 1")) == 1
    assert factor_of(make_solver(net, compression="mode: FIXED error_bound: 0.1")) == 1


def test_both_bounds_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[tuple[np.ndarray, np.ndarray, float]] = []
    save = kept_values.ActivationStore.save

    class Watched:
        """The store, which remembers what it was given and what it would give back."""

        def __init__(self) -> None:
            self.store = kept_values.ActivationStore()

        def save(self, tensor: Tensor, *rest: object) -> StoredActivation:
            stored = save(self.store, tensor, *rest)  # type: ignore[arg-type]
            if rest[-1] != 1:
                exact = tensor.numpy().copy()
                restored = self.store.restore(stored).numpy().copy()
                values.append((exact, restored, float(rest[1])))
            return stored

        def __getattr__(self, name: str) -> object:
            return getattr(self.store, name)

    solver = make_solver(
        net_of(BODIES["a ReLU and a convolution"][0]), compression="mode: ADAPTIVE"
    )
    solver.net.executor.kept.store = Watched()  # type: ignore[assignment]
    train(solver, batches(SHAPE, 4))
    assert len(values) == 4
    for exact, restored, bound in values:
        size = np.abs(restored - exact)
        assert size[exact > 0].max() <= bound
        assert bound < size[exact < 0].max() <= 2 * bound
        assert np.array_equal(np.sign(restored), np.sign(exact))


def test_it_takes_fewer_bytes() -> None:
    kept = {}
    for factor in (1, 2):
        compression = f"mode: ADAPTIVE negative_factor: {factor}"
        solver = make_solver(net_of(BODIES["a ReLU and a convolution"][0]), compression=compression)
        train(solver, batches(SHAPE, 4))
        (row,) = [
            report
            for report in solver.net.compression_report()
            if report.saved.negative_factor != 1 or report.saved.value.name == "s"
        ]
        kept[factor] = row.stored_bytes
    assert kept[2] < 0.9 * kept[1]
