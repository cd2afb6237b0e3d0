"""Old formats: the result must equal that of BVLC Caffe's upgrade tools, kept in upgrade/."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import caffe
from caffe import prototxt, upgrade_v0, wire
from caffe.proto import caffe_pb2

CASES = Path(__file__).with_name("upgrade")
PADDED = 'layers { layer { name: "p" type: "padding" pad: 2 } bottom: "x" top: "p" }'


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
        ('layers { layer { name: "c" type: "Conv" } }', "unknown type 'Conv'; did you mean 'conv'"),
        (
            PADDED + 'layers { layer { name: "r" type: "relu" } bottom: "p" top: "r" }',
            r"layer 'r' \(relu\) reads from padding layer 'p'; only conv and pool",
        ),
        (
            PADDED.replace('top: "p"', 'top: "p" top: "q"')
            + 'layers { layer { name: "c" type: "conv" } bottom: "p" top: "c" }',
            "padding layer 'p' needs one bottom and one top",
        ),
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


# -- V0: there are no golden files; Caffe's history tells what each option became ------------------

V0 = """
name: "first"
layers { layer { name: "data" type: "data" source: "db" meanfile: "m" batchsize: 4 cropsize: 20
  mirror: true scale: 0.5 rand_skip: 3 } top: "data" top: "label" }
layers { layer { name: "pad1" type: "padding" pad: 2 } bottom: "data" top: "pad1" }
layers { layer { name: "conv1" type: "conv" num_output: 8 kernelsize: 5 stride: 2 group: 2
  biasterm: false weight_filler { type: "gaussian" std: 0.01 } bias_filler { type: "constant" }
  blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0 } bottom: "pad1" top: "conv1" }
layers { layer { name: "relu1" type: "relu" } bottom: "conv1" top: "conv1" }
layers { layer { name: "pool1" type: "pool" pool: AVE kernelsize: 3 stride: 2 pad: 1 }
  bottom: "conv1" top: "pool1" }
layers { layer { name: "norm1" type: "lrn" local_size: 5 alpha: 0.0001 beta: 0.5 k: 2 }
  bottom: "pool1" top: "norm1" }
layers { layer { name: "ip" type: "innerproduct" num_output: 10 biasterm: true }
  bottom: "norm1" top: "ip" }
