"""The layer HDF5Data: rows of several files, in order and shuffled."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from google.protobuf import text_format
from test_data_layers import PlainBlob, take

from caffe.layer_types.hdf5_data import HDF5Data
from caffe.proto import caffe_pb2

h5py = pytest.importorskip("h5py", reason="h5py, which HDF5Data needs, is not installed")

SIZES = (5, 1, 3)  # rows a file
ROWS = sum(SIZES)


def image(row: int) -> np.ndarray:
    return np.arange(row, row + 12, dtype=np.float64).reshape(3, 2, 2)


def write(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return path


def write_list(folder, *files):
    source = folder / "list.txt"
    source.write_text("".join(f"{file}\n" for file in files))
    return source


@pytest.fixture
def source(tmp_path):
    files, begin = [], 0
    for number, size in enumerate(SIZES):
        rows = range(begin, begin + size)
        files.append(
            write(
                tmp_path / f"with blank {number}.h5",
                data=np.stack([image(row) for row in rows]),
                label=np.array(rows, np.uint8),
                name=np.array(rows, np.int32)[:, None],
            )
        )
        begin += size
    return write_list(tmp_path, *files)


def build(source, more="", tops=("data", "label"), batch=4, seed=1, extra=""):
    layer = HDF5Data()
    layer.layer_param = text_format.Parse(
        f'hdf5_data_param {{ source: "{source}" batch_size: {batch} {more} }}',
        caffe_pb2.LayerParameter(top=tops),
    )
    text_format.Merge(extra, layer.layer_param)
    layer.name, layer.random_seed = "layer", seed
    top = [PlainBlob() for _ in tops]
    layer.setup([], top)
    layer.reshape([], top)
    return layer, top


def rows_of(source, batches, position=0, **options):
    layer, top = build(source, **options)
    layer.position = position
    taken = take(layer, top, batches)
    for data, labels in taken:
        np.testing.assert_array_equal(data, [image(int(row)) for row in labels])
    return np.concatenate([labels for _, labels in taken]).astype(int).tolist()


@pytest.mark.parametrize("batch", [1, 2, 4, 9, 20])
def test_batches_go_on_across_files_and_passes(source, batch):
    count = 40 // batch
    assert rows_of(source, count, batch=batch) == [i % ROWS for i in range(count * batch)]


def test_a_top_for_each_dataset_in_any_order(source):
    layer, top = build(source, tops=("name", "label", "data"))
    assert [blob.shape for blob in top] == [(4, 1), (4,), (4, 3, 2, 2)]
    names, labels, data = take(layer, top, 2)[1]
    np.testing.assert_array_equal(names[:, 0], labels)
    np.testing.assert_array_equal(labels, [4, 5, 6, 7])
    np.testing.assert_array_equal(data[3], image(7))


def test_shuffled_passes(source):
    found = rows_of(source, 27, batch=4, more="shuffle: true")
    passes = [found[at : at + ROWS] for at in range(0, len(found), ROWS)]
    assert all(sorted(one) == [*range(ROWS)] for one in passes)
    assert len({tuple(one) for one in passes}) == 12
    starts = np.cumsum([0, *SIZES])
    for one in passes:  # files stay together, as one of them is in memory
        files = np.searchsorted(starts, one, side="right")
        assert np.count_nonzero(np.diff(files)) == len(SIZES) - 1
    orders = {tuple(dict.fromkeys(np.searchsorted(starts, one, "right"))) for one in passes}
    assert len(orders) > 2
    assert rows_of(source, 27, batch=4, more="shuffle: true") == found
    assert rows_of(source, 27, batch=4, more="shuffle: true", seed=2) != found


@pytest.mark.parametrize("more", ["", "shuffle: true"])
@pytest.mark.parametrize("split", [1, 2, 5])
def test_resumed_run_equals_the_uninterrupted_one(source, split, more):
    whole = rows_of(source, 9, more=more)
    layer, top = build(source, more)
    take(layer, top, split)
    assert layer.position == 4 * split
    assert rows_of(source, 9 - split, layer.position, more=more) == whole[4 * split :]


def test_empty_files_are_passed_over(tmp_path):
    empty = write(tmp_path / "0.h5", data=np.zeros((0, 3, 2, 2)), label=np.zeros(0))
    full = write(tmp_path / "1.h5", data=np.stack([image(0)]), label=np.zeros(1))
    assert rows_of(write_list(tmp_path, empty, full, empty), 2) == [0] * 8
    with pytest.raises(ValueError, match="have no rows"):
        build(write_list(tmp_path, empty))


def test_lists_as_people_write_them(source):
    lines = source.read_text().splitlines()
    source.write_bytes("\r\n".join(["", f"  {lines[0]} \t", "", *lines[1:]]).encode())
    assert rows_of(source, 3) == [i % ROWS for i in range(12)]


def test_bad_files_are_named(tmp_path, source):
    good = source.read_text().splitlines()[0]
    (tmp_path / "text.h5").write_text("no HDF5")
    half = tmp_path / "half.h5"
    half.write_bytes((tmp_path / "with blank 0.h5").read_bytes()[:600])
    cases = {
        "text.h5": r"list\.txt:2: '.*text\.h5' cannot be read as HDF5",
        "half.h5": r"list\.txt:2: '.*half\.h5' cannot be read as HDF5",
        write(tmp_path / "a.h5", data=np.zeros((2, 3, 2, 2)), label=np.zeros(3)): (
            r"list\.txt:2: '.*a\.h5' has 3 rows of 'label' and 2 of 'data'"
        ),
        write(tmp_path / "b.h5", data=np.zeros((2, 3, 2, 3)), label=np.zeros(2)): (
            r"list\.txt:2: rows of 'data' in '.*b\.h5' have shape \(3, 2, 3\), those in the first"
        ),
        write(tmp_path / "c.h5", data=np.zeros((2, 3, 2, 2)), labels=np.zeros(2)): (
            r"no dataset 'label', which a top is named after; did you mean 'labels'"
        ),
        write(tmp_path / "d.h5", data=np.zeros((2, 3, 2, 2)), label=np.array([b"a", b"b"])): (
            r"dataset 'label' of '.*d\.h5' has shape \(2,\) and type \|S1; needed are"
        ),
        write(tmp_path / "e.h5", data=np.zeros((2, 3, 2, 2)), label=3.0): "has shape \\(\\) and",
    }
    for file, message in cases.items():
        with pytest.raises(ValueError, match=message):
            build(write_list(tmp_path, good, tmp_path / file))
    with pytest.raises(FileNotFoundError, match=r"list\.txt:2: the file '.*no\.h5' does not ex"):
        build(write_list(tmp_path, good, tmp_path / "no.h5"))


def test_bad_lists(tmp_path, source):
    with pytest.raises(FileNotFoundError, match=r"list of HDF5 files '.*no\.txt' does not exist"):
        build(tmp_path / "no.txt")
    with pytest.raises(ValueError, match="is an HDF5 file; needed is a text file that lists"):
        build(tmp_path / "with blank 0.h5")
    with pytest.raises(ValueError, match=r"list\.txt' is empty"):
        build(write_list(tmp_path, " "))


def test_a_file_that_changes_meanwhile(tmp_path):
    path = write(tmp_path / "a.h5", data=np.zeros((2, 3)), label=np.zeros(2))
    layer, top = build(write_list(tmp_path, path))
    write(path, data=np.zeros((3, 3)), label=np.zeros(3))
    with pytest.raises(ValueError, match="has changed since the start"):
        layer.forward([], top)


@pytest.mark.parametrize(
    ("more", "extra", "message"),
    [
        ("", "transform_param { scale: 2 }", "does not transform its data"),
        ("", "hdf5_data_param { batch_size: 0 }", "batch_size of 1 or more"),
        ("", 'hdf5_data_param { source: "" }', "needs a source"),
    ],
)
def test_bad_options(source, more, extra, message):
    with pytest.raises(ValueError, match=message):
        build(source, more, extra=extra)


def test_without_h5py_the_extra_is_named(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'comet-caffe\[hdf5\]'"):
        build(source)
