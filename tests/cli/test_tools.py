"""Caffe's tools as subcommands: databases, features, pictures, logs, scores."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe import layers as L
from caffe import params as P
from caffe.cli import main as cli
from caffe.data.datum import decode_image, parse_record
from caffe.data.lmdb_source import LmdbSource
from caffe.data.transform import read_mean
from caffe.proto import caffe_pb2 as pb
from caffe.training_log import column, parse_log

RNG = np.random.default_rng(1)


def run(capsys, line):
    """Run a command line; returns status, standard output, and the log's lines without prefix."""
    status = cli.main(line.split())
    captured = capsys.readouterr()
    lines = [re.sub(r"^[IWE]\d{4} .*?\] ", "", text) for text in captured.err.splitlines()]
    return status, captured.out, lines


def records(path):
    source = LmdbSource(path)
    found = [source.read() for _ in range(len(source))]
    source.close()
    return {key.decode(): pb.Datum.FromString(value) for key, value in found}


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """A folder with images of two sizes and kinds, one that is none, and lists of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root").mkdir()
    for name, size in (("a.png", (4, 6)), ("b c.jpg", (4, 6)), ("big.png", (9, 8))):
        pixels = RNG.integers(0, 256, (*size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "root" / name)
    (tmp_path / "root" / "text.png").write_text("no image")
    (tmp_path / "all.txt").write_text("a.png 3\nb c.jpg 1 \nbig.png\t2\r\n")
    (tmp_path / "bad.txt").write_text("a.png 3\ntext.png 1\nmissing.png 2\n")
    return tmp_path


def pixels(name):
    return np.asarray(Image.open(Path("root") / name))[:, :, ::-1].transpose(2, 0, 1)


# -- convert_imageset ------------------------------------------------------------------------------


def test_convert_imageset(pictures, capsys) -> None:
    status, out, lines = run(capsys, "convert_imageset root/ all.txt db")
    assert (status, out, lines) == (0, "", ["Processed 3 files."])
    found = records("db")
    assert list(found) == ["00000000_a.png", "00000001_b c.jpg", "00000002_big.png"]
    assert [datum.label for datum in found.values()] == [3, 1, 2]
    first = found["00000000_a.png"]
    assert (first.channels, first.height, first.width, first.encoded) == (3, 4, 6, False)
    assert first.data == pixels("a.png").tobytes()


def test_resized_gray_and_shuffled(pictures, capsys) -> None:
    flags = "-gray --shuffle -resize_height=5 --resize_width 7 -check_size -backend lmdb"
    (pictures / "many.txt").write_text("".join(f"a.png {i}\nbig.png {i}\n" for i in range(6)))
    assert run(capsys, f"convert_imageset {flags} root many.txt db")[0] == 0
    found = list(records("db").values())
    assert {(d.channels, d.height, d.width) for d in found} == {(1, 5, 7)}
    labels = [datum.label for datum in found]
    assert sorted(labels) == sorted([*range(6)] * 2) != labels


def test_check_size(pictures, capsys) -> None:
    status, _, lines = run(capsys, "convert_imageset -check_size root all.txt db")
    assert status == 1
    assert "all.txt:3: 'big.png' is 9x8, the first image 4x6" in lines[-1]
    assert not Path("db").exists()


def test_encoded_files_are_stored_as_they_are(pictures, capsys) -> None:
    assert run(capsys, "convert_imageset -encoded root all.txt db")[0] == 0
    for key, datum in records("db").items():
        assert datum.encoded
        assert datum.data == (Path("root") / key.split("_", 1)[1]).read_bytes()


@pytest.mark.parametrize("flags", ["-encode_type png", "-resize_height 4 -resize_width 6", "-gray"])
def test_encoded_anew_where_needed(pictures, capsys, flags) -> None:
    assert run(capsys, f"convert_imageset -encoded {flags} root all.txt db")[0] == 0
    found = records("db")
    gray = flags == "-gray"
    for name, key in (("a.png", "00000000_a.png"), ("b c.jpg", "00000001_b c.jpg")):
        datum = found[key]
        decoded = decode_image(datum.data)
        assert decoded.shape == (1 if gray else 3, 4, 6)
        assert parse_record(datum.SerializeToString()).label == datum.label
        if "png" in flags:
            assert datum.data.startswith(b"\x89PNG")
            np.testing.assert_array_equal(decoded, pixels(name))


def test_unreadable_images_are_named_and_skipped(pictures, capsys) -> None:
    status, _, lines = run(capsys, "convert_imageset root bad.txt db")
    assert status == 0
    assert lines[0].startswith("Skipped bad.txt:2: 'text.png': cannot decode the image")
    assert lines[1] == "Skipped bad.txt:3: 'missing.png' does not exist below the root folder"
    assert lines[2].startswith("Skipped 2 of 3 images")
    assert list(records("db")) == ["00000000_a.png"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-strict root bad.txt db", "bad.txt:2: 'text.png': cannot decode"),
        ("root none.txt db", "list of images 'none.txt' does not exist"),
        ("root empty.txt db", "list of images 'empty.txt' is empty"),
        ("root text.txt db", "text.txt:2: expected 'path label' with an integer label"),
        ("nowhere all.txt db", "none of the 3 images can be read; the first: all.txt:1: 'a.png'"),
        ("root all.txt there", "'there' exists already"),
        ("root all.txt", "2 arguments given, needs 3: caffe convert_imageset"),
        ("-resize_height 3 root all.txt db", "give both -resize_height and -resize_width"),
        ("-encode_type png root all.txt db", "encode_type has a meaning with encoded only"),
        ("-encoded -encode_type jepg root all.txt db", "as 'jepg'; did you mean 'jpg'"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(pictures, capsys, line, message) -> None:
    (pictures / "empty.txt").write_text("\n\n")
    (pictures / "text.txt").write_text("a.png 1\nb.png cat\n")
    (pictures / "there").mkdir()
    before = sorted(path.name for path in pictures.iterdir())
    status, _, lines = run(capsys, f"convert_imageset {line}")
    assert status == 1
    assert message in lines[-1]
    assert sorted(path.name for path in pictures.iterdir()) == before


def test_overwrite(pictures, capsys) -> None:
    for _ in range(2):
        assert run(capsys, "convert_imageset -overwrite root all.txt db")[0] == 0


def test_progress_shows_on_terminals_alone(pictures, capsys, monkeypatch) -> None:
    monkeypatch.setattr("caffe.progress._INTERVAL", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    cli.main(["convert_imageset", "root", "all.txt", "db"])
    assert "] 2/3 images" in capsys.readouterr().err


# -- compute_image_mean ----------------------------------------------------------------------------


def test_compute_image_mean(pictures, capsys) -> None:
    (pictures / "two.txt").write_text("a.png 0\nb c.jpg 0\n")
    run(capsys, "convert_imageset root two.txt db")
    expected = (pixels("a.png").astype(float) + pixels("b c.jpg")) / 2
    status, _, lines = run(capsys, "compute_image_mean -backend=lmdb db mean.binaryproto")
    assert status == 0
    np.testing.assert_allclose(read_mean("mean.binaryproto"), expected, rtol=1e-6)
    assert lines[:2] == ["Write to mean.binaryproto", "Number of channels: 3"]
    values = [float(line.split(": ")[1]) for line in lines[2:]]
    np.testing.assert_allclose(values, expected.mean(axis=(1, 2)), rtol=1e-5)
    status, _, again = run(capsys, "compute_image_mean db")
    assert (status, again) == (0, lines[1:])
    assert run(capsys, "compute_image_mean none")[0] == 1


# -- extract_features ------------------------------------------------------------------------------


@pytest.fixture
def feature_net(pictures, capsys):
    (pictures / "five.txt").write_text("".join(f"a.png {i % 3}\n" for i in range(5)))
    run(capsys, "convert_imageset root five.txt db")
    n = caffe.NetSpec()
    n.data, n.label = L.Data(source="db", backend=P.Data.LMDB, batch_size=2, ntop=2)
    n.conv = L.Convolution(n.data, num_output=2, kernel_size=3, weight_filler=dict(type="xavier"))
    n.ip = L.InnerProduct(n.conv, num_output=3, weight_filler=dict(type="xavier"))
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    (pictures / "net.prototxt").write_text(str(n.to_proto()))
    net = caffe.Net("net.prototxt", caffe.TEST)
    net.save("net.caffemodel")
    yield net
    net.close()


def test_extract_features(feature_net, capsys) -> None:
    line = "extract_features net.caffemodel net.prototxt conv,ip f/conv,f/ip 3 lmdb CPU"
    status, _, lines = run(capsys, line)
    assert status == 0, lines
    assert lines[-3:] == [
        "Extracted features of 6 query images for feature blob conv",
        "Extracted features of 6 query images for feature blob ip",
        "Successfully extracted the features!",
    ]
    conv, ip = records("f/conv"), records("f/ip")
    assert list(ip) == [f"{index:010}" for index in range(6)]
    feature_net.forward()
    for row in range(2):
        datum = conv[f"{row:010}"]
        assert (datum.channels, datum.height, datum.width) == (2, 2, 4)
        np.testing.assert_array_equal(
            caffe.io.datum_to_array(datum), feature_net.blobs["conv"].data[row]
        )
        np.testing.assert_array_equal(
            ip[f"{row:010}"].float_data, feature_net.blobs["ip"].data[row]
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("net.caffemodel net.prototxt cnov f 3 lmdb", "no blob 'cnov'; did you mean 'conv'"),
        ("net.caffemodel net.prototxt loss f 3 lmdb", "'loss' has one value for the whole batch"),
        (
            "net.caffemodel net.prototxt conv f 3 hdf5",
            "'hdf5', but must be one of lmdb, leveldb",
        ),
        ("net.caffemodel net.prototxt conv f 0 lmdb", "BATCHES is '0'"),
        ("net.caffemodel net.prototxt conv,ip f 3 lmdb", "2 blobs need as many databases"),
        ("net.caffemodel net.prototxt conv f 3 lmdb TPU", "'TPU' is neither CPU nor GPU"),
        ("net.caffemodel none.prototxt conv f 3 lmdb", "none.prototxt"),
        ("net.caffemodel", "1 arguments given, needs 6: caffe extract_features"),
    ],
)
def test_extract_features_refuses(feature_net, capsys, words, message) -> None:
    status, _, lines = run(capsys, f"extract_features {words}")
    assert status == 1
    assert message in lines[-1]
    assert not Path("f").exists()


# -- logs ------------------------------------------------------------------------------------------

LOG = """\
Log file created at: 2016/12/31 23:59:50
I1231 23:59:50.000000  7 caffe.cpp:217] Using GPUs 0
I1231 23:59:58.500000  7 solver.cpp:60] Solving LeNet
I1231 23:59:58.600000  7 solver.cpp:341] Iteration 0, Testing net (#0)
I1231 23:59:59.500000  7 solver.cpp:409]     Test net output #0: accuracy = 0.125
I1231 23:59:59.500000  7 solver.cpp:409]     Test net output #1: loss = 2.5 (* 1 = 2.5 loss)
I0101 00:00:00.500000  7 solver.cpp:237] Iteration 0 (0 iter/s, 2s/0 iters), loss = 2.25
I0101 00:00:00.500000  7 solver.cpp:253]     Train net output #0: loss = 2.25 (* 1 = 2.25 loss)
I0101 00:00:00.500000  7 sgd_solver.cpp:106] Iteration 0, lr = 0.01
I0101 00:00:10.500000  7 solver.cpp:237] Iteration 100 (9 iter/s, 10s/100 iters), loss = 1e-05
I0101 00:00:10.500000  7 solver.cpp:253]     Train net output #0: loss = nan (* 1 = nan loss)
I0101 00:00:10.500000  7 sgd_solver.cpp:106] Iteration 100, lr = 0.001
"""


def test_parse_log(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text(LOG)
    status, out, _ = run(capsys, "parse_log train.log out")
    assert (status, out) == (0, "out/train.log.train\nout/train.log.test\n")
    with Path("out/train.log.train").open() as file:
        train = list(csv.DictReader(file))
    with Path("out/train.log.test").open() as file:
        test = list(csv.DictReader(file))
    assert test == [
        {
            "NumIters": "0",
            "Seconds": "1",
            "LearningRate": "0.01",
            "accuracy": "0.125",
            "loss": "2.5",
        }
    ]
    assert [row["NumIters"] for row in train] == ["0", "100"]
    assert [row["Seconds"] for row in train] == ["2", "12"]
    assert [row["LearningRate"] for row in train] == ["0.01", "0.001"]
    assert [row["loss"] for row in train] == ["2.25", "nan"]
    assert [row["SmoothedLoss"] for row in train] == ["2.25", "1e-05"]


def test_parse_our_own_log(tmp_path, capsys) -> None:
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(shape=[dict(dim=[2, 3]), dict(dim=[2])], ntop=2)
    n.ip = L.InnerProduct(n.data, num_output=3)
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    param = pb.SolverParameter(
        base_lr=0.5, lr_policy="fixed", display=2, test_iter=[1], test_interval=3, max_iter=5
    )
    param.snapshot_after_train = False
    param.net_param.CopyFrom(n.to_proto())
    caffe.get_solver(param).solve()
    (tmp_path / "log").write_text(capsys.readouterr().err)
    found = parse_log(tmp_path / "log")
    assert [row["NumIters"] for row in found.train] == [0, 2, 4]
    assert [row["NumIters"] for row in found.test] == [0, 3]
    assert {row["LearningRate"] for row in found.train} == {0.5}
    assert found.train[0]["loss"] == pytest.approx(np.log(3), rel=1e-5)
    assert found.train[0]["Seconds"] <= found.train[-1]["Seconds"]


def test_logs_that_are_none(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("some text")
    assert "'x' has no lines of training" in run(capsys, "parse_log x out")[2][-1]
    assert "does not exist" in run(capsys, "parse_log y out")[2][-1]
    (tmp_path / "z").write_text(LOG.replace("2.25 (", "two ("))
    assert "log 'z': could not convert" in run(capsys, "parse_log z out")[2][-1]


def test_plot_training_log(tmp_path, monkeypatch, capsys) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, which draws, is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text(LOG)
    for number in range(8):
        status, out, _ = run(capsys, f"plot_training_log {number} {number}.png train.log")
        assert (status, out) == (0, f"{number}.png\n")
        with Image.open(f"{number}.png") as picture:
            assert picture.size == (800, 500)
    assert (
        "8 does not exist; 0: Test accuracy vs. Iters"
        in (run(capsys, "plot_training_log 8 p.png train.log")[2][-1])
    )
    assert "give a CHART_TYPE" in run(capsys, "plot_training_log 1 p.png")[2][-1]


def test_columns_by_likeness() -> None:
    rows = [{"NumIters": 0.0, "top1_Accuracy": 0.5, "loss3/loss": 1.0}]
    assert column(rows, "accuracy") == "top1_Accuracy"
    assert column(rows, "loss") == "loss3/loss"
    with pytest.raises(ValueError, match="the log has no 'LearningRate', it has NumIters"):
        column(rows, "LearningRate")


# -- pictures and scores ---------------------------------------------------------------------------


def test_draw_net(tmp_path, capsys) -> None:
    pytest.importorskip("pydot", reason="pydot, which draws nets, is not installed")
    model, picture = "models/lenet/train_val.prototxt", tmp_path / "net.dot"
    line = f"draw_net {model} {picture} --rankdir TB --phase=TEST -display_lrm"
    status, out, _ = run(capsys, line)
    assert (status, out) == (0, f"{picture}\n")
    text = picture.read_text()
    assert "rankdir=TB" in text
    assert "lr_mult: 1, 2" in text
    assert "Accuracy" in text


@pytest.fixture
def deploy(pictures):
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3, 4, 6]))
    n.ip = L.InnerProduct(n.data, num_output=5, weight_filler=dict(type="xavier"))
    n.prob = L.Softmax(n.ip)
    (pictures / "deploy.prototxt").write_text(str(n.to_proto()))
    net = caffe.Net("deploy.prototxt", caffe.TEST)
    net.params["ip"][0].data[...] /= 100
    net.save("w.caffemodel")
    return net


NET = "-model_def deploy.prototxt -pretrained_model w.caffemodel"


def test_classify(deploy, capsys) -> None:
    np.save("mean.npy", np.array([1.0, 2.0, 3.0]))
    line = f"classify root/a.png out.npy {NET} -center_only -images_dim 4,6 -mean_file mean.npy"
    assert run(capsys, line)[0] == 0
    deploy.blobs["data"].data[0] = pixels("a.png") - np.array([1, 2, 3]).reshape(3, 1, 1)
    expected = deploy.forward()["prob"][:1]
    np.testing.assert_allclose(np.load("out.npy"), expected, rtol=1e-4, atol=1e-6)
    np.save("batch.npy", np.stack([caffe.io.load_image("root/a.png")] * 3))
    line = line.replace("root/a.png", "batch.npy")
    assert run(capsys, line)[0] == 0
    np.testing.assert_allclose(np.load("out.npy"), np.repeat(expected, 3, 0), rtol=1e-4, atol=1e-6)


def test_classify_a_folder(deploy, capsys) -> None:
    Path("root/text.png").unlink()
    assert run(capsys, f"classify root out.npy {NET} -ext png -images_dim 6,8")[0] == 0
    classifier = caffe.Classifier(
        "deploy.prototxt", "w.caffemodel", image_dims=(6, 8), raw_scale=255, channel_swap=(2, 1, 0)
    )
    images = [caffe.io.load_image(f"root/{name}") for name in ("a.png", "big.png")]
    np.testing.assert_allclose(np.load("out.npy"), classifier.predict(images), rtol=1e-5)


def test_classify_in_gray(pictures, capsys) -> None:
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 4, 6]))
    n.sum = L.Reduction(n.data, axis=1)
    n.ip = L.InnerProduct(n.data, num_output=2)
    (pictures / "gray.prototxt").write_text(str(n.to_proto()))
    caffe.Net("gray.prototxt", caffe.TEST).save("g.caffemodel")
    line = "classify root/a.png out.npy -model_def gray.prototxt -pretrained_model g.caffemodel"
    assert run(capsys, f"{line} -center_only -images_dim 4,6")[0] == 0
    gray = 255 * caffe.io.load_image("root/a.png", color=False)
    np.testing.assert_allclose(np.load("out.npy").ravel(), [gray.sum()], rtol=1e-5)


def test_detect(deploy, capsys) -> None:
    Path("windows.csv").write_text(
        "filename,ymin,xmin,ymax,xmax\nroot/a.png,0,0,4,6\nroot/big.png,1,1,5,7\n"
    )
    line = f"detect windows.csv out.csv {NET} -context_pad 0"
    assert run(capsys, line)[0] == 0
    with Path("out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["filename"], row["xmax"]) for row in rows] == [
        ("root/a.png", "6"),
        ("root/big.png", "7"),
    ]
    deploy.blobs["data"].data[0] = pixels("a.png")
    deploy.blobs["data"].data[1] = pixels("big.png")[:, 1:5, 1:7]
    expected = deploy.forward()["prob"]
    found = [[float(row[f"class{index}"]) for index in range(5)] for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("classify root/a.png out.npy", "flag -model_def is needed"),
        (f"classify root out.npy {NET} -ext gif", "has no files that end in .gif"),
        (f"classify root/a.png out.npy {NET} -images_dim 4", "needs height,width"),
        (f"classify root/a.png out.npy {NET} -channel_swap 2,b", "needs whole numbers"),
        (f"classify all.npy out.npy {NET}", "'all.npy' is no .npy file of numbers"),
        (
            "classify root/a.png out.npy -model_def all.txt -pretrained_model w.caffemodel",
            "all.txt:1",
        ),
        (f"detect all.txt out.csv {NET} -context_pad 0", "'all.txt' has no column filename, ymin"),
        (f"detect bad.csv out.csv {NET} -context_pad 0", "bad.csv:2: ymin, xmin, ymax, xmax need"),
        (f"detect all.txt out.h5 {NET}", "'out.h5' needs to end in .csv"),
        (
            f"detect all.txt out.csv {NET} -crop_mode selective_search -context_pad 0",
            "selective_search_ijcv_with_python",
        ),
    ],
)
def test_scores_refused(deploy, capsys, line, message) -> None:
    Path("all.npy").write_text("text")
    Path("bad.csv").write_text("filename,ymin,xmin,ymax,xmax\na.png,0,0,four,6\n")
    status, _, lines = run(capsys, line)
    assert status == 1
    assert message in lines[-1]
    assert not Path("out.npy").exists()
    assert not Path("out.csv").exists()


# -- programs --------------------------------------------------------------------------------------


def test_programs_are_named_as_subcommands(capsys, monkeypatch) -> None:
    text = Path("pyproject.toml").read_text()
    programs = re.findall(r'^(\w+) = "caffe\.cli\.main:program"', text, re.MULTILINE)
    assert {"convert_imageset", "draw_net", "upgrade_net_proto_text"} <= set(programs)
    assert set(programs) <= set(cli.COMMANDS)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/parse_log.py"])
    assert cli.program() == 1
    assert "0 arguments given, needs 2: caffe parse_log" in capsys.readouterr().err
