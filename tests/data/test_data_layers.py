"""The layers Data and DummyData on plain NumPy blobs."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

from caffe.data import lmdb_source
from caffe.data.datum import array_to_datum
from caffe.data.lmdb_writer import LmdbWriter
from caffe.layer_types.data import Data
from caffe.layer_types.dummy_data import DummyData
from caffe.layer_types.factory import make_layer
from caffe.proto import caffe_pb2


class PlainBlob:
    """What a layer sees of a blob."""

    def __init__(self):
        self.data = np.zeros((), np.float32)

    @property
    def shape(self):
        return self.data.shape

    def reshape(self, *shape):
        self.data = np.zeros(shape, np.float32)


def build(cls, text, tops=2, phase=caffe_pb2.TRAIN, seed=1):
    layer = cls()
    layer.layer_param = text_format.Parse(text, caffe_pb2.LayerParameter())
    layer.name, layer.phase, layer.random_seed = "layer", phase, seed
    top = [PlainBlob() for _ in range(tops)]
    layer.setup([], top)
    layer.reshape([], top)
    return layer, top


def take(layer, top, batches):
    taken = []
    for _ in range(batches):
        layer.forward([], top)
        taken.append([blob.data.copy() for blob in top])
    return taken


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "db"
    with LmdbWriter(path) as writer:
        for i in range(10):
            image = np.arange(i, i + 72, dtype=np.uint8).reshape(2, 6, 6)
            writer.put(f"{i:08}", array_to_datum(image, i).SerializeToString())
    return path


def data_text(path, more="", transform=""):
    return (
        f'data_param {{ source: "{path}" backend: LMDB batch_size: 4 {more} }} '
        f"transform_param {{ {transform} }}"
    )


def test_batches_in_order_and_round(database):
    layer, top = build(Data, data_text(database, transform="scale: 0.5"))
    assert [blob.shape for blob in top] == [(4, 2, 6, 6), (4,)]
    taken = take(layer, top, 4)
    assert [batch[1].tolist() for batch in taken] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 0, 1],
        [2, 3, 4, 5],
    ]
    np.testing.assert_array_equal(taken[1][0][2].ravel(), np.arange(6, 78) / 2)
    assert (layer.position, layer.epoch) == (16, 1)
    layer.close()
    layer.close()


def test_without_labels(database):
    layer, top = build(Data, data_text(database), tops=1)
    take(layer, top, 1)
    layer.close()


@pytest.mark.parametrize("split", [1, 3, 5])
def test_resumed_run_equals_the_uninterrupted_one(database, split):
    text = data_text(database, "rand_skip: 7", "crop_size: 3 mirror: true")
    layer, top = build(Data, text)
    whole = take(layer, top, 6)
    layer.close()
    layer, top = build(Data, text)
    take(layer, top, split)
    position = layer.position
    layer.close()
    layer, top = build(Data, text)
    layer.position = position
    for batch, expected in zip(take(layer, top, 6 - split), whole[split:]):
        np.testing.assert_array_equal(batch[0], expected[0])
        np.testing.assert_array_equal(batch[1], expected[1])
    layer.close()


def test_crops_differ_between_passes(database):
    text = data_text(database, transform="crop_size: 3 mirror: true")
    layer, top = build(Data, text)
    batches = take(layer, top, 6)
    assert batches[0][1].tolist() == batches[5][1].tolist()
    assert not np.array_equal(batches[0][0], batches[5][0])
    layer.close()


def test_rand_skip_stays_within_its_range(database):
    starts = set()
    for seed in range(40):
        layer, _ = build(Data, data_text(database, "rand_skip: 3"), seed=seed)
        starts.add(layer.position)
        layer.close()
    assert starts == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data_param { batch_size: 4 backend: LMDB }", "needs a source"),
        ('data_param { source: "x" backend: LMDB }', "data_param needs a batch_size of 1 or more"),
    ],
)
def test_bad_options(text, message):
    with pytest.raises(ValueError, match=message):
        build(Data, text)


def test_wrong_number_of_blobs():
    param = caffe_pb2.LayerParameter(type="Data", top=["a", "b", "c"])
    with pytest.raises(ValueError, match="has 3 tops, needs 1 to 2"):
        make_layer(param, caffe_pb2.TRAIN, 0)


def test_crop_larger_than_the_images(database):
    with pytest.raises(ValueError, match="crop_size 7 is larger than the images"):
        build(Data, data_text(database, transform="crop_size: 7"))


def write(path, values):
    with LmdbWriter(path) as writer:
        for key, value in values.items():
            writer.put(key, value)
    return path


def image_bytes(*shape):
    return array_to_datum(np.zeros(shape, np.uint8), 0).SerializeToString()


@pytest.mark.parametrize(
    ("second", "transform", "message"),
    [
        (
            image_bytes(1, 5, 4),
            "",
            "key 'b': the image is 1x5x4, the first of its batch 1x4x4; store all",
        ),
        (
            image_bytes(3, 4, 4),
            "",
            "key 'b': the image is 3x4x4, the first of its batch 1x4x4; set force_",
        ),
        (image_bytes(1, 3, 9), "crop_size: 4", "no side may be below crop_size 4"),
        (b"\xff\xff", "", "key 'b': the record is no Datum"),
        (b"", "", "key 'b': the record has shape 0x0x0"),
    ],
)
def test_bad_records_are_named_by_key(tmp_path, second, transform, message):
    path = write(tmp_path / "db", {"a": image_bytes(1, 4, 4), "b": second})
    layer, top = build(Data, data_text(path, transform=transform))
    with pytest.raises(ValueError, match=message):
        layer.forward([], top)
    layer.close()


def test_sizes_may_differ_with_a_crop(tmp_path):
    path = write(tmp_path / "db", {"a": image_bytes(1, 4, 4), "b": image_bytes(1, 9, 5)})
    layer, top = build(Data, data_text(path, transform="crop_size: 4"))
    assert take(layer, top, 1)[0][0].shape == (4, 1, 4, 4)
    layer.close()


def test_sizes_may_differ_between_batches(tmp_path):
    sizes = [(1, 4, 4), (1, 4, 4), (1, 5, 3), (1, 5, 3)]
    path = write(tmp_path / "db", {f"{i}": image_bytes(*size) for i, size in enumerate(sizes)})
    layer, top = build(Data, data_text(path).replace("batch_size: 4", "batch_size: 2"))
    assert top[0].shape == (2, 1, 4, 4)
    for shape in ((2, 1, 4, 4), (2, 1, 5, 3), (2, 1, 4, 4)):
        layer.reshape([], top)
        layer.forward([], top)
        assert top[0].shape == shape
    layer.close()


def test_a_dropped_layer_stops_its_thread_and_closes_its_database(database):
    layer, top = build(Data, data_text(database))
    take(layer, top, 1)
    assert [thread.name for thread in threading.enumerate()].count("prefetch") == 1
    assert lmdb_source._environments._open
    del layer
    gc.collect()
    assert [thread.name for thread in threading.enumerate()].count("prefetch") == 0
    assert not lmdb_source._environments._open


def test_exit_without_close_is_clean(database):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_data_layers as t\n"
        "layer, top = t.build(t.Data, t.data_text(sys.argv[1])); t.take(layer, top, 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, database, Path(__file__).parent],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_damaged_first_record_releases_the_database(tmp_path):
    path = write(tmp_path / "db", {"a": b"\xff"})
    for _ in range(2):
        with pytest.raises(ValueError, match="key 'a': the record is no Datum"):
            build(Data, data_text(path))


DUMMY = "dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 4 } %s }"


def test_dummy_constant_and_random():
    text = DUMMY % "data_filler { value: 5 } data_filler { type: 'gaussian' }"
    layer, top = build(DummyData, text)
    batches = take(layer, top, 3)
    assert [blob.shape for blob in top] == [(2, 3), (4,)]
    assert all((batch[0] == 5).all() for batch in batches)
    assert len({batch[1].tobytes() for batch in batches}) == 3
    again, top = build(DummyData, text)
    again.position = 2
    np.testing.assert_array_equal(take(again, top, 1)[0][1], batches[2][1])


def test_dummy_without_filler_is_zero():
    layer, top = build(DummyData, DUMMY % "")
    top[0].data[...] = 7
    assert take(layer, top, 1)[0][0].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_dummy_legacy_shape():
    text = "dummy_data_param { num: 2 num: 5 channels: 3 height: 4 width: 1 }"
    _, top = build(DummyData, text)
    assert [blob.shape for blob in top] == [(2, 3, 4, 1), (5, 3, 4, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DUMMY % "num: 2", "both shape and the older num"),
        (
            DUMMY % "data_filler { type: 'gausian' }",
            "unknown filler 'gausian'; did you mean 'gaussian'",
        ),
        ("dummy_data_param { num: 2 channels: 3 height: 4 }", "has 0 width for 2 tops"),
        ("dummy_data_param { }", "has 0 shapes for 2 tops"),
        (DUMMY % ("data_filler { } " * 3), "has 3 data_filler for 2 tops"),
    ],
)
def test_dummy_bad_options(text, message):
    with pytest.raises(ValueError, match=message):
        build(DummyData, text)


@pytest.mark.parametrize("batches", [0, 4_000_000_000])
def test_prefetch_is_bounded(database, batches):
    text = data_text(database).replace("data_param {", f"data_param {{ prefetch: {batches}")
    with pytest.raises(ValueError, match=f"prefetch {batches}, needs 1 to"):
        build(Data, text)
