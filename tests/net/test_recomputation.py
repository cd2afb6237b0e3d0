"""The minimum cut: what is kept and what is worked out again, and that both give the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from google.protobuf import text_format
from nets import batches, make_solver, parameters, small_models, train

from caffe import memory_plan
from caffe._core.store import Form
from caffe.proto import caffe_pb2 as pb
from caffe.recomputation import Decision, Level, Recomputation
from caffe.solver import Solver
from caffe.solver_memory import fixed_bytes

MODELS = small_models()
INPUTS = """
  layer { name: "data" type: "Input" top: "data"
    input_param { shape { dim: 4 dim: 3 dim: 24 dim: 24 } } }
  layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
"""
FILLER = 'weight_filler { type: "xavier" }'
BLOCK = f"""
  layer {{ name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 {FILLER} }} }}
  layer {{ name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }}
  layer {{ name: "scale1" type: "Scale" bottom: "conv1" top: "conv1"
    scale_param {{ bias_term: true }} }}
  layer {{ name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }}
"""
END = """
  layer { name: "fc" type: "InnerProduct" bottom: "%s" top: "fc"
    inner_product_param { num_output: 10 %s } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
"""
CONV2 = """
  layer { name: "conv2" type: "Convolution" bottom: "%s" top: "conv2"
    convolution_param { num_output: 8 kernel_size: 3 pad: 1 %s } }
"""
POOL = """
  layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
    pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
"""


def solver_of(body: str, last: str, mode: str) -> Solver:
    net = pb.NetParameter()
    text_format.Merge(INPUTS + body + END % (last, FILLER), net)
    return make_solver(net, compression=mode)


def forms(solver: Solver) -> dict[str, str]:
    """Writer of each kept value, but for the input's and small ones -> its level."""
    saved = solver.net.executor.plan.saved.values()
    return {
        solver.net.graph.nodes[value.value.producer].name: value.level.name
        for value in saved
        if value.form != Form.RAW and value.value.name != "data"
    }


def test_a_normalised_block_keeps_one_tensor() -> None:
    solver = solver_of(BLOCK + CONV2 % ("conv1", FILLER), "conv2", "mode: ADAPTIVE")
    assert forms(solver) == {"scale1": "BOUNDED_SIGN", "conv2": "BOUNDED"}
    exact = solver_of(BLOCK + CONV2 % ("conv1", FILLER), "conv2", "mode: LOSSLESS")
    assert forms(exact)["bn1"] == "LOSSLESS"
    assert "relu1" not in forms(exact) and "scale1" not in forms(exact)


def test_without_recomputation_each_reader_has_its_own() -> None:
    solver = solver_of(
        BLOCK + CONV2 % ("conv1", FILLER), "conv2", "mode: ADAPTIVE recompute: false"
    )
    kept = {"bn1": "BOUNDED", "relu1": "BOUNDED_SIGN", "conv2": "BOUNDED"}
    assert forms(solver) == kept
    assert solver.net.executor.plan.recipes == {}


def test_the_pooled_output_stands_for_what_was_pooled() -> None:
    body = BLOCK.split('  layer { name: "bn1"', maxsplit=1)[0]
    body += '  layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }' + POOL
    solver = solver_of(body + CONV2 % ("pool1", FILLER), "conv2", "mode: ADAPTIVE")
    assert forms(solver) == {"pool1": "BOUNDED_SIGN", "conv2": "BOUNDED"}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", ["LOSSLESS", "ADAPTIVE"])
def test_recomputation_never_keeps_more(name: str, mode: str) -> None:
    net, _ = MODELS[name]
    stored = [
        make_solver(net, compression=f"mode: {mode} {more}").memory_estimate().stored
        for more in ("", "recompute: false")
    ]
    assert stored[0] <= stored[1]
    assert name == "lenet" or stored[0] < 0.95 * stored[1]


DROPPED = """
  layer { name: "drop1" type: "Dropout" bottom: "conv1" top: "drop1" }
  layer { name: "norm1" type: "LRN" bottom: "drop1" top: "norm1" }
"""
CUTS = {
    "normalised": (BLOCK + CONV2 % ("conv1", FILLER), "conv2"),
    "pooled": (BLOCK + POOL + CONV2 % ("pool1", FILLER), "conv2"),
    "dropped": (BLOCK.split('  layer { name: "scale1"', maxsplit=1)[0] + DROPPED, "norm1"),
}


def least_cost(recomputation: Recomputation) -> int:
    """The least cost of saving nodes from which all that is read follows, by trying every set."""
    nodes = list(recomputation._nodes())
    sources = {}
    for root, level in nodes:
        higher = recomputation._higher(root, level)
        recipe = recomputation._recipe(root, level) if higher is None else None
        inputs = [(value.index, recipe.level) for value in recipe.inputs] if recipe else []
        sources[root, level] = [(root, higher)] if higher is not None else inputs
    read = {(root, level) for root, levels in recomputation._direct.items() for level in levels}

    def follows(node: tuple[int, Level], saved: set[tuple[int, Level]]) -> bool:
        return node in saved or (
            bool(sources[node]) and all(follows(source, saved) for source in sources[node])
        )

    best = sum(recomputation._cost(*node) for node in nodes)
    for count in range(len(nodes)):
        for saved in itertools.combinations(nodes, count):
            cost = sum(recomputation._cost(*node) for node in saved)
            if cost < best and all(follows(node, set(saved)) for node in read):
                best = cost
    return best


@pytest.mark.parametrize("mode", ["LOSSLESS", "ADAPTIVE"])
@pytest.mark.parametrize("name", CUTS)
def test_the_cut_is_the_cheapest_way(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Recomputation] = []

    class Noted(Recomputation):
        def solve(self) -> Decision:
            made.append(self)
            return super().solve()

    monkeypatch.setattr(memory_plan, "Recomputation", Noted)
    solver_of(*CUTS[name], f"mode: {mode}")
    largest = max(made, key=lambda one: len(list(one._nodes())))  # others are plans to compare with
    assert 5 <= len(list(largest._nodes())) <= 14
    cost = sum(largest._cost(*node) for node in largest._cut())
    assert cost == least_cost(largest)


def test_levels_are_ordered() -> None:
    assert sorted(Level) == [
        Level.SIGN, Level.BOUNDED, Level.BOUNDED_SIGN, Level.LOSSLESS, Level.RAW,
    ]  # fmt: skip


@pytest.mark.parametrize("factors", ["zeros", "small"])
def test_weak_channels_lose_nothing(factors: str) -> None:
    """Where a Scale's factors are 0 or small, its bottom does not follow from its top."""
    body = BLOCK + CONV2 % ("conv1", FILLER)
    gradients = {}
    for mode in ("NONE", "FIXED error_bound: 1e-3"):
        solver = solver_of(body, "conv2", f"mode: {mode}")
        gamma = solver.net.params["scale1"][0].data
        gamma[:] = 1
        gamma[::2] = 0 if factors == "zeros" else 1e-6
        train(solver, batches((4, 3, 24, 24), 1))
        gradients[mode] = [solver.net.params[layer][0].diff.copy() for layer in ("conv1", "scale1")]
    for exact, bounded in zip(*gradients.values()):
        scale = np.abs(exact).max()
        np.testing.assert_allclose(bounded, exact, atol=0.02 * scale)


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("name", MODELS)
def test_slices_give_the_same_to_rounding(name: str, size: int) -> None:
    net, shape = MODELS[name]
    data = batches(shape, 3)
    whole = make_solver(net, compression="mode: LOSSLESS")
    sliced = make_solver(net, compression=f"mode: LOSSLESS slice: {size}")
    np.testing.assert_allclose(train(sliced, data), train(whole, data), rtol=1e-4)
    for ours, theirs in zip(parameters(sliced), parameters(whole)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


def wide_net() -> tuple[pb.NetParameter, tuple[int, ...]]:
    """Convolutions of large images, whose weights are small against what is between them."""
    convolution = """
      layer {{ name: "conv{0}" type: "Convolution" bottom: "{1}" top: "conv{0}"
        convolution_param {{ num_output: 16 kernel_size: 3 pad: 1 {2} }} }}
      layer {{ name: "relu{0}" type: "ReLU" bottom: "conv{0}" top: "conv{0}" }}
    """
    body = "".join(
        convolution.format(number, f"conv{number - 1}" if number > 1 else "data", FILLER)
        for number in range(1, 5)
    )
    net = pb.NetParameter()
    text_format.Merge(INPUTS.replace("dim: 24", "dim: 64") + body + END % ("conv4", FILLER), net)
    return net, (4, 3, 64, 64)


@pytest.mark.parametrize("mode", ["NONE", "LOSSLESS", "LOSSLESS slice: 1", "ADAPTIVE"])
def test_the_estimate_is_near_the_truth(mode: str) -> None:
    net, shape = wide_net()
    solver = make_solver(net, compression=f"mode: {mode}")
    expected = solver.memory_estimate()
    train(solver, batches(shape, 2))
    assert 0.7 * solver.peak_bytes < expected.planned_peak < 1.3 * solver.peak_bytes
    if mode != "NONE":
        assert expected.planned_peak < expected.plain_peak


def test_slices_lower_the_peak() -> None:
    net, shape = wide_net()
    peaks = []
    for size in (0, 1):
        solver = make_solver(net, compression=f"mode: LOSSLESS slice: {size}")
        train(solver, batches(shape, 2))
        peaks.append(solver.peak_bytes)
    assert peaks[1] < 0.7 * peaks[0]


def test_a_memory_limit_chooses_slices() -> None:
    net, shape = wide_net()
    free = make_solver(net, compression="mode: LOSSLESS")
    peak = free.memory_estimate().planned_peak
    total = fixed_bytes(free) + peak
    enough = make_solver(net, compression=f'mode: LOSSLESS memory_limit: "{total}"')
    assert enough.net.executor.slice_size == 0
    tight = total - peak // 4
    limited = make_solver(net, compression=f'mode: LOSSLESS memory_limit: "{tight}"')
    assert 0 < limited.net.executor.slice_size < shape[0]
    train(limited, batches(shape, 2))
    assert limited.peak_bytes + fixed_bytes(limited) < 1.05 * tight
    with pytest.raises(ValueError, match="the least is"):
        make_solver(net, compression='mode: LOSSLESS memory_limit: "1M"')
    for size in ("lots", "0", "0.1", "9" * 400):
        with pytest.raises(ValueError, match="needs to be a size such as 2G"):
            make_solver(net, compression=f'mode: LOSSLESS memory_limit: "{size}"')
    with pytest.raises(ValueError, match="memory_limit needs activations to be released"):
        make_solver(net, compression='memory_limit: "2G"')
