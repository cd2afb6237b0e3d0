"""Rules, splits, values and what is refused."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from caffe.graph import build_graph, filter_net
from caffe.proto import caffe_pb2 as pb

INPUT = 'layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 } } }'


def parse(text: str) -> pb.NetParameter:
    return text_format.Parse(text, pb.NetParameter())


def graph(text: str):
    return build_graph(parse(text), pb.NetState(phase=pb.TRAIN))


@pytest.mark.parametrize(
    ("rule", "state", "kept"),
    [
        ("include { phase: TEST }", "phase: TRAIN", False),
        ("include { phase: TEST }", "phase: TEST", True),
        ("exclude { phase: TEST }", "phase: TEST", False),
        ("include { min_level: 2 }", "phase: TEST level: 1", False),
        ("include { min_level: 2 max_level: 3 }", "phase: TEST level: 3", True),
        ("include { max_level: 3 }", "phase: TEST level: 4", False),
        ('include { stage: "a" stage: "b" }', 'phase: TEST stage: "a"', False),
        ('include { stage: "a" stage: "b" }', 'phase: TEST stage: "a" stage: "b"', True),
        ('include { not_stage: "a" }', 'phase: TEST stage: "a"', False),
        ('include { stage: "a" } include { stage: "b" }', 'phase: TEST stage: "b"', True),
    ],
)
def test_rules(rule: str, state: str, kept: bool) -> None:
    net = parse(f'layer {{ name: "a" type: "ReLU" {rule} }}')
    filtered = filter_net(net, text_format.Parse(state, pb.NetState()))
    assert [layer.name for layer in filtered.layer] == (["a"] if kept else [])


def test_both_kinds_of_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="both include and exclude"):
        graph('layer { name: "a" type: "ReLU" include { phase: TEST } exclude { stage: "b" } }')


def test_split_names_are_caffes() -> None:
    made = graph(
        INPUT
        + 'layer { name: "a" type: "ReLU" bottom: "x" top: "a" }'
        + 'layer { name: "b" type: "ReLU" bottom: "x" top: "b" }'
    )
    assert [node.name for node in made.nodes] == ["in", "x_in_0_split", "a", "b"]
    assert made.nodes[1].param.top == ["x_in_0_split_0", "x_in_0_split_1"]
    assert made.nodes[3].bottoms[0].name == "x_in_0_split_1"


def test_a_loss_that_is_read_is_split_with_its_weight() -> None:
    made = graph(
        INPUT
        + 'layer { name: "l" type: "ReLU" bottom: "x" top: "l" loss_weight: 0.5 }'
        + 'layer { name: "a" type: "ReLU" bottom: "l" top: "a" }'
    )
    split = made.nodes[2]
    assert split.type == "Split"
    assert split.loss_weights == [0.5, 0.0]
    assert made.nodes[1].loss_weights == [0.0]
    assert made.nodes[3].bottoms == [split.tops[1]]


def test_an_in_place_layer_writes_a_new_value() -> None:
    made = graph(INPUT + 'layer { name: "r" type: "ReLU" bottom: "x" top: "x" }')
    first, second = made.values
    assert first.name == second.name == "x"
    assert made.last_values()["x"] is second
    assert made.outputs() == [second]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'layer { name: "a" type: "ReLU" bottom: "y" top: "a" }',
            r"layer 'a' \(ReLU\): no earlier layer writes its bottom 'y'; did you mean|known: x",
        ),
        (
            'layer { name: "a" type: "ReLU" bottom: "x" top: "a" }'
            'layer { name: "b" type: "ReLU" bottom: "x" top: "a" }',
            "top 'a' is already written by layer 'a'",
        ),
        ('layer { name: "a" type: "ReLU" bottom: "x" top: "a" top: "a" }', "stands twice"),
        (
            'layer { name: "a" type: "ReLU" bottom: "x" top: "a" loss_weight: 1 loss_weight: 1 }',
            "has 2 loss_weight",
        ),
    ],
)
def test_what_is_refused(text: str, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        graph(INPUT + text)
