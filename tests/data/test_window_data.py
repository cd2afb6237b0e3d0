"""The layer WindowData: its file, where windows come to lie, and what is drawn."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_data_layers import PlainBlob, take

from caffe.data.image_file import resize
from caffe.data.window_crop import Span, place
from caffe.data.window_file import WindowFile
from caffe.layer_types.window_data import WindowData
from caffe.proto import caffe_pb2

HEIGHT, WIDTH = 30, 40
RNG = np.random.default_rng(0)
COLOURS = [RNG.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(3)]
NAMES = ["first.png", "with blank.PNG", "bilder/dritte ä.png"]
WINDOWS = [
    ["1 0.9 0 0 39 29", "2 0.5 10 5 20 25", "0 0.1 3 3 9 9"],
    [],
    ["3 0.45 1 1 2 2", "3 0.3 30 20 39 29", "1 1 5 6 7 8", "0 0 0 0 0 0"],
]


def bgr(number: int) -> np.ndarray:
    return COLOURS[number][:, :, ::-1].transpose(2, 0, 1).astype(np.float32)


def section(number: int, windows: list[str], path="", shape=(3, HEIGHT, WIDTH)) -> str:
    lines = [f"# {number}", path or NAMES[number], *map(str, shape), str(len(windows)), *windows]
    return "\n".join(lines) + "\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "bilder").mkdir()
    for name, image in zip(NAMES, COLOURS):
        Image.fromarray(image).save(tmp_path / name, "PNG")
    return write(tmp_path, "".join(section(i, lines) for i, lines in enumerate(WINDOWS)))


def write(folder: Path, content: str) -> Path:
    path = folder / "windows.txt"
    path.write_text(content, encoding="utf-8")
    return path


def build(source: Path, more="", transform="crop_size: 8", batch=8, seed=1):
    layer = WindowData()
    layer.layer_param = text_format.Parse(
        f'window_data_param {{ source: "{source}" root_folder: "{source.parent}" '
        f"batch_size: {batch} {more} }} transform_param {{ {transform} }}",
        caffe_pb2.LayerParameter(),
    )
    layer.name, layer.random_seed = "layer", seed
    top = [PlainBlob(), PlainBlob()]
    layer.setup([], top)
    layer.reshape([], top)
    return layer, top


# -- the file --------------------------------------------------------------------------------------


def rows(windows):
    return [
        (int(image), int(label), *box.tolist())
        for image, label, box in zip(windows.image, windows.label, windows.boxes)
    ]


def test_windows_are_sorted_by_overlap(source):
    found = WindowFile(source, 0.5, 0.4)
    assert [image.path for image in found.images] == NAMES
    assert [image.line for image in found.images] == [2, 11, 17]
    assert rows(found.foreground) == [
        (0, 1, 0, 0, 39, 29),
        (0, 2, 10, 5, 20, 25),
        (2, 1, 5, 6, 7, 8),
    ]
    assert rows(found.background) == [
        (0, 0, 3, 3, 9, 9),
        (2, 0, 30, 20, 39, 29),
        (2, 0, 0, 0, 0, 0),
    ]
    assert len(WindowFile(source, 0.5, 0.5).background) == 4
    assert len(WindowFile(source, 0.45, 0.5).foreground) == 4  # 0.45 as float32 in both


def test_lines_as_people_write_them(source):
    content = source.read_text(encoding="utf-8")
    plain = WindowFile(source, 0.5, 0.5)
    source.write_bytes(
        ("\ufeff\n" + content.replace("\n", "  \r\n").replace("2 0.5", "2\t0.5")).encode()
    )
    again = WindowFile(source, 0.5, 0.5)
    assert [image.path for image in again.images] == NAMES
    assert rows(again.foreground) == rows(plain.foreground)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a.png\n", r"txt:1: expected a line '# NUMBER', which begins an image, got 'a\.png'"),
        ("# 0\na.png\n", "ends after line 2, before channels"),
        ("# 0\na.png\n3\n30\n40\n2\n1 1 0 0 1 1\n", "ends after line 7, before a window"),
        ("# 0\na.png\nred\n", "txt:3: expected channels, a whole number of 1 or more, got 'red'"),
        ("# 0\na.png\n3\n0\n", "txt:4: expected height, a whole number of 1 or more, got '0'"),
        ("# 0\na.png\n3\n30\n40\n-1\n", "txt:6: expected the number of windows"),
        (section(0, []) + "3\n", "txt:7: expected a line '# NUMBER'"),
        (section(0, ["1 1 0 0 5"]), r"txt:7: expected 'class overlap .*', got '1 1 0 0 5'"),
        (section(0, ["1 1 0 0 5 5", "1 1 0 0 5 x"]), r"txt:8: expected 'class .*', got '1 1 0 0 5"),
        (
            section(0, ["1 1 0 0 5 5", "", "1 2"]).replace("\n3\n1 1", "\n2\n1 1"),
            "txt:9: expected 'cl",
        ),
        (section(0, ["1 1 0 0 5 5 7", "1 1 0 0 5 5"]), r"txt:7: expected 'class overlap"),
        (
            section(0, ["1 1 0 0 5 5", "1 1 0 0 5.5 5"]),
            r"txt:8: class and corners .* '1 1 0 0 5\.5",
        ),
        (
            section(0, ["1 1 0 0 40 5"]),
            "txt:7: the window does not lie in its image, 30 high and 40",
        ),
        (section(0, ["1 1 0 0 5 30"]), "txt:7: the window does not lie"),
        (section(0, ["1 1 -1 0 5 5"]), "txt:7: the window does not lie"),
        (section(0, ["0 0 7 0 5 5"]), "txt:7: the window does not lie"),
        (section(0, ["0 0.1 0 0 5 5", "0 0.5 0 0 5 5"]), "txt:8: a window of the foreground needs"),
        (section(0, [], shape=(4, 9, 9)), "txt:2: image 'first.png' has 4 channels; needed are 1"),
        (section(0, []) + section(1, [], shape=(1, 9, 9)), "txt:8: image .* has 1 channels"),
    ],
)
def test_bad_files(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        WindowFile(write(tmp_path, content), 0.5, 0.5)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"window file '.*no\.txt' does not exist"):
        build(tmp_path / "no.txt")


# -- where windows come to lie ---------------------------------------------------------------------


def test_without_context_the_window_fills_the_square():
    assert place((3, 4, 10, 20), 30, 40, 8) == (Span(4, 20, 8, 0), Span(3, 10, 8, 0))


def test_context_around_a_window_in_the_middle():
    # 10 pixels become 10 of 20: with 5 of context in a square of 20 the scale is 2.
    rows, columns = place((15, 10, 24, 19), 30, 40, 20, pad=5)
    assert rows == Span(5, 25, 20, 0)
    assert columns == Span(10, 30, 20, 0)


def test_what_is_outside_stays_empty():
    # Rows -5..15 are wanted, 21 for the square's 21: the 5 above the image are missing.
    rows, columns = place((15, 0, 24, 9), 30, 40, 21, pad=5)
    assert rows == Span(0, 15, 16, 5)
    assert columns.offset == 0


def test_mirroring_swaps_the_empty_parts():
    box = (0, 5, 9, 14)
    plain = place(box, 30, 40, 24, pad=6)[1]
    mirrored = place(box, 30, 40, 24, pad=6, mirror=True)[1]
    assert (plain.first, plain.last) == (mirrored.first, mirrored.last)
    assert (plain.offset, mirrored.offset) == (24 - plain.size, 0)


def test_squares_keep_proportions():
    # 20 wide and 4 high: both axes show 21 pixels around the centre.
    rows, columns = place((10, 13, 29, 16), 30, 40, 42, square=True)
    assert (rows.first, rows.last) == (5, 25)
    assert (columns.first, columns.last) == (10, 30)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_spans_are_always_inside(data):
    height, width = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 60))
    x1, y1 = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    x2, y2 = data.draw(st.integers(x1, width - 1)), data.draw(st.integers(y1, height - 1))
    crop = data.draw(st.integers(1, 40))
    pad = data.draw(st.integers(0, (crop - 1) // 2))
    square, mirror = data.draw(st.booleans()), data.draw(st.booleans())
    spans = place((x1, y1, x2, y2), height, width, crop, pad, square, mirror)
    for span, low, high, length in zip(spans, (y1, x1), (y2, x2), (height, width)):
        assert 0 <= span.first <= span.last < length
        assert span.size >= 1
        assert 0 <= span.offset <= span.offset + span.size <= crop
        # All of the window is seen, but for one pixel at its ends where halves are rounded.
        assert span.first <= low + (low < high)
        assert span.last >= high - (low < high)


# -- what the layer gives --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "batch", "foreground"), [(0.25, 8, 2), (0.7, 10, 7), (0, 3, 0), (1, 3, 3)]
)
def test_the_foreground_stands_last(source, fraction, batch, foreground):
    layer, top = build(source, f"fg_fraction: {fraction}", batch=batch)
    for _, labels in take(layer, top, 5):
        assert (labels[: batch - foreground] == 0).all()
        assert (labels[batch - foreground :] > 0).all()
    layer.close()


def test_every_window_is_drawn_about_as_often(source):
    layer, top = build(source, "fg_fraction: 0.5", batch=20)
    images = np.concatenate([data for data, _ in take(layer, top, 60)])
    layer.close()
    _, counts = np.unique(images.reshape(len(images), -1), axis=0, return_counts=True)
    assert len(counts) == 3 + 4
    # 600 of either kind: 200 +- 12 and 150 +- 11
    assert counts.min() > 100
    assert counts.max() < 260


@pytest.mark.parametrize("mirror", [False, True])
def test_pixels_without_context(source, mirror):
    options = (
        f"crop_size: 8 scale: 0.5 mean_value: 10 mean_value: 20 mean_value: 30 mirror: {mirror}"
    )
    layer, top = build(source, "fg_fraction: 1", options.lower())
    found = WindowFile(source, 0.5, 0.5).foreground
    expected = {}
    for image, label, (x1, y1, x2, y2) in zip(found.image, found.label, found.boxes):
        part = bgr(image)[:, y1 : y2 + 1, x1 : x2 + 1].astype(np.uint8)
        moved = (resize(part, 8, 8) - np.float32([[[10]], [[20]], [[30]]])) / 2
        expected[moved.tobytes()] = label
        if mirror:
            expected[np.ascontiguousarray(moved[:, :, ::-1]).tobytes()] = label
    seen = set()
    for data, labels in take(layer, top, 10):
        for image, label in zip(data, labels):
            assert expected[image.tobytes()] == label
            seen.add(image.tobytes())
    assert len(seen) == len(expected)
    layer.close()


def test_context_outside_of_the_image_is_zero(source):
    write(source.parent, section(0, ["1 1 0 0 9 9"]))
    options = "crop_size: 24 mean_value: 500"
    layer, top = build(source, "fg_fraction: 1 context_pad: 6", options, batch=1)
    (data, _), rows = take(layer, top, 1)[0], place((0, 0, 9, 9), HEIGHT, WIDTH, 24, 6)[0]
    layer.close()
    assert rows.offset > 0
    assert (data[0, :, : rows.offset] == 0).all()
    assert (data[0, :, :, : rows.offset] == 0).all()
    seen = data[0, :, rows.offset :, rows.offset :]
    part = bgr(0)[:, : rows.last + 1, : rows.last + 1].astype(np.uint8)
    np.testing.assert_array_equal(seen, resize(part, rows.size, rows.size) - np.float32(500))


def test_of_a_mean_file_the_centre(source, tmp_path):
    mean = RNG.random((3, 12, 10)).astype(np.float32) * 100
    np.save(tmp_path / "mean.npy", mean)
    plain, _ = take(*build(source), 1)[0]
    moved, _ = take(
        *build(source, transform=f'crop_size: 8 mean_file: "{tmp_path / "mean.npy"}"'), 1
    )[0]
    np.testing.assert_array_equal(moved, plain - mean[:, 2:10, 1:9])
    np.save(tmp_path / "mean.npy", mean[:, :7])
    with pytest.raises(ValueError, match=r"has shape 3x7x10; needed are 3 channels of 8x8 or more"):
        build(source, transform=f'crop_size: 8 mean_file: "{tmp_path / "mean.npy"}"')
    with pytest.raises(ValueError, match="2 mean_value for images of 3 channels"):
        build(source, transform="crop_size: 8 mean_value: 1 mean_value: 2")


def test_gray_images(source):
    write(source.parent, section(0, ["1 1 0 0 9 9"], shape=(1, HEIGHT, WIDTH)))
    layer, top = build(source, "fg_fraction: 1", batch=2)
    assert take(layer, top, 1)[0][0].shape == (2, 1, 8, 8)
    layer.close()


def test_kept_files_are_read_once(source):
    write(source.parent, section(0, ["1 1 0 0 9 9"]))
    for more, works in (("cache_images: true", True), ("", False)):
        Image.fromarray(COLOURS[0]).save(source.parent / NAMES[0])
        layer, top = build(source, f"fg_fraction: 1 {more}")
        first = take(layer, top, 1)[0][0]
        layer._prefetcher.close()
        (source.parent / NAMES[0]).unlink()
        if works:
            np.testing.assert_array_equal(take(layer, top, 1)[0][0], first)
        else:
            with pytest.raises(FileNotFoundError, match=r"txt:2: the file '.*first.png' does not"):
                layer.forward([], top)
        layer.close()


@pytest.mark.parametrize("split", [1, 2, 5])
def test_resumed_run_equals_the_uninterrupted_one(source, split):
    options = ("context_pad: 1", "crop_size: 8 mirror: true")
    layer, top = build(source, *options)
    whole = take(layer, top, 7)
    layer.close()
    assert len({data.tobytes() for data, _ in whole}) == 7
    layer, top = build(source, *options)
    layer.position = 8 * split
    for batch, expected in zip(take(layer, top, 7 - split), whole[split:]):
        np.testing.assert_array_equal(batch[0], expected[0])
        np.testing.assert_array_equal(batch[1], expected[1])
    layer.close()
    layer, top = build(source, *options, seed=2)
    assert not np.array_equal(take(layer, top, 1)[0][0], whole[0][0])
    layer.position, layer.random_seed = 0, 1
    np.testing.assert_array_equal(take(layer, top, 1)[0][0], whole[0][0])
    layer.close()


def test_an_image_of_another_size_than_the_file_says(source):
    write(source.parent, section(0, ["1 1 0 0 9 9"], shape=(3, WIDTH, HEIGHT)))
    layer, top = build(source, "fg_fraction: 1")
    with pytest.raises(ValueError, match=r"txt:2: '.*' is 3x30x40, the window file says 3x40x30"):
        layer.forward([], top)
    layer.close()


@pytest.mark.parametrize(
    ("more", "transform", "message"),
    [
        ("", "", "crop_size 0, needs more than twice window_data_param's context_pad, 0"),
        ("context_pad: 4", "crop_size: 8", "crop_size 8, needs more than twice"),
        ("crop_mode: 'sqare'", "crop_size: 8", "needs warp or square; did you mean 'square'"),
        ("fg_fraction: 1.5", "crop_size: 8", "fg_fraction 1.5, not 0 to 1"),
        ("", "crop_size: 8 force_gray: true", "the window file says how many channels"),
        ("fg_threshold: 2", "crop_size: 8", "no windows of the foreground, each batch needs 2"),
        ("bg_threshold: 0", "crop_size: 8", "no windows of the background, each batch needs 6"),
        ("", 'crop_size: 8 mean_file: "x" mean_value: 3', "exclude each other"),
    ],
)
def test_bad_options(source, more, transform, message):
    with pytest.raises(ValueError, match=message):
        build(source, more, transform)


def test_a_dropped_layer_stops_its_threads(source):
    before = set(threading.enumerate())
    layer, top = build(source)
    take(layer, top, 2)
    assert len(set(threading.enumerate()) - before) > 1
    del layer
    gc.collect()
    assert set(threading.enumerate()) <= before
