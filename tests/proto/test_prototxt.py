"""Reading nets, solvers, weights and states: what is accepted, and how errors read."""

from __future__ import annotations

import math
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe import prototxt, wire
from caffe.proto import caffe_pb2

TEXT_ERRORS = [
    ("layr { }", "n:1:1: NetParameter has no field 'layr'; did you mean 'layer'?"),
    (
        'layer { name: "a"\n  convolution_param { kernelsize: 3 } }',
        "n:2:23: ConvolutionParameter has no field 'kernelsize'; did you mean 'kernel_size'?",
    ),
    (
        "layer {\n kernel_size: 3 }",
        "n:2:2: LayerParameter has no field 'kernel_size'; it belongs inside 'convolution_param' "
        "or 'pooling_param'",
    ),
    (
        "layer { pooling_param { pool: MAXX } }",
        "n:1:31: PoolingParameter.PoolMethod has no value MAXX; did you mean 'MAX'?",
    ),
    (
        "layer { pooling_param { pool: 7 } }",
        "n:1:31: PoolingParameter.PoolMethod has no value 7; known: MAX, AVE, STOCHASTIC",
    ),
    ("layer { include { phase: test } }", "n:1:26: Phase has no value test; did you mean 'TEST'?"),
    ('name: "a" name: "b"', "n:1:17: 'name' is given twice; NetParameter takes it once"),
    ('layer {\n name: "a"\n', "n:2:8: the '{' of line 1 is never closed"),
    (
        'layer {\n name: "a"\n layer { } }',
        "n:3:2: LayerParameter has no field 'layer'; is a '}' missing before it?",
    ),
    ("}", "n:1:1: expected identifier or number, got }"),
    ("input_dim: x", "n:1:12: 'input_dim': couldn't parse integer: x"),
    (
        "layer {\n type: Convolution }",
        "n:2:8: 'type': expected string but found: 'Convolution'; strings stand in quotes",
    ),
    (
        'name: ["a"]',
        "n:1:7: 'name': expected string but found: '['; it takes one value, not a list",
    ),
    (
        "layer { pooling_param { pool: [MAX] } }",
        "n:1:31: PoolingParameter.PoolMethod takes one value, not a list",
    ),
    ('name = "x"', 'n:1:6: expected ":"; a field and its value stand as name: value'),
    ('name: "x" // y', "n:1:11: expected identifier or number, got /; comments start with #"),
    (
        "layer { convolution_param { num_output: -1 } }",
        "n:1:41: 'num_output': value out of range: -1",
    ),
    (
        "layer { loss_weight: [1,\n  x] }",
        "n:2:3: 'loss_weight': couldn't parse float: x",
    ),
    ("layer { phase: TEST }\nlayer: 3", "n:2:8: 'layer': expected \"{\""),
    ('name: "x"\x1a', "n:1:10: expected identifier or number, got \\x1a"),
    ('name: "\\x"', "n:1:7: the string has a backslash that starts no escape"),
    ("force_backward: yes", 'n:1:17: \'force_backward\': expected "true" or "false"'),
    ("layer { clip_param { min: 1 } }", "n: required field 'layer[0].clip_param.max' is missing"),
    ('name: "\udcff"', "n:1:7: the string is not valid UTF-8"),
    (
        "# a solver\nbase_lr: 1",
        "n:2:1: 'base_lr' is a field of a solver prototxt, but a net prototxt was expected; give "
        "the file named in its 'net:' field",
    ),
]


@pytest.mark.parametrize(("text", "message"), TEXT_ERRORS)
def test_text_error_is_one_line_with_a_position(text, message):
    with pytest.raises(ValueError) as error:
        prototxt.parse_net(text, "n")
    assert str(error.value) == message


def test_net_given_as_solver():
    with pytest.raises(ValueError, match=r"^s:1:1: 'layer' is a field of a net prototxt"):
        prototxt.parse_solver("layer { }", "s")


