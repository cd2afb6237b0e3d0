"""Nets described in Python equal the same nets as prototxt; mistakes are told by nearest names."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

import caffe
from caffe import layers as L
from caffe import params as P
from caffe import to_proto
from caffe.net_spec import Function, Top, assign_proto, param_name_dict
from caffe.proto import caffe_pb2 as pb


def parsed(text):
    return text_format.Parse(text, pb.NetParameter())


def dummy(n):
    n.data, n.label = L.DummyData(
        shape=[dict(dim=[4, 1, 8, 8]), dict(dim=[4])],
        data_filler=[dict(type="gaussian"), dict(type="constant", value=2)],
        ntop=2,
    )


DUMMY = """
layer {
  name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 4 dim: 1 dim: 8 dim: 8 } shape { dim: 4 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 }
  }
}
"""
SMALL = (
    DUMMY
    + """
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer {
  name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: AVE kernel_size: 2 stride: 2 }
}
layer {
  name: "score" type: "InnerProduct" bottom: "pool1" top: "score"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } }
}
layer {
  name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss"
  loss_weight: 0.5 loss_param { ignore_label: 7 normalization: FULL }
}
layer {
  name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy"
  include { phase: TEST }
}
"""
)


def small():
    n = caffe.NetSpec()
    dummy(n)
    xavier = dict(type="xavier")
    n.conv1 = L.Convolution(
        n.data,
        num_output=3,
        kernel_size=3,
        weight_filler=xavier,
        param=[dict(lr_mult=1), dict(lr_mult=2, decay_mult=0)],
    )
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.pool1 = L.Pooling(n.relu1, pool=P.Pooling.AVE, kernel_size=2, stride=2)
    n.score = L.InnerProduct(n.pool1, num_output=5, weight_filler=xavier)
    n.loss = L.SoftmaxWithLoss(
        n.score,
        n.label,
        loss_weight=0.5,
        loss_param=dict(ignore_label=7, normalization=P.Loss.FULL),
    )
    n.accuracy = L.Accuracy(n.score, n.label, include=dict(phase=caffe.TEST))
    return n


def test_equals_prototxt() -> None:
    assert small().to_proto() == parsed(SMALL)


def test_runs_as_the_prototxt_does(tmp_path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(str(small().to_proto()))
    losses = []
    for net in (small().to_proto(), str(path)):
        caffe.set_random_seed(3)
        losses.append(caffe.Net(net, caffe.TEST).forward()["loss"].copy())
    caffe.set_random_seed(-1)
    assert losses[0] > 0
    np.testing.assert_array_equal(losses[0], losses[1])


def test_anonymous_layers_are_numbered_by_type() -> None:
    data, label = L.DummyData(shape=[dict(dim=[2, 3]), dict(dim=[2])], ntop=2)
    one = L.InnerProduct(data, num_output=4)
    two = L.InnerProduct(L.ReLU(one, in_place=True), num_output=2)
    net = to_proto(L.SoftmaxWithLoss(two, label))
    assert [(layer.name, list(layer.bottom), list(layer.top)) for layer in net.layer] == [
        ("DummyData1", [], ["DummyData1", "DummyData2"]),
        ("InnerProduct1", ["DummyData1"], ["InnerProduct1"]),
        ("ReLU1", ["InnerProduct1"], ["InnerProduct1"]),
        ("InnerProduct2", ["InnerProduct1"], ["InnerProduct2"]),
        ("SoftmaxWithLoss1", ["InnerProduct2", "DummyData2"], ["SoftmaxWithLoss1"]),
    ]


def test_several_outputs_share_layers() -> None:
    data = L.Input(shape=dict(dim=[2, 3]))
    ip = L.InnerProduct(data, num_output=4)
    net = to_proto(L.Sigmoid(ip), L.TanH(ip))
    assert [layer.name for layer in net.layer] == ["Input1", "InnerProduct1", "Sigmoid1", "TanH1"]
    assert ip.to_proto().layer == net.layer[:2]


def test_unnamed_layers_in_a_named_net() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3]))
    n.InnerProduct1 = L.InnerProduct(n.data, num_output=2)
    n.out = L.TanH(L.InnerProduct(n.InnerProduct1, num_output=4))
    names = [layer.name for layer in n.to_proto().layer]
    assert names == ["data", "InnerProduct1", "InnerProduct2", "out"]


def test_layer_without_tops() -> None:
    n = caffe.NetSpec()
    dummy(n)
    n.quiet = L.Silence(n.data, n.label, ntop=0)
    assert isinstance(n.quiet, Function)
    silence = n.to_proto().layer[1]
    assert (silence.name, list(silence.bottom), list(silence.top)) == (
        "quiet",
        ["data", "label"],
        [],
    )
    assert caffe.Net(n.to_proto(), caffe.TEST).outputs == []


def test_name_is_a_field() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3]))
    n.out = L.TanH(n.data, name="squash")
    layer = n.to_proto().layer[1]
    assert (layer.name, list(layer.top)) == ("squash", ["out"])


def test_python_layer_fields() -> None:
    n = caffe.NetSpec()
    n.out = L.Python(module="some.module", layer="Some", param_str="{'a': 1}", ntop=1)
    (layer,) = n.to_proto().layer
    assert layer.python_param.module == "some.module"
    assert layer.python_param.param_str == "{'a': 1}"


def test_message_given_whole() -> None:
    filler = pb.FillerParameter(type="msra", variance_norm=pb.FillerParameter.FAN_OUT)
    data = L.Input(input_param=dict(shape=[dict(dim=[2, 3])]))
    ip = L.InnerProduct(data, num_output=4, weight_filler=filler, param=(pb.ParamSpec(name="w"),))
    layer = ip.to_proto().layer[1]
    assert layer.inner_product_param.weight_filler == filler
    assert [spec.name for spec in layer.param] == ["w"]


def test_empty_message_is_there() -> None:
    net = L.Python(module="m", layer="l", include=dict()).to_proto()
    assert len(net.layer[0].include) == 1
    layer = pb.LayerParameter()
    assign_proto(layer, "transform_param", {})
    assert layer.HasField("transform_param")


def test_numpy_numbers() -> None:
    data = L.Input(shape=dict(dim=[np.int64(2), np.int32(3)]))
    layer = L.Power(data, scale=np.float32(0.5), shift=np.float64(2)).to_proto().layer[1]
    assert (layer.power_param.scale, layer.power_param.shift) == (0.5, 2)


def test_attributes_and_items() -> None:
    n = caffe.NetSpec()
    n["conv1/3x3"] = L.Input(shape=dict(dim=[2, 3]))
    n.out = L.TanH(n["conv1/3x3"])
    assert isinstance(n.out, Top)
    assert n["out"] is n.out
    assert list(n.tops) == list(n) == ["conv1/3x3", "out"]
    assert "out" in n
    del n["out"]
    assert not hasattr(n, "out")
    assert [layer.name for layer in n.to_proto().layer] == ["conv1/3x3"]


def test_assigned_anew_moves_the_name() -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3]))
    n.x = L.TanH(n.data)
    n.x = L.Sigmoid(n.x)
    assert [(layer.name, layer.type) for layer in n.to_proto().layer] == [
        ("data", "Input"),
        ("TanH1", "TanH"),
        ("x", "Sigmoid"),
    ]


def test_deep_chain() -> None:
    top = L.Input(shape=dict(dim=[1]))
    for _ in range(3000):
        top = L.TanH(top)
    assert len(top.to_proto().layer) == 3001


def test_every_own_message_belongs_to_a_field() -> None:
    names = param_name_dict()
    assert names["Convolution"] == "convolution"
    assert names["InnerProduct"] == "inner_product"
    assert names["ReLU"] == "relu"
    fields = pb.LayerParameter.DESCRIPTOR.fields_by_name
    assert {f"{name}_param" for name in names.values()} <= set(fields)


DATA = L.Input(shape=dict(dim=[2, 3]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: L.Convlution, AttributeError, "no layer type 'Convlution'.*'Convolution'"),
        (lambda: P.Poling, AttributeError, "no message 'PolingParameter'.*'Pooling'"),
        (lambda: P.Pooling.MAXX, AttributeError, "PoolingParameter has no value 'MAXX'.*'MAX'"),
        (
            lambda: L.Convolution(DATA, num_outptu=3),
            AttributeError,
            "Convolution has no parameter 'num_outptu'; did you mean 'num_output'",
        ),
        (
            lambda: L.ReLU(DATA, inplace=True),
            AttributeError,
            "ReLU has no parameter 'inplace'; did you mean 'in_place'",
        ),
        (
            lambda: L.SoftmaxWithLoss(DATA, DATA, ignore_label=3),
            AttributeError,
            r"belongs inside loss_param=dict\(ignore_label=...\)",
        ),
        (
            lambda: L.Convolution(DATA, weight_filler=dict(typ="x")),
            AttributeError,
            "Convolution: FillerParameter has no field 'typ'; did you mean 'type'",
        ),
        (
            lambda: L.Convolution(DATA, weight_filler="xavier"),
            TypeError,
            "'weight_filler' is a FillerParameter: give it a dict",
        ),
        (
            lambda: L.Convolution(DATA, num_output="many"),
            TypeError,
            "Convolution: field 'num_output' cannot be 'many'",
        ),
        (
            lambda: L.Pooling(DATA, pool="MAXX"),
            ValueError,
            "Pooling: field 'pool' has no value 'MAXX'; did you mean 'MAX'",
        ),
        (lambda: L.ReLU((DATA, DATA)), TypeError, r"ReLU input 0 is not a Top.*one by one"),
        (lambda: L.ReLU(DATA, "data"), TypeError, r"ReLU input 1 is not a Top \(type is str\)"),
        (lambda: L.ReLU(in_place=True), ValueError, "1 tops in place need as many bottoms, not 0"),
        (lambda: caffe.NetSpec().data, AttributeError, "no top 'data'"),
        (lambda: caffe.NetSpec()["data"], KeyError, "no top 'data'"),
        (
            lambda: setattr(caffe.NetSpec(), "data", L.DummyData(ntop=2)),
            TypeError,
            "'data' is given 2 tops: name each",
        ),
        (lambda: setattr(caffe.NetSpec(), "data", 3), TypeError, "needs to be a top"),
    ],
)
def test_mistakes(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make()


def test_type_and_enumerations_complete() -> None:
    assert set(caffe.layer_type_list()) == set(dir(L))
    assert P.Data.LMDB == pb.DataParameter.LMDB
    assert P.Eltwise.SUM == pb.EltwiseParameter.SUM
