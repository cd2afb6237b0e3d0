"""Pictures of nets as graphs of layers and blobs: pycaffe's caffe.draw.

Needs pydot, the extra `draw`; every format but .dot needs Graphviz's program `dot` as well.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from caffe.atomic_file import write_atomically
from caffe.graph import filter_net
from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb

_BLOB_STYLE = {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"}
_LAYER_STYLE = {"shape": "record", "style": "filled"}
_IN_PLACE_STYLE = {"shape": "record", "style": "filled,rounded"}
_COLORS = {
    "Convolution": "#FF5050",
    "Deconvolution": "#FF5050",
    "InnerProduct": "#CC33FF",
    "Pooling": "#FF9900",
}
_OTHER_COLOR = "#6495ED"
_RANKDIRS = ("LR", "RL", "TB", "BT")
#: Types whose window is worth a line of their label -> the message that has it.
_WINDOWS = {
    "Convolution": "convolution_param",
    "Deconvolution": "convolution_param",
    "Pooling": "pooling_param",
}


def get_pooling_types_dict() -> dict[int, str]:
    """Return number -> name of the kinds of pooling."""
    return {number: name for name, number in pb.PoolingParameter.PoolMethod.items()}


def get_edge_label(layer: pb.LayerParameter) -> str:
    """Return what stands at the edges that leave a layer: its batch size or number of outputs."""
    if layer.type == "Data":
        return f"Batch {layer.data_param.batch_size}"
    if layer.type in ("Convolution", "Deconvolution"):
        return str(layer.convolution_param.num_output)
    if layer.type == "InnerProduct":
        return str(layer.inner_product_param.num_output)
    return ""


def get_layer_lr_mult(layer: pb.LayerParameter) -> list[float]:
    """Return the lr_mult of a layer's parameters, as far as prototxt gives them; else [1.0]."""
    if layer.type not in ("Convolution", "Deconvolution", "InnerProduct"):
        return []
    return [spec.lr_mult for spec in layer.param] or [1.0]


def get_layer_label(layer: pb.LayerParameter, rankdir: str, display_lrm: bool = False) -> str:
    """Return a layer's name, type and window, beside each other or as lines.

    Args:
        layer: the layer.
        rankdir: direction of the graph; labels are lines where it runs from left to right.
        display_lrm: name the learning rate multipliers too.
    """
    lines = [layer.name, f"({layer.type})"]
    if layer.type in _WINDOWS:
        own = getattr(layer, _WINDOWS[layer.type])
        if layer.type == "Pooling":
            lines[1] = f"({get_pooling_types_dict()[own.pool]} {layer.type})"
        lines += [
            f"kernel size: {_sizes(own, 'kernel_size', 'kernel', 'all')}",
            f"stride: {_sizes(own, 'stride', 'stride', '1')}",
            f"pad: {_sizes(own, 'pad', 'pad', '0')}",
        ]
    rates = get_layer_lr_mult(layer) if display_lrm else []
    if rates:
        lines.append("lr_mult: " + ", ".join(f"{rate:g}" for rate in rates))
    return ("\n" if rankdir in ("TB", "BT") else "  ").join(lines)


def _sizes(own: Any, name: str, prefix: str, default: str) -> str:
    """Return a window's size along its axes, however prototxt gives it."""
    both = [f"{prefix}_h", f"{prefix}_w"]
    if any(own.HasField(one) for one in both):
        return "x".join(str(getattr(own, one)) for one in both)
    value = getattr(own, name)
    if isinstance(value, int):
        return str(value) if own.HasField(name) else default
    return "x".join(map(str, value)) or default


def choose_color_by_layertype(layertype: str) -> str:
    """Return the colour of a layer's box, as #RRGGBB."""
    return _COLORS.get(layertype, _OTHER_COLOR)