layers { layer { name: "drop" type: "dropout" dropout_ratio: 0.25 } bottom: "ip" top: "ip" }
layers { layer { name: "cat" type: "concat" concat_dim: 0 } bottom: "ip" bottom: "ip" top: "cat" }
layers { layer { name: "loss" type: "softmax_loss" } bottom: "ip" bottom: "label" top: "loss" }
"""
V0_UPGRADED = """
name: "first"
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "db" batch_size: 4 rand_skip: 3 }
  transform_param { mean_file: "m" crop_size: 20 mirror: true scale: 0.5 } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  convolution_param { num_output: 8 kernel_size: 5 stride: 2 group: 2 pad: 2 bias_term: false
    weight_filler { type: "gaussian" std: 0.01 } bias_filler { type: "constant" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "norm1" type: "LRN" bottom: "pool1" top: "norm1"
  lrn_param { local_size: 5 alpha: 0.0001 beta: 0.5 k: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "norm1" top: "ip"
  inner_product_param { num_output: 10 bias_term: true } }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip"
  dropout_param { dropout_ratio: 0.25 } }
layer { name: "cat" type: "Concat" bottom: "ip" bottom: "ip" top: "cat"
  concat_param { concat_dim: 0 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def test_a_v0_net():
    expected = text_format.Parse(V0_UPGRADED, caffe_pb2.NetParameter())
    assert prototxt.parse_net(V0) == expected


def test_padding_before_pooling_and_with_two_readers():
    net = prototxt.parse_net(
        PADDED
        + 'layers { layer { name: "a" type: "pool" kernelsize: 3 } bottom: "p" top: "a" }'
        + 'layers { layer { name: "b" type: "conv" kernelsize: 3 } bottom: "p" top: "b" }'
    )
    assert [layer.name for layer in net.layer] == ["a", "b"]
    assert net.layer[0].pooling_param.pad == 2
    assert list(net.layer[1].convolution_param.pad) == [2]
    assert [list(layer.bottom) for layer in net.layer] == [["x"], ["x"]]


V0_SOURCES = {
    "hdf5_data": ("HDF5Data", "hdf5_data_param", {"source": "s", "batch_size": 3}),
    "images": (
        "ImageData",
        "image_data_param",
        {"source": "s", "batch_size": 3, "shuffle": True, "new_height": 5, "new_width": 6},
    ),
    "window_data": (
        "WindowData",
        "window_data_param",
        {"source": "s", "batch_size": 3, "fg_threshold": 0.25, "context_pad": 7,
         "crop_mode": "square"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", V0_SOURCES)
def test_v0_data_layers(kind):
    extra = {
        "images": "shuffle_images: true new_height: 5 new_width: 6",
        "window_data": 'det_fg_threshold: 0.25 det_context_pad: 7 det_crop_mode: "square"',
    }.get(kind, "")
    text = f'layers {{ layer {{ type: "{kind}" source: "s" batchsize: 3 {extra} }} top: "x" }}'
    layer = prototxt.parse_net(text).layer[0]
    type_name, param, options = V0_SOURCES[kind]
    assert layer.type == type_name
    found = {field.name: value for field, value in getattr(layer, param).ListFields()}
    assert found == options


def test_every_v0_option_has_a_place():
    known = {field.name for field in caffe_pb2.V0LayerParameter.DESCRIPTOR.fields}
    # Written by no released version: options of a reshaping layer that never was.
    unused = {"new_num", "new_channels"}
    assert set(upgrade_v0._PLACES) == known - {"name", "type"} - unused
    for field, places in upgrade_v0._PLACES.items():
        for kind, place in places.items():
            owner, _, option = place.rpartition(".")
            message = caffe_pb2.V1LayerParameter()
            fields = getattr(message, owner).DESCRIPTOR if owner else message.DESCRIPTOR
            assert option in fields.fields_by_name, (field, place)
            assert kind == "" or kind in upgrade_v0._TYPES, (field, kind)


def test_an_option_that_its_v0_layer_never_had_is_dropped_with_a_warning(capfd):
    net = prototxt.parse_net('layers { layer { name: "r" type: "relu" stride: 2 } }', "n")
    assert net.layer[0] == caffe_pb2.LayerParameter(name="r", type="ReLU")
    assert "n: layer 'r' (relu) has no use for 'stride': it is dropped" in capfd.readouterr().err


# -- data options, BatchNorm -----------------------------------------------------------------------


def test_old_transformations_move_and_new_ones_win():
    net = prototxt.parse_net(
        'layers { type: DATA data_param { scale: 0.5 mean_file: "old" crop_size: 3 mirror: true } '
        'transform_param { mean_file: "new" } }'
    )
    found = net.layer[0].transform_param
    assert (found.scale, found.mean_file, found.crop_size, found.mirror) == (0.5, "new", 3, True)
    assert not net.layer[0].data_param.ListFields()


def test_statistics_of_batch_norm_learn_nothing():
    net = prototxt.parse_net(
        'layer { type: "BatchNorm" param { lr_mult: 1 } param { name: "v" } param { } }'
        'layer { type: "Scale" param { lr_mult: 1 } }'
    )
    assert [(p.lr_mult, p.decay_mult) for p in net.layer[0].param] == [(0, 0)] * 3
    assert net.layer[0].param[1].name == "v"
    assert net.layer[1].param[0].lr_mult == 1


# -- weights in old files --------------------------------------------------------------------------

VALUES = np.arange(6, dtype=np.float32)


def old_weights(kind):
    """A net of one inner product `ip` in each format, its blobs with the four old sizes."""
    blob = caffe_pb2.BlobProto(num=1, channels=1, height=2, width=3, data=VALUES)
    net = caffe_pb2.NetParameter(name="old")
    if kind == "V0":
        layer = net.layers.add().layer
        layer.name, layer.type = "ip", "innerproduct"
    elif kind == "V1":
        layer = net.layers.add(name="ip", type=caffe_pb2.V1LayerParameter.INNER_PRODUCT)
    else:
        layer = net.layer.add(name="ip", type="InnerProduct")
    if kind == "doubles":
        blob = caffe_pb2.BlobProto(double_data=VALUES)
        blob.shape.dim.extend([2, 3])
    layer.blobs.add().CopyFrom(blob)
    content = net.SerializeToString()
    if kind == "unpacked":  # floats one by one, as writers of other languages have them
        loose = b"".join(b"\x2d" + value.tobytes() for value in VALUES)
        sizes = caffe_pb2.BlobProto(num=1, channels=1, height=2, width=3).SerializeToString()
        blob_bytes = wire.header(7, len(sizes + loose)) + sizes + loose
        name = caffe_pb2.LayerParameter(name="ip").SerializeToString() + blob_bytes
        content = wire.header(100, len(name)) + name
    return content


@pytest.mark.parametrize("kind", ["V0", "V1", "sizes", "doubles", "unpacked"])
def test_old_weights_are_copied(tmp_path, kind):
    path = tmp_path / "old.caffemodel"
    path.write_bytes(old_weights(kind))
    net = caffe.Net(
        prototxt.parse_net(
            'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }'
            'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" '
            "inner_product_param { num_output: 2 bias_term: false } }"
        ),
        str(path),
        caffe.TEST,
    )
    np.testing.assert_array_equal(net.params["ip"][0].data, VALUES.reshape(2, 3))
    layer = prototxt.read_binary_net(path).layer[0]
    assert (layer.name, len(layer.blobs)) == ("ip", 1)
