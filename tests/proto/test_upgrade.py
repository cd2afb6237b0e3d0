"""Old formats: the result must equal that of BVLC Caffe's upgrade tools, kept in upgrade/."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format

from caffe import prototxt
from caffe.proto import caffe_pb2

CASES = Path(__file__).with_name("upgrade")


@pytest.mark.parametrize("name", ["v1", "input_fields"])
def test_net_as_bvlc_upgrades_it(name):
    expected = caffe_pb2.NetParameter()
    text_format.Parse((CASES / f"{name}.upgraded.prototxt").read_text(), expected)
    assert prototxt.read_net(CASES / f"{name}.prototxt") == expected


def test_solver_as_bvlc_upgrades_it():
    expected = caffe_pb2.SolverParameter()
    text_format.Parse((CASES / "solver_old.upgraded.prototxt").read_text(), expected)
    assert prototxt.parse_solver((CASES / "solver_old.prototxt").read_text()) == expected


def test_every_v1_type_is_converted():
    names = [
        value.name
        for value in caffe_pb2.V1LayerParameter.LayerType.DESCRIPTOR.values
        if value.name != "NONE"
    ]
    net = prototxt.parse_net("".join(f'layers {{ name: "x" type: {name} }}\n' for name in names))
    for name, layer in zip(names, net.layer):
        spelled = name.replace("_", "").lower()
        assert layer.type.lower() == {"softmaxloss": "softmaxwithloss"}.get(spelled, spelled)


def test_every_v1_option_is_carried_over():
    fields = [
        f.name for f in caffe_pb2.V1LayerParameter.DESCRIPTOR.fields if f.name[-6:] == "_param"
    ]
    for field in fields:
        net = prototxt.parse_net(f'layers {{ name: "x" type: RELU {field} {{ }} }}')
        assert net.layer[0].HasField(field)


def test_v1_blobs_survive_in_weights(tmp_path):
    net = caffe_pb2.NetParameter()
    net.layers.add(name="ip", type=caffe_pb2.V1LayerParameter.INNER_PRODUCT).blobs.add(data=[1, 2])
    path = tmp_path / "old.caffemodel"
    path.write_bytes(net.SerializeToString())
    layer = prototxt.read_binary_net(path).layer[0]
    assert (layer.type, list(layer.blobs[0].data)) == ("InnerProduct", [1, 2])


def test_input_shape_and_several_inputs():
    net = prototxt.parse_net(
        'input: "a" input: "b" input_shape { dim: 2 dim: 3 } input_shape { dim: 4 }'
    )
    assert list(net.layer[0].top) == ["a", "b"]
    assert [list(shape.dim) for shape in net.layer[0].input_param.shape] == [[2, 3], [4]]
    assert not net.input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('input: "a" input_dim: 1 input_dim: 2', "input_dim has 2 numbers, needs 4"),
        ('input: "a" input: "b" input_shape { dim: 1 }', "2 input names but 1 shapes"),
        ('input: "a" input_dim: 1 input_shape { dim: 1 }', "not both"),
        ('layers { type: RELU } layer { type: "ReLU" }', "has both 'layer' and the older 'layers'"),
        ('layers { layer { name: "c" type: "conv" } }', "layer 'c' is in the V0 format"),
        ('layers { name: "x" }', "layer 'x' has no type"),
    ],
)
def test_inconsistent_old_nets(text, message):
    with pytest.raises(ValueError, match=message):
        prototxt.parse_net(text)


def test_type_given_twice():
    with pytest.raises(ValueError, match="'type' or the older 'solver_type', not both"):
        prototxt.parse_solver('type: "SGD" solver_type: ADAM')


def test_nets_inside_a_solver_are_upgraded():
    solver = prototxt.parse_solver('net_param { layers { name: "r" type: RELU } }')
    assert solver.net_param.layer[0].type == "ReLU"
