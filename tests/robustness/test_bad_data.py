"""What Caffe's users met in data and tools, through the command line: one line says what, where.

The layers have tests of their own for such things; here whole commands run.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from caffe.cli import main as cli
from caffe.data import lmdb_writer
from caffe.data.datum import array_to_datum
from caffe.data.lmdb_source import LmdbSource
from caffe.data.lmdb_writer import LmdbWriter
from caffe.proto import caffe_pb2 as pb

NET = """
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { source: "db" batch_size: 4 backend: LMDB } transform_param { %s } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def database(*images: tuple[int, int, int], labels=(0, 1, 2, 3)) -> None:
    with LmdbWriter("db", overwrite=True) as writer:
        for i, shape in enumerate(images):
            datum = array_to_datum(np.full(shape, i, np.uint8), labels[i % len(labels)])
            writer.put(f"{i:04}_image {i}.png", datum.SerializeToString())


def error(capsys, line: str) -> str:
    """Run a command that must fail; returns its only line of error."""
    capsys.readouterr()
    assert cli.main(line.split()) == 1
    lines = re.findall("^caffe: error: (.*)$", capsys.readouterr().err, re.MULTILINE)
    assert len(lines) == 1
    return lines[0]


def test_of_many_unreadable_images_the_first_are_named_and_all_counted(capsys) -> None:
    Image.new("RGB", (3, 3)).save("a.png")
    Path("b").mkdir()
    Path("list").write_text("a.png 0\nb 1\n" + "".join(f"no {i}.png 0\n" for i in range(50)))
    assert cli.main(["convert_imageset", ".", "list", "db"]) == 0
    lines = [line.split("] ", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert lines[0] == "Skipped list:2: 'b': Is a directory"
    assert lines[1] == "Skipped list:3: 'no 0.png' does not exist below the root folder"
    assert len(lines) == 22
    assert lines[-2:] == [
        "Skipped 51 of 52 images; -strict stops at the first",
        "Processed 1 files.",
    ]


@pytest.mark.parametrize("line", ["a.png cat", "a.png 1.5", "a.png", "a.png 1e2", "a.png,1"])
def test_labels_that_are_none_make_no_database(capsys, line) -> None:
    Image.new("RGB", (3, 3)).save("a.png")
    Path("list").write_text(f"a.png 0\n{line}\n")
    assert error(capsys, "convert_imageset . list db") == (
        f"list:2: expected 'path label' with an integer label, got '{line}'"
    )
    assert not Path("db").exists()


def test_names_and_lines_as_people_write_them(capsys) -> None:
    names = ["a b.png", "c.png", "d\te.png", "f  g.png", "ö 犬.png"]
    for name in names:
        Image.new("RGB", (3, 3)).save(name)
    lines = f"{names[0]} 1 \r\n{names[1]}\t2\r\n{names[2]}\t3\t \n\n{names[3]} 4\n{names[4]} 5"
    Path("list").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    assert cli.main(["convert_imageset", "-strict", ".", "list", "db"]) == 0
    source = LmdbSource("db")
    found = [source.read() for _ in range(len(source))]
    source.close()
    assert [key.decode()[9:] for key, _ in found] == names
    assert [pb.Datum.FromString(value).label for _, value in found] == [1, 2, 3, 4, 5]


def test_a_map_that_is_full_grows(monkeypatch) -> None:
    monkeypatch.setattr(lmdb_writer, "_FIRST_MAP_SIZE", 1 << 16)
    Image.effect_noise((200, 200), 50).save("a.png")
    Path("list").write_text("a.png 0\n" * 30)
    assert cli.main(["convert_imageset", ".", "list", "db"]) == 0
    assert Path("db/data.mdb").stat().st_size > 30 * 3 * 200 * 200


def test_images_of_several_sizes_name_key_and_both(capsys) -> None:
    database((3, 4, 4), (3, 4, 4), (3, 6, 4))
    assert error(capsys, "compute_image_mean db mean.binaryproto") == (
        "LMDB 'db', key b'0002_image 2.png': the image is 3x6x4, the first 3x4x4: a mean needs "
        "images of one size"
    )
    assert not Path("mean.binaryproto").exists()
    Path("net").write_text(NET % "")
    message = error(capsys, "time -model net -iterations 1")
    assert "layer 'data'" in message
    assert "key '0002_image 2.png': the image is 3x6x4, the first of its batch 3x4x4" in message


def test_a_mean_of_another_size_gives_both_and_a_hint(capsys) -> None:
    database(*[(3, 6, 6)] * 4)
    cli.main(["compute_image_mean", "db", "mean.binaryproto"])
    database(*[(3, 4, 4)] * 4)
    Path("net").write_text(NET % 'mean_file: "mean.binaryproto"')
    message = error(capsys, "time -model net -iterations 1")
    assert "layer 'data'" in message
    assert "the mean in 'mean.binaryproto' has shape 3x6x6, the images 3x4x4; compute" in message
    assert "or give a mean_value per channel" in message


@pytest.mark.parametrize("label", [5, 1000, -1, -(2**31)])
def test_labels_beyond_the_classes_name_layer_image_and_value(capsys, label) -> None:
    database(*[(3, 4, 4)] * 4, labels=(0, 1, label, 4))
    Path("net").write_text(NET % "")
    message = error(capsys, "time -model net -iterations 1")
    assert "layer 'loss'" in message
    assert f"the label of sample 2 is {label:g}, needs to be from 0 to 4" in message


def test_files_of_another_kind_are_called_what_they_are(capsys) -> None:
    database(*[(3, 4, 4)] * 4)
    state = pb.SolverState(iter=3, history=[pb.BlobProto(data=[1])])
    Path("mean.binaryproto").write_bytes(state.SerializeToString())
    Path("net").write_text(NET % 'mean_file: "mean.binaryproto"')
    message = error(capsys, "time -model net -iterations 1")
    assert "'mean.binaryproto' is a .solverstate" in message
    Path("net").write_text((NET % "").replace('"db"', '"net"'))
    assert re.search("layer 'data'.*'net' .*LMDB", error(capsys, "time -model net -iterations 1"))
    assert re.search("list 'net'|net:2", error(capsys, "convert_imageset . net new"))
