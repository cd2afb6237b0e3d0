#!/usr/bin/env python3
"""Writes docs/layers.md: every layer type with its parameters, formulas and what is kept of it.

    python scripts/layer_docs.py            # writes the file
    python scripts/layer_docs.py --check    # says whether it is up to date

Parameters and defaults come from the descriptors of caffe.proto, texts from the head of each
layer's source, and what is kept from the layers themselves, made and asked with the options below.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

from caffe._core import Error, MemoryKind, Tensor
from caffe._core.layers import ForwardContext, Need, Propagation, Quality
from caffe.layer_types import factory
from caffe.proto import caffe_pb2 as pb

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "docs" / "layers.md"
WIDTH = 100
IMAGE = (4, 8, 16, 16)
VECTOR = (64, 32)

Shape = tuple[int, ...]


@dataclass
class Entry:
    """What the page has to know of a layer type beyond what it finds out."""

    source: str  # under ROOT; "#Name" picks the text of that struct or class
    params: tuple[str, ...] = ()  # fields of LayerParameter that the layer reads
    bottoms: tuple[Shape, ...] = (IMAGE,)  # () where the layer cannot be tried out here
    options: tuple[str, ...] = ("",)  # ways to try it
    tops: int = 1
    more: str = ""  # another source, whose text follows


FUNCTIONS = "caffe/layers/elementwise_functions.hpp"
CPP = "caffe/layers"
PYTHON = "python/caffe/layer_types"
LABELS: Shape = (64,)

LAYERS = {
    "AbsVal": Entry(f"{FUNCTIONS}#AbsVal"),
    "Accuracy": Entry(f"{PYTHON}/accuracy.py", ("accuracy_param",), (VECTOR, LABELS)),
    "ArgMax": Entry(f"{PYTHON}/arg_max.py", ("argmax_param",)),
    "BNLL": Entry(f"{FUNCTIONS}#BNLL"),
    "BatchNorm": Entry(
        f"{CPP}/batch_norm.hpp",
        ("batch_norm_param",),
        options=("", "batch_norm_param { use_global_stats: true }"),
    ),
    "BatchReindex": Entry(f"{PYTHON}/batch_reindex.py", (), (VECTOR, LABELS)),
    "Bias": Entry(f"{CPP}/bias.hpp", ("bias_param",)),
    "Clip": Entry(f"{CPP}/clip.hpp", ("clip_param",), options=("clip_param { min: 0 max: 1 }",)),
    "Concat": Entry(f"{CPP}/concat.hpp", ("concat_param",), (IMAGE, IMAGE)),
    "ContrastiveLoss": Entry(
        f"{PYTHON}/contrastive_loss.py", ("contrastive_loss_param",), (VECTOR, VECTOR, LABELS)
    ),
    "Convolution": Entry(
        f"{CPP}/convolution.hpp",
        ("convolution_param",),
        options=("convolution_param { num_output: 8 kernel_size: 3 }",),
    ),
    "Crop": Entry(f"{PYTHON}/crop.py", ("crop_param",), (IMAGE, (4, 8, 8, 8))),
    "Data": Entry(f"{PYTHON}/data.py", ("data_param", "transform_param"), ()),
    "Deconvolution": Entry(
        f"{CPP}/deconvolution.hpp",
        ("convolution_param",),
        options=("convolution_param { num_output: 8 kernel_size: 3 }",),
    ),
    "Dropout": Entry(f"{CPP}/dropout.hpp", ("dropout_param",)),
    "DummyData": Entry(f"{PYTHON}/dummy_data.py", ("dummy_data_param",), ()),
    "ELU": Entry(
        f"{FUNCTIONS}#ELU",
        ("elu_param",),
        options=("", "elu_param { alpha: 0.5 }", "elu_param { alpha: -1 }"),
    ),
    "Eltwise": Entry(
        f"{CPP}/eltwise.hpp",
        ("eltwise_param",),
        (IMAGE, IMAGE),
        ("", "eltwise_param { operation: PROD }", "eltwise_param { operation: MAX }"),
    ),
    "Embed": Entry(
        f"{PYTHON}/embed.py",
        ("embed_param",),
        (LABELS,),
        ("embed_param { num_output: 4 input_dim: 8 }",),
    ),
    "EuclideanLoss": Entry(f"{PYTHON}/euclidean_loss.py", (), (VECTOR, VECTOR)),
    "Exp": Entry(f"{FUNCTIONS}#Exp", ("exp_param",)),
    "Filter": Entry(f"{PYTHON}/filter.py", (), (VECTOR, LABELS)),
    "Flatten": Entry(f"{CPP}/flatten.hpp", ("flatten_param",)),
    "HDF5Data": Entry(f"{PYTHON}/hdf5_data.py", ("hdf5_data_param",), ()),
    "HDF5Output": Entry(f"{PYTHON}/hdf5_output.py", ("hdf5_output_param",), ()),
    "HingeLoss": Entry(f"{PYTHON}/hinge_loss.py", ("hinge_loss_param",), (VECTOR, LABELS)),
    "Im2col": Entry(
        f"{PYTHON}/im2col.py",
        ("convolution_param",),
        options=("convolution_param { kernel_size: 3 }",),
    ),
    "ImageData": Entry(f"{PYTHON}/image_data.py", ("image_data_param", "transform_param"), ()),
    "InfogainLoss": Entry(
        f"{PYTHON}/infogain_loss.py",
        ("infogain_loss_param", "loss_param"),
        (VECTOR, LABELS, (32, 32)),
    ),
    "InnerProduct": Entry(
        f"{CPP}/inner_product.hpp",
        ("inner_product_param",),
        options=("inner_product_param { num_output: 8 }",),
    ),
    "Input": Entry(f"{PYTHON}/input.py", ("input_param",), ()),
    "LRN": Entry(f"{CPP}/lrn.hpp", ("lrn_param",)),
    "LSTM": Entry(
        f"{PYTHON}/lstm.py",
        ("recurrent_param",),
        ((8, 16, 32), (8, 16)),
        ("recurrent_param { num_output: 32 }",),
        more=f"{PYTHON}/recurrent.py",
    ),
    "LSTMUnit": Entry(f"{PYTHON}/lstm_unit.py", (), ((1, 16, 32), (1, 16, 128), (1, 16)), tops=2),
    "Log": Entry(f"{FUNCTIONS}#Log", ("log_param",)),
    "MVN": Entry(
        f"{CPP}/mvn.hpp", ("mvn_param",), options=("", "mvn_param { normalize_variance: false }")
    ),
    "MemoryData": Entry(f"{PYTHON}/memory_data.py", ("memory_data_param",), ()),
    "MultinomialLogisticLoss": Entry(
        f"{PYTHON}/multinomial_logistic_loss.py", (), (VECTOR, LABELS)
    ),
    "PReLU": Entry(f"{CPP}/prelu.hpp", ("prelu_param",), options=("", "param { lr_mult: 0 }")),
    "Parameter": Entry(f"{PYTHON}/parameter.py", ("parameter_param",), ()),
    "Pooling": Entry(
        f"{CPP}/pooling.hpp",
        ("pooling_param",),
        options=(
            "pooling_param { kernel_size: 2 stride: 2 }",
            "pooling_param { pool: AVE kernel_size: 2 stride: 2 }",
            "pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }",
        ),
    ),
    "Power": Entry(
        f"{FUNCTIONS}#Power",
        ("power_param",),
        options=("", "power_param { power: 2 }", "power_param { power: 0.5 }"),
    ),
    "Python": Entry(f"{PYTHON}/base.py#Layer", ("python_param",), ()),
    "RNN": Entry(
        f"{PYTHON}/rnn.py",
        ("recurrent_param",),
        ((8, 16, 32), (8, 16)),
        ("recurrent_param { num_output: 32 }",),
        more=f"{PYTHON}/recurrent.py",
    ),
    "ReLU": Entry(
        f"{CPP}/relu.hpp", ("relu_param",), options=("", "relu_param { negative_slope: -0.1 }")
    ),
    "Reduction": Entry(
        f"{CPP}/reduction.hpp",
        ("reduction_param",),
        options=(
            "",
            "reduction_param { operation: ASUM }",
            "reduction_param { operation: SUMSQ }",
            "reduction_param { operation: MEAN }",
        ),
    ),
    "Reshape": Entry(
        f"{CPP}/reshape.hpp",
        ("reshape_param",),
        options=("reshape_param { shape { dim: 0 dim: -1 } }",),
    ),
    "SPP": Entry(f"{PYTHON}/spp.py", ("spp_param",), options=("spp_param { pyramid_height: 3 }",)),
    "Scale": Entry(
        f"{CPP}/scale.hpp", ("scale_param",), options=("", "scale_param { bias_term: true }")
    ),
    "Sigmoid": Entry(f"{FUNCTIONS}#Sigmoid", ("sigmoid_param",)),
    "SigmoidCrossEntropyLoss": Entry(
        f"{PYTHON}/sigmoid_cross_entropy_loss.py", ("loss_param",), (VECTOR, VECTOR)
    ),
    "Silence": Entry(f"{PYTHON}/silence.py", tops=0),
    "Slice": Entry(f"{CPP}/slice.hpp", ("slice_param",), tops=2),
    "Softmax": Entry(f"{CPP}/softmax.hpp", ("softmax_param",), (VECTOR,)),
    "SoftmaxWithLoss": Entry(
        f"{CPP}/softmax_loss.hpp", ("loss_param", "softmax_param"), (VECTOR, LABELS)
    ),
    "Split": Entry(f"{CPP}/split.hpp", tops=2),
    "Swish": Entry(f"{FUNCTIONS}#Swish", ("swish_param",)),
    "TanH": Entry(f"{FUNCTIONS}#TanH", ("tanh_param",)),
    "Threshold": Entry(f"{FUNCTIONS}#Threshold", ("threshold_param",)),
    "Tile": Entry(f"{PYTHON}/tile.py", ("tile_param",), options=("tile_param { tiles: 2 }",)),
    "WindowData": Entry(
        f"{PYTHON}/window_data.py",
        ("window_data_param", "transform_param"),
        (),
        more="python/caffe/data/window_file.py",
    ),
}

HEAD = """\
# Layer types

