"""The upgrade commands write what BVLC Caffe's tools wrote, to the byte."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from caffe.cli import main as cli
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_binary_net

CASES = Path(__file__).parents[1] / "proto" / "upgrade"
TEXTS = {
    "v1": "upgrade_net_proto_text",
    "input_fields": "upgrade_net_proto_text",
    "solver_old": "upgrade_solver_proto_text",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, expected = tmp_path / "new", CASES / f"{name}.upgraded.prototxt"
    assert cli.main([TEXTS[name], str(CASES / f"{name}.prototxt"), str(target)]) == 0
    assert target.read_text() == expected.read_text()
    assert "already" not in capsys.readouterr().err
    assert cli.main([TEXTS[name], str(target), str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_text() == expected.read_text()
    assert "is in the current format already" in capsys.readouterr().err


def test_weights(tmp_path: Path) -> None:
    net = pb.NetParameter(name="n", input=["x"], input_dim=[1, 2, 3, 4])
    old = net.layers.add(name="ip", type=pb.V1LayerParameter.INNER_PRODUCT, blobs_lr=[1, 2])
    old.blobs.add(num=1, channels=1, height=1, width=2, data=[1, 2])
    source, target = tmp_path / "old.caffemodel", tmp_path / "new.caffemodel"
    source.write_bytes(net.SerializeToString())
    assert cli.main(["upgrade_net_proto_binary", str(source), str(target)]) == 0
    written = pb.NetParameter.FromString(target.read_bytes())
    assert written == read_binary_net(source)
    assert [layer.type for layer in written.layer] == ["Input", "InnerProduct"]
    np.testing.assert_array_equal(written.layer[1].blobs[0].data, [1, 2])


@pytest.mark.parametrize("command", [*sorted(set(TEXTS.values())), "upgrade_net_proto_binary"])
def test_as_programs_of_their_own(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [command, "no.such.file", "out"])
    assert cli.program() == 1
    assert "file 'no.such.file' does not exist" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [command, "one"])
    assert cli.program() == 1
    assert f"needs two: caffe {command} FILE_IN FILE_OUT" in capsys.readouterr().err
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'\n{command} = "caffe.cli.main:program"\n' in text
