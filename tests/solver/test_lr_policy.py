"""The seven learning-rate policies against their formulas, and what a state says of steps."""

from __future__ import annotations

import math

import pytest
from google.protobuf import text_format

from caffe.lr_policy import POLICIES, learning_rate, steps_taken
from caffe.proto import caffe_pb2 as pb

#: Policy -> its fields, and the rates of some iterations worked out by hand.
CASES = {
    "fixed": ("", {0: 0.5, 1000: 0.5}),
    "step": ("gamma: 0.5 stepsize: 10", {0: 0.5, 9: 0.5, 10: 0.25, 29: 0.125, 30: 0.0625}),
    "exp": ("gamma: 0.5", {0: 0.5, 1: 0.25, 4: 0.03125}),
    "inv": ("gamma: 0.5 power: 2", {0: 0.5, 2: 0.125, 6: 0.03125}),
    "multistep": (
        "gamma: 0.5 stepvalue: 3 stepvalue: 5",
        {0: 0.5, 2: 0.5, 3: 0.25, 4: 0.25, 5: 0.125, 100: 0.125},
    ),
    "poly": ("power: 2 max_iter: 10", {0: 0.5, 5: 0.125, 10: 0, 11: 0}),
    "sigmoid": (
        "gamma: -0.5 stepsize: 4",
        {4: 0.25, 0: 0.5 / (1 + math.exp(-2)), 8: 0.5 / (1 + math.exp(2))},
    ),
}


def solver_of(policy: str, text: str) -> pb.SolverParameter:
    return text_format.Parse(f'base_lr: 0.5 lr_policy: "{policy}" {text}', pb.SolverParameter())


def test_every_policy_is_tried() -> None:
    assert set(CASES) == set(POLICIES)


@pytest.mark.parametrize("policy", CASES)
def test_rates(policy: str) -> None:
    text, rates = CASES[policy]
    for iteration, rate in rates.items():
        assert learning_rate(solver_of(policy, text), iteration) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # As of the rate of the last iteration done, which is one less than their number.
        ("step", {0: 0, 10: 0, 11: 1, 31: 3}),
        ("multistep", {0: 0, 3: 0, 4: 1, 5: 1, 6: 2, 100: 2}),
        ("fixed", {0: 0, 100: 0}),
    ],
)
def test_steps_that_a_state_says(policy: str, expected: dict[int, int]) -> None:
    solver = solver_of(policy, CASES[policy][0])
    assert {n: steps_taken(solver, n) for n in expected} == expected