def get_pydot_graph(
    caffe_net: pb.NetParameter,
    rankdir: str,
    label_edges: bool = True,
    phase: int | None = None,
    display_lrm: bool = False,
) -> Any:
    """Return a net as a pydot.Dot.

    Args:
        caffe_net: the net, in the current format (caffe.prototxt.read_net() brings it there).
        rankdir: direction: LR, RL, TB or BT.
        label_edges: write at edges how many outputs a layer has.
        phase: draw only the layers of this phase; None: all.
        display_lrm: write learning rate multipliers.

    Raises:
        ImportError: pydot is missing.
        ValueError: another direction, or layers with include and exclude rules both.
    """
    pydot = _pydot()
    if rankdir not in _RANKDIRS:
        raise ValueError(f"rankdir is '{rankdir}'{suggestion(rankdir, _RANKDIRS)}")
    if phase is not None:
        caffe_net = filter_net(caffe_net, _state(caffe_net, phase))
    graph = pydot.Dot(_quoted(caffe_net.name or "Net"), graph_type="digraph", rankdir=rankdir)
    blobs: dict[str, None] = {}
    for index, layer in enumerate(caffe_net.layer):
        node = _quoted(f"{index} {layer.name}_{layer.type}")  # two phases may share a name
        in_place = list(layer.top) == list(layer.bottom) and len(layer.top) == 1
        graph.add_node(
            pydot.Node(
                node,
                label=_quoted(get_layer_label(layer, rankdir, display_lrm), record=True),
                fillcolor=choose_color_by_layertype(layer.type),
                **(_IN_PLACE_STYLE if in_place else _LAYER_STYLE),
            )
        )
        blobs.update(dict.fromkeys([*layer.bottom, *layer.top]))
        for bottom in layer.bottom:
            graph.add_edge(pydot.Edge(_blob(bottom), node, label='""'))
        label = get_edge_label(layer) if label_edges else ""
        for top in layer.top:
            graph.add_edge(pydot.Edge(node, _blob(top), label=_quoted(label)))
    for blob in blobs:
        graph.add_node(pydot.Node(_blob(blob), label=_quoted(blob), **_BLOB_STYLE))
    return graph


def _state(net: pb.NetParameter, phase: int) -> pb.NetState:
    state = pb.NetState()
    state.CopyFrom(net.state)
    state.phase = phase  # type: ignore[assignment]
    return state


def _blob(name: str) -> str:
    return _quoted(f"{name}_blob")


def _quoted(text: str, record: bool = False) -> str:
    """Return a string as DOT writes it; in the labels of records, more signs have a meaning."""
    for sign in '\\"' + ("{}|<>" if record else ""):
        text = text.replace(sign, f"\\{sign}")
    return '"' + text.replace("\n", "\\n") + '"'


def _pydot() -> Any:
    try:
        return importlib.import_module("pydot")
    except ImportError as error:
        raise ImportError("drawing nets needs pydot: pip install 'comet-caffe[draw]'") from error


def draw_net(
    caffe_net: pb.NetParameter,
    rankdir: str,
    ext: str = "png",
    phase: int | None = None,
    display_lrm: bool = False,
) -> bytes:
    """Return the picture of a net, in a format of Graphviz: png, svg, pdf, dot and more.

    Args:
        caffe_net: see get_pydot_graph(), as the arguments below.
        rankdir: direction.
        ext: the format.
        phase: phase to draw.
        display_lrm: write learning rate multipliers.

    Raises:
        ImportError: pydot is missing.
        FileNotFoundError: Graphviz is missing; the format dot does without.
        ValueError: another direction, or a format that Graphviz does not know.
    """
    graph = get_pydot_graph(caffe_net, rankdir, phase=phase, display_lrm=display_lrm)
    if ext in ("dot", "gv"):
        return str(graph.to_string()).encode()
    try:
        return bytes(graph.create(format=ext))
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"format {ext} needs Graphviz (apt-get install graphviz); a file that ends in .dot "
            "does without"
        ) from error
    except AssertionError as error:  # what pydot raises where the program fails
        raise ValueError(f"Graphviz cannot draw the net as '{ext}': {error}") from error


def draw_net_to_file(
    caffe_net: pb.NetParameter,
    filename: str | Path,
    rankdir: str = "LR",
    phase: int | None = None,
    display_lrm: bool = False,
) -> None:
    """Draw a net to a file, whose ending is the format; see draw_net().

    Raises as draw_net(), ValueError for a name without ending, OSError if it cannot be written.
    """
    ending = Path(filename).suffix[1:]
    if not ending:
        raise ValueError(f"'{filename}' has no ending: it says the format, such as .png or .dot")
    write_atomically(filename, draw_net(caffe_net, rankdir, ending, phase, display_lrm))
