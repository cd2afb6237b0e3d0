"""Pictures of nets: what is in the graph, and what happens without pydot or Graphviz."""

from __future__ import annotations

import sys

import pytest

import caffe
from caffe import draw
from caffe import layers as L
from caffe import params as P
from caffe.prototxt import read_net

pytest.importorskip("pydot", reason="pydot, which draws nets, is not installed")


def small():
    n = caffe.NetSpec()
    n.data, n.label = L.Data(batch_size=64, source="some|where", ntop=2)
    n["odd <name>"] = L.Convolution(
        n.data,
        num_output=7,
        kernel_size=[3, 5],
        stride=2,
        param=[dict(lr_mult=1), dict(lr_mult=2.5)],
    )
    n.relu = L.ReLU(n["odd <name>"], in_place=True)
    n.pool = L.Pooling(n.relu, pool=P.Pooling.AVE, kernel_h=2, kernel_w=3)
    n.loss = L.SoftmaxWithLoss(n.pool, n.label, include=dict(phase=caffe.TRAIN))
    n.accuracy = L.Accuracy(n.pool, n.label, include=dict(phase=caffe.TEST))
    return n.to_proto()


def test_all_layers_and_blobs_are_in_the_graph() -> None:
    graph = draw.get_pydot_graph(small(), "LR")
    shapes = [node.get("shape") for node in graph.get_nodes()]
    assert shapes.count("record") == 6
    assert shapes.count("octagon") == 6  # data, label, convolution's, pool, loss, accuracy
    assert len(graph.get_edges()) == 2 + 2 + 2 + 2 + 3 + 3


def test_labels() -> None:
    data, conv, relu, pool = small().layer[:4]
    assert draw.get_layer_label(conv, "TB") == (
        "odd <name>\n(Convolution)\nkernel size: 3x5\nstride: 2\npad: 0"
    )
    assert draw.get_layer_label(conv, "LR", True).endswith("  lr_mult: 1, 2.5")
    assert draw.get_layer_label(pool, "TB") == (
        "pool\n(AVE Pooling)\nkernel size: 2x3\nstride: 1\npad: 0"
    )
    assert draw.get_layer_label(relu, "LR", True) == "relu  (ReLU)"
    assert [draw.get_edge_label(layer) for layer in (data, conv, relu)] == ["Batch 64", "7", ""]


def test_one_phase() -> None:
    text = draw.draw_net(small(), "TB", "dot", phase=caffe.TEST).decode()
    assert "accuracy" in text
    assert "SoftmaxWithLoss" not in text


def test_names_are_escaped() -> None:
    text = draw.draw_net(small(), "TB", "dot").decode()
    assert r"odd \<name\>\n(Convolution)" in text
    assert '"odd <name>_blob" [label="odd <name>"' in text


def test_every_model_can_be_drawn(tmp_path) -> None:
    for name in ("lenet", "fashion_cnn", "bvlc_reference_caffenet"):
        path = tmp_path / f"{name}.dot"
        draw.draw_net_to_file(read_net(f"models/{name}/train_val.prototxt"), path)
        assert path.read_text().startswith("digraph")


def test_pictures_are_graphvizs(tmp_path, monkeypatch) -> None:
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\necho "$1"; cat "$2"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    draw.draw_net_to_file(small(), str(tmp_path / "net.png"))
    assert (tmp_path / "net.png").read_text().startswith("-Tpng\ndigraph")
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ValueError, match="Graphviz cannot draw the net as 'xyz'"):
        draw.draw_net(small(), "LR", "xyz")


def test_what_is_missing_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="format png needs Graphviz"):
        draw.draw_net(small(), "LR")
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(ImportError, match=r"pip install 'comet-caffe\[draw\]'"):
        draw.draw_net(small(), "LR")


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="rankdir is 'lr'; did you mean 'LR'"):
        draw.get_pydot_graph(small(), "lr")
    with pytest.raises(ValueError, match="has no ending"):
        draw.draw_net_to_file(small(), "picture")