@pytest.mark.parametrize(
    "text",
    [
        "layer { convolution_param { kernel_size: [3, 5] } }",
        "layer { convolution_param { kernel_size: 3 kernel_size: 5 } }",
        "layer: { convolution_param: < kernel_size: 3; kernel_size: 5 > } # comment",
        "layer [{ convolution_param { kernel_size: 0x3, kernel_size: 05 } }]",
    ],
)
def test_spellings_of_repeated_fields(text):
    net = prototxt.parse_net(text)
    assert list(net.layer[0].convolution_param.kernel_size) == [3, 5]


def test_enum_by_number_and_strings_in_pieces():
    net = prototxt.parse_net("name: \"a\" 'b' layer { include { phase: 0 } }")
    assert net.name == "ab"
    assert net.layer[0].include[0].phase == caffe_pb2.TRAIN


SPELLINGS = {
    r'name: "a\n\t\"\x41\101\\"': 'name: "a\\n\\t\\"AA\\\\"',
    r'name: "caf\303\251"': 'name: "caf\u00e9"',
    """name: 'with "quotes"'""": r'name: "with \"quotes\""',
    'name: "a" # one\n  "b"\n\'c\'': 'name: "abc"',
    'layer<name:"x">': 'layer { name: "x" }',
    'layer: < name: "x" >': 'layer { name: "x" }',
    'layer { name: "x"; type: "y", top: "z" }, layer { };': (
        'layer { name: "x" type: "y" top: "z" } layer { }'
    ),
    'layer { top: ["a", "b"] include [{ phase: TEST }, { phase: 0 }] }': (
        'layer { top: "a" top: "b" include { phase: TEST } include { phase: TRAIN } }'
    ),
    "layer { loss_weight: [] }": "layer { }",
    "layer { loss_weight: [1f, .5, 2., -1e-1, 3] }": (
        "layer { loss_weight: 1 loss_weight: 0.5 loss_weight: 2 loss_weight: -0.1 loss_weight: 3 }"
    ),
    "force_backward: t debug_info: 1": "force_backward: true debug_info: true",
    "force_backward: True debug_info: False": "force_backward: true debug_info: false",
    'name: "x"\r\n\r\nforce_backward: true\r\n': 'name: "x" force_backward: true',
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_spellings(text):
    assert prototxt.parse_net(text) == prototxt.parse_net(SPELLINGS[text])


def test_infinities():
    weights = prototxt.parse_net("layer { loss_weight: [inf, -inf, nan] }").layer[0].loss_weight
    assert list(weights[:2]) == [math.inf, -math.inf]
    assert math.isnan(weights[2])


def test_unknown_fields_are_kept_in_binary(tmp_path):
    # Fields 2000 of the net and of its layer, as a fork of Caffe might have them.
    layer = caffe_pb2.LayerParameter(name="ip").SerializeToString() + wire.header(2000, 3) + b"abc"
    content = wire.header(100, len(layer)) + layer + wire.header(2000, 2) + b"xy"
    path = tmp_path / "fork.caffemodel"
    path.write_bytes(content)
    net = prototxt.read_binary_net(path)
    assert net.layer[0].name == "ip"
    assert net.SerializeToString() == content


TEXTS_OF_NO_KIND = {
    "a text file": b"These are notes.\ntype: of the net\nsee: below\nand: more\n",
    "a text file ": b"epoch: 3\nloss: 0.1\n",
    "a text file  ": b"name,weights\n1,2\n",
    "a text file   ": b'{"type": 1, "weights": [1, 2]}',
    "a pointer of Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 9\n",
    "a web page": b"<!DOCTYPE html>\n<html><style> a { display: none } </style></html>",
}


@pytest.mark.parametrize("what", TEXTS_OF_NO_KIND)
def test_text_that_is_no_prototxt_is_not_called_one(tmp_path, what):
    path = tmp_path / "x.caffemodel"
    path.write_bytes(TEXTS_OF_NO_KIND[what])
    with pytest.raises(ValueError, match=f"is {what.strip()}.* but a .caffemodel") as error:
        prototxt.read_binary_net(path)
    assert "prototxt" not in str(error.value).replace(str(path), "")


def test_comments_in_an_old_encoding_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_bytes(b'\xef\xbb\xbfname: "x"  # caf\xe9\r\n')
    assert prototxt.read_net(path).name == "x"


def net_bytes():
    net = caffe_pb2.NetParameter(name="n")
    net.layer.add(name="ip").blobs.add(data=[1.0, 2.0]).shape.dim.append(2)
    return net.SerializeToString()


def state_bytes():
    state = caffe_pb2.SolverState(iter=8, learned_net="x.caffemodel")
    state.history.add(data=[1.0]).shape.dim.append(1)
    return state.SerializeToString()


def blob_bytes():
    return caffe_pb2.BlobProto(
        num=1, channels=1, height=1, width=2, data=[1.0, 2.0]
    ).SerializeToString()


CONTENT = {
    "a net prototxt": b'name: "n" layer { name: "x" }',
    "a solver prototxt": b'net: "x" base_lr: 0.1',
    "a text file": b"hello\n",
    "a .caffemodel (weights)": net_bytes(),
    "a .solverstate": state_bytes(),
    "a .binaryproto (a mean or another array)": blob_bytes(),
    "an HDF5 file": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "an image": b"\xff\xd8\xff\xe0" + bytes(100),
    "a NumPy file": b"\x93NUMPY\x01\x00" + bytes(100),
    "a compressed archive": b"PK\x03\x04" + bytes(100),
    "a binary file of unknown kind": b"\x00" * 100,
}
READERS = {
    "a net prototxt": prototxt.read_net,
    "a solver prototxt": prototxt.read_solver,
    "a .caffemodel (weights)": prototxt.read_binary_net,
    "a .solverstate": prototxt.read_binary_state,
    "a .binaryproto (a mean or another array)": prototxt.read_blob,
}


@pytest.mark.parametrize("wanted", READERS)
@pytest.mark.parametrize("given_kind", CONTENT)
def test_wrong_kind_is_named(tmp_path, wanted, given_kind):
    path = tmp_path / "file"
    path.write_bytes(CONTENT[given_kind])
    if wanted == given_kind:
        READERS[wanted](path)
        return
    with pytest.raises(ValueError, match=re.escape(str(path))) as error:
        READERS[wanted](path)
    text_only = {wanted, given_kind} <= {"a net prototxt", "a solver prototxt", "a text file"}
    unreadable = given_kind == "a binary file of unknown kind"
    assert given_kind in str(error.value) or unreadable or (text_only and ":1:" in str(error.value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("reader", READERS.values())
def test_missing_empty_and_folder(tmp_path, reader, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"'no.file' does not exist.*{tmp_path}"):
        reader("no.file")
    with pytest.raises(ValueError, match="is a folder"):
        reader(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="'empty' is empty"):
        reader("empty")


@pytest.mark.parametrize("keep", [1, 5, 9, 14, 20])
def test_cut_off_weights(tmp_path, keep):
    path = tmp_path / "w.caffemodel"
    path.write_bytes(net_bytes()[:keep])
    with pytest.raises(ValueError, match=r"cut off|was expected"):
        prototxt.read_binary_net(path)


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_give_a_message_or_an_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(content)
    for reader in READERS.values():
        try:
            reader(path)
        except ValueError as error:
            assert "\n" not in str(error), error


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 60), st.integers(0, 255))
def test_one_byte_changed(tmp_path_factory, at, value):
    content = bytearray(net_bytes())
    content[at % len(content)] = value
    path = tmp_path_factory.mktemp("one") / "w.caffemodel"
    path.write_bytes(bytes(content))
    try:
        prototxt.read_binary_net(path)
    except ValueError as error:
        assert os.fspath(path) in str(error)
