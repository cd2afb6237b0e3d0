"""caffe.proto against the list of Caffe's fields, and the generated code against caffe.proto."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor

from caffe.proto import caffe_pb2

PROTO = Path(caffe_pb2.__file__).with_name("caffe.proto")
OWN_FIELDS = {
    ("SolverParameter", "compression_param"): 1000,
    ("LayerParameter", "compression_param"): 1000,
    ("SolverState", "comet"): 1000,
}
OWN_MESSAGES = {"CompressionParameter", "CometState"}
SCALARS = {
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
}


def rows():
    with Path(__file__).with_name("caffe_schema.tsv").open() as stream:
        lines = [line for line in stream if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t"))


FIELDS = [row for row in rows() if not row["message"].startswith("enum ")]
ENUM_VALUES = [row for row in rows() if row["message"].startswith("enum ")]


def message(name):
    return caffe_pb2.DESCRIPTOR.message_types_by_name[name]


def enum(name):
    *owner, last = name.split(".")
    types = (
        message(owner[0]).enum_types_by_name if owner else caffe_pb2.DESCRIPTOR.enum_types_by_name
    )
    return types[last]


def is_repeated(field):
    # protobuf 7 deprecates `label`, protobuf 4 has nothing else.
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return field.label == FieldDescriptor.LABEL_REPEATED


def is_required(field):
    if hasattr(field, "is_required"):
        return field.is_required
    return field.label == FieldDescriptor.LABEL_REQUIRED


def type_name(field):
    of = field.message_type or field.enum_type
    return SCALARS[field.type] if of is None else of.full_name.removeprefix("caffe.")


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: f"{row['message']}.{row['field']}")
def test_field(row):
    field = message(row["message"]).fields_by_name[row["field"]]
    assert field.number == int(row["number"])
    assert is_repeated(field) == (row["label"] == "repeated")
    assert is_required(field) == (row["label"] == "required")
    assert type_name(field) == row["type"]
    assert field.GetOptions().packed == (row["packed"] == "packed")
    assert field.has_default_value == (row["default"] != "")
    if row["default"]:
        default = field.default_value
        if field.enum_type is not None:
            default = field.enum_type.values_by_number[default].name
        elif isinstance(default, bool):
            default = str(default).lower()
        elif isinstance(default, float):
            assert default == pytest.approx(float(row["default"]), rel=1e-6)
            return
        assert str(default) == row["default"]


@pytest.mark.parametrize("row", ENUM_VALUES, ids=lambda row: f"{row['message'][5:]}.{row['field']}")
def test_enum_value(row):
    assert enum(row["message"][5:]).values_by_name[row["field"]].number == int(row["number"])


def test_nothing_beside_the_list_and_our_own():
    listed = {(row["message"], row["field"]) for row in FIELDS}
    for name, descriptor in caffe_pb2.DESCRIPTOR.message_types_by_name.items():
        if name in OWN_MESSAGES:
            continue
        for field in descriptor.fields:
            if (name, field.name) not in listed:
                assert OWN_FIELDS[(name, field.name)] == field.number


def test_own_fields_pass_through_bytes():
    solver = caffe_pb2.SolverParameter()
    solver.compression_param.mode = caffe_pb2.CompressionParameter.ADAPTIVE
    again = caffe_pb2.SolverParameter.FromString(solver.SerializeToString())
    assert again.compression_param.mode == 3
    assert again.compression_param.bound_type == caffe_pb2.CompressionParameter.STD
    assert again.compression_param.interval == 1000


def test_generated_code_is_current(tmp_path):
    protoc = shutil.which("protoc")
    if protoc is None:
        pytest.skip("protoc is not installed (Debian: apt-get install protobuf-compiler)")
    version = subprocess.run([protoc, "--version"], capture_output=True, text=True, check=True)
    if not version.stdout.startswith("libprotoc 3.21."):
        pytest.skip(f"caffe_pb2.py was made by protoc 3.21, here is {version.stdout.strip()}")
    source = "caffe.proto"
    subprocess.run(
        [protoc, f"-I{PROTO.parent}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", source],
        check=True,
    )
    for name in ("caffe_pb2.py", "caffe_pb2.pyi"):
        assert (tmp_path / name).read_text() == (PROTO.parent / name).read_text(), (
            f"{name} is out of date: make it anew from {source} (HACKING.md, Building)"
        )
