"""The update rules against formulas in double precision, PyTorch, and other numbers of threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import caffe
from caffe._core import MemoryKind, Parameter, Tensor
from caffe._core import solvers as rules
from caffe._core.solvers import Regularization, UpdateOptions

SIZES = [1, 7, 1000, 100_003]  # tails of vectors, and more than one thread's share
RATE, MOMENTUM, DELTA, DECAY, SCALE = 0.05, 0.9, 1e-3, 0.01, 0.5
RMS_DECAY, BETA2, STEPS = 0.8, 0.99, 5


def sgd(w, g, h, s, t):
    h[:] = MOMENTUM * h + RATE * g
    w -= h


def nesterov(w, g, h, s, t):
    old = h.copy()
    h[:] = MOMENTUM * h + RATE * g
    w -= (1 + MOMENTUM) * h - MOMENTUM * old


def adagrad(w, g, h, s, t):
    h += g**2
    w -= RATE * g / (np.sqrt(h) + DELTA)


def rmsprop(w, g, h, s, t):
    h[:] = RMS_DECAY * h + (1 - RMS_DECAY) * g**2
    w -= RATE * g / (np.sqrt(h) + DELTA)


def adadelta(w, g, h, s, t):
    h[:] = MOMENTUM * h + (1 - MOMENTUM) * g**2
    update = g * np.sqrt((s + DELTA) / (h + DELTA))
    s[:] = MOMENTUM * s + (1 - MOMENTUM) * update**2
    w -= RATE * update


def adam(w, g, h, s, t):
    h[:] = MOMENTUM * h + (1 - MOMENTUM) * g
    s[:] = BETA2 * s + (1 - BETA2) * g**2
    corrected = np.sqrt(1 - BETA2**t) / (1 - MOMENTUM**t)
    w -= RATE * corrected * h / (np.sqrt(s) + DELTA)


def kernel(name: str, p: Parameter, h: Tensor, s: Tensor, options: UpdateOptions, t: int) -> None:
    update: Callable[..., None] = getattr(rules, f"update_{name}")
    arguments = {
        "sgd": (h, options, MOMENTUM),
        "nesterov": (h, options, MOMENTUM),
        "adagrad": (h, options, DELTA),
        "rmsprop": (h, options, RMS_DECAY, DELTA),
        "adadelta": (h, s, options, MOMENTUM, DELTA),
        "adam": (h, s, options, MOMENTUM, BETA2, DELTA, t),
    }
    update(p, *arguments[name])


FORMULAS = {f.__name__: f for f in (sgd, nesterov, adagrad, rmsprop, adadelta, adam)}


def zeros(count: int) -> Tensor:
    tensor = Tensor([count], MemoryKind.HISTORY)
    tensor.zero()
    return tensor


def run(name: str, count: int, options: UpdateOptions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights and both histories after STEPS updates by the kernel."""
    rng = np.random.default_rng(count)
    parameter, h, s = Parameter([count]), zeros(count), zeros(count)
    parameter.data.numpy()[...] = rng.standard_normal(count)
    parameter.data.numpy()[3::5] = 0  # the sign of 0 is 0
    for step in range(STEPS):
        parameter.gradient.numpy()[...] = rng.standard_normal(count)
        parameter.gradient.numpy()[2::3] = 0  # a dead weight
        kernel(name, parameter, h, s, options, step + 1)
    return tuple(t.numpy().copy() for t in (parameter.data, h, s))


def expected(name: str, count: int, decay: float, scale: float, l1: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    w = rng.standard_normal(count).astype(np.float32).astype(np.float64)
    w[3::5] = 0
    h, s = np.zeros(count), np.zeros(count)
    for step in range(STEPS):
        g = rng.standard_normal(count)
        g[2::3] = 0
        FORMULAS[name](w, scale * g + decay * (np.sign(w) if l1 else w), h, s, step + 1)
    return [w, h, s]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", ["L2", "L1"])
@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str, kind: str, count: int) -> None:
    options = UpdateOptions(RATE, SCALE, DECAY, getattr(Regularization, kind))
    theirs = expected(name, count, DECAY, SCALE, kind == "L1")
    # L1 jumps where a weight passes 0: rounding may take it there one step earlier.
    steady = np.abs(theirs[0]) > 1e-3
    for ours, exact in zip(run(name, count, options), theirs):
        np.testing.assert_allclose(ours[steady], exact[steady], rtol=2e-4, atol=2e-5)
    assert steady.mean() > 0.5


@pytest.mark.parametrize("name", FORMULAS)
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    options = UpdateOptions(RATE, SCALE, DECAY)
    before = caffe.num_threads()
    results = []
    for threads in (1, 2, 3):
        caffe.set_num_threads(threads)
        results.append(run(name, SIZES[-1], options))
    caffe.set_num_threads(before)
    for other in results[1:]:
        for ours, theirs in zip(results[0], other):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_history_of_another_size_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="history of 3 does not fit a parameter of 4"):
        kernel(name, Parameter([4]), zeros(3), zeros(4), UpdateOptions(RATE), 1)


@pytest.mark.parametrize("name", FORMULAS)
def test_as_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tiny = 1e-10  # PyTorch's Adam adds it elsewhere
    optim = torch.optim
    rng = np.random.default_rng(1)
    parameter, h, s = Parameter([50]), zeros(50), zeros(50)
    start = rng.standard_normal(50).astype(np.float32)
    parameter.data.numpy()[...] = start
    weight = torch.tensor(start.copy(), requires_grad=True)
    optimizer = {
        "sgd": lambda w: optim.SGD(w, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY),
        "nesterov": lambda w: optim.SGD(
            w, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, nesterov=True
        ),
        "adagrad": lambda w: optim.Adagrad(w, lr=RATE, eps=DELTA, weight_decay=DECAY),
        "rmsprop": lambda w: optim.RMSprop(
            w, lr=RATE, alpha=RMS_DECAY, eps=DELTA, weight_decay=DECAY
        ),
        "adadelta": lambda w: optim.Adadelta(
            w, lr=RATE, rho=MOMENTUM, eps=DELTA, weight_decay=DECAY
        ),
        "adam": lambda w: optim.Adam(
            w, lr=RATE, betas=(MOMENTUM, BETA2), eps=tiny, weight_decay=DECAY
        ),
    }[name]([weight])
    options = UpdateOptions(RATE, 1.0, DECAY)
    for step in range(20):
        gradient = rng.standard_normal(50).astype(np.float32)
        parameter.gradient.numpy()[...] = gradient
        weight.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        if name == "adam":
            rules.update_adam(parameter, h, s, options, MOMENTUM, BETA2, tiny, step + 1)
        else:
            kernel(name, parameter, h, s, options, step + 1)
    np.testing.assert_allclose(
        parameter.data.numpy(), weight.detach().numpy(), rtol=1e-4, atol=1e-5
    )