Made by `scripts/layer_docs.py` from the sources; change those, and run it. `x` and `y` are bottoms
and tops, `dx` is the gradient of the loss with respect to `x`, and a shape reads `N x C x H x W`.

Under compression, what no backward pass reads is not kept at all. Of the rest, the tables below say
how well backward must know it when every bottom wants a gradient and every parameter learns
(`lr_mult: 0` is written out where it makes a difference). Where several layers read one value, the
most demanding one decides.

| in the tables | how it is kept |
|---|---|
| not read | not at all |
| sign | one bit a value |
| within a bound | compressed: LOSSLESS to the bit, others within the [bound](error-bounds.md) |
| within a bound, with sign | the same, and no value changes its sign or becomes or leaves zero |
| exactly | as it is, uncompressed |

"Of its own" is what a layer keeps besides in a form of its own, here in bits for each value of
bottom 0. "In place" says whether it may write its top over its bottom (forward) and its gradient
over the top's (backward).
"""

WORDS = {
    Quality.NOTHING: "not read",
    Quality.SIGN: "sign",
    Quality.BOUNDED: "within a bound",
    Quality.BOUNDED_SIGN: "within a bound, with sign",
    Quality.EXACT: "exactly",
}


def page() -> str:
    """Return the whole page.

    Raises:
        ValueError: a layer type has no entry in LAYERS, or an entry no layer.
    """
    missing = sorted(set(factory.layer_types()) ^ set(LAYERS))
    if missing:
        raise ValueError(
            f"LAYERS in {Path(__file__).name} and the layer types differ in: {', '.join(missing)}"
        )
    sections = [section(kind, LAYERS[kind]) for kind in sorted(LAYERS, key=str.lower)]
    return "\n".join([HEAD, *sections])


def section(kind: str, entry: Entry) -> str:
    """Return the part about one type."""
    lines = [f"## {kind}", "", *text_of(kind, entry.source)]
    if entry.more:
        lines += text_of(kind, entry.more)
    for name in entry.params:
        lines += parameter_table(name)
    if entry.bottoms:
        lines += kept_table(kind, entry)
    return "\n".join(lines)


# -- texts -----------------------------------------------------------------------------------------


def text_of(kind: str, source: str) -> list[str]:
    """Return the text at the head of a source as Markdown: indented lines are formulas."""
    path, _, name = source.partition("#")
    content = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".py"):
        node: ast.Module | ast.ClassDef = ast.parse(content)
        if name:
            node = next(n for n in node.body if isinstance(n, ast.ClassDef) and n.name == name)
        docstring = ast.get_docstring(node)
        if docstring is None:
            raise ValueError(f"{path} has no docstring")
        raw = docstring.splitlines()
    else:
        lines = content.splitlines()
        end = next((i for i, line in enumerate(lines) if line.startswith(f"struct {name}")), 0)
        start = end
        while name and lines[start - 1].startswith("//"):
            start -= 1
        comment = lines[start:end] if name else lines
        raw = []
        for line in comment:
            if not line.startswith("//"):
                break
            raw.append(line[3:])
    raw[0] = re.sub(rf"^{kind}(\.|:|,) ?", "", raw[0])
    raw[0] = raw[0][:1].upper() + raw[0][1:]
    if path == FUNCTIONS:  # what elementwise.hpp says of all of them
        raw[0] = f"{raw[0]} Bottom and top of any one shape.".lstrip()
    return markdown(raw)


def markdown(raw: list[str]) -> list[str]:
    """Return paragraphs and code blocks, each followed by an empty line."""
    blocks: list[tuple[bool, list[str]]] = []
    for line in [*raw, ""]:
        if not line.strip():
            blocks.append((False, []))
            continue
        is_code = line.startswith("  ")
        begins = line.startswith("Parameters:")
        if not blocks or blocks[-1][0] != is_code or begins:
            blocks.append((is_code, []))
        blocks[-1][1].append(line)
    result = []
    for is_code, lines in blocks:
        if is_code:
            result += ["```text", *textwrap.dedent("\n".join(lines)).splitlines(), "```", ""]
        elif lines:
            for paragraph in re.split(r" (?=Backward reads)", " ".join(lines)):
                result += [*textwrap.wrap(paragraph, WIDTH, break_on_hyphens=False), ""]
    return result


# -- parameters ------------------------------------------------------------------------------------


def parameter_table(name: str) -> list[str]:
    """Return the fields of one parameter message and their defaults."""
    message = getattr(pb.LayerParameter(), name)
    needed = message.FindInitializationErrors()
    rows = [f"| `{name}` | type | default |", "|---|---|---|"]
    for field in sorted(message.DESCRIPTOR.fields, key=lambda field: field.number):
        kind = type_of(field)
        if isinstance(field.default_value, list):
            kind += ", any number"
        value = "needed" if field.name in needed else default(field)
        rows.append(f"| {field.name} | {kind} | {value} |")
    return [*rows, ""]


def type_of(field: FieldDescriptor) -> str:
    """Return the field's type as prototxt users know it."""
    if field.message_type is not None:
        return field.message_type.name
    if field.enum_type is not None:
        return " ".join(value.name for value in field.enum_type.values)
    names = {FieldDescriptor.CPPTYPE_BOOL: "bool", FieldDescriptor.CPPTYPE_STRING: "text"}
    numbers = (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
    return names.get(field.cpp_type, "number" if field.cpp_type in numbers else "whole number")


def default(field: FieldDescriptor) -> str:
    """Return the default that the format gives, if it gives one."""
    if not field.has_default_value:
        return ""
    if field.enum_type is not None:
        return field.enum_type.values_by_number[field.default_value].name
    if isinstance(field.default_value, bool):
        return str(field.default_value).lower()
    if isinstance(field.default_value, str):
        return field.default_value
    return f"{field.default_value:g}"


# -- what is kept ----------------------------------------------------------------------------------


def kept_table(kind: str, entry: Entry) -> list[str]:
    """Return what backward reads and what the layer keeps, for each way to try it."""
    bottoms = [f"bottom {index}" for index in range(len(entry.bottoms))]
    tops = [f"top {index}" for index in range(entry.tops)]
    head = ["options", *bottoms, *tops, "of its own", "in place"]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for options in entry.options:
        rows.append("| " + " | ".join(try_out(kind, entry, options)) + " |")
    return [*rows, ""]


def try_out(kind: str, entry: Entry, options: str) -> list[str]:
    """Return one row: the options, needs, own bits and in-place traits."""
    param = text_format.Parse(f'type: "{kind}" {options}', pb.LayerParameter())
    param.bottom.extend(f"b{index}" for index in range(len(entry.bottoms)))
    param.top.extend(f"t{index}" for index in range(entry.tops))
    layer = factory.make_layer(param, pb.TRAIN, 0)
    shapes = layer.reshape([list(shape) for shape in entry.bottoms])
    traits = layer.traits()
    learns = [not param.param or param.param[0].lr_mult != 0 for _ in layer.parameters]
    wanted = [index < traits.differentiable_bottoms for index in range(len(entry.bottoms))]
    needs = layer.needs(Propagation(wanted, learns))
    own = 0.0 if traits.alias else own_bits(layer, entry, shapes)
    places = [
        name
        for name, may in (
            ("forward", traits.forward_in_place),
            ("backward", traits.backward_in_place),
        )
        if may
    ]
    if traits.alias:
        places = ["the same buffer"]
    shown = f"`{options}`" if options else "defaults"
    return [
        shown,
        *map(words, [*needs.bottoms, *needs.tops]),
        f"{own:.3g} bit{'' if own == 1 else 's'}" if own else "nothing",
        ", ".join(places) or "no",
    ]


def words(need: Need) -> str:
    """Return a need as the page says it."""
    return WORDS[need.quality]


def own_bits(layer: factory.LayerLike, entry: Entry, shapes: list[list[int]]) -> float:
    """Return what the layer keeps after a forward pass, in bits for each value of bottom 0."""
    src = []
    for shape in entry.bottoms:
        tensor = Tensor(list(shape), MemoryKind.RAW_ACTIVATIONS)
        tensor.numpy()[...] = 0 if shape == LABELS else 0.5  # labels and indices need be whole
        src.append(tensor)
    dst = [Tensor(shape, MemoryKind.RAW_ACTIVATIONS) for shape in shapes]
    if isinstance(layer, factory.BuiltInRunner) and layer.layer.shaped_by_data:
        dst = [Tensor(s, MemoryKind.RAW_ACTIVATIONS) for s in layer.shapes_by_data(src)]
    layer.forward(src, dst, ForwardContext(train=True))
    return 8 * layer.saved_bytes() / int(np.prod(entry.bottoms[0]))


def main(arguments: list[str]) -> int:
    """Write or check the page; returns the exit status."""
    try:
        text = page()
    except (ValueError, Error) as error:
        print(f"layer_docs.py: error: {error}", file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        if OUTPUT.exists() and OUTPUT.read_text(encoding="utf-8") == text:
            return 0
        print("docs/layers.md is out of date; run: python scripts/layer_docs.py", file=sys.stderr)
        return 1
    OUTPUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
