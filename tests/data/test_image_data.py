"""The layer ImageData on images of every kind, and on lists as people write them."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_data_layers import build, take

from caffe._core import data as core
from caffe.data.image_file import resize
from caffe.data.transform import random_key
from caffe.layer_types.image_data import ImageData
from caffe.proto import caffe_pb2

RNG = np.random.default_rng(0)
COLOURS = RNG.integers(0, 256, (6, 5, 3), np.uint8)  # height, width, RGB
BGR = COLOURS[:, :, ::-1].transpose(2, 0, 1)


def save(path: Path, image=COLOURS, form="PNG", **options) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(
        path, form, **options
    )
    return path


def write_list(folder: Path, content: str | bytes) -> Path:
    path = folder / "list.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def text(source: Path, more="", transform="", batch=1):
    return (
        f'image_data_param {{ source: "{source}" batch_size: {batch} '
        f'root_folder: "{source.parent}/" {more} }} transform_param {{ {transform} }}'
    )


def only_image(folder: Path, content: bytes | Image.Image, name="a.png", more="", form="PNG"):
    """What the layer makes of one image file."""
    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        save(folder / name, content, form)
    layer, top = build(ImageData, text(write_list(folder, f"{name} 3\n"), more))
    pixels, labels = take(layer, top, 1)[0]
    layer.close()
    assert labels.tolist() == [3]
    return pixels[0]


# -- lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "a.png 7",
        "\ufeffa.png 7",  # the mark that Windows' editors begin files with
        "next\x85line\u2028.png 7",
        "a.png\t7",
        "  a.png   7  ",
        "a.png 7\r",
        "a.png 7 \t\r",
        "with blanks in it.png 7",
        "two  blanks.png  7",
        "tab\tin it.png\t7",
        "1 2 3 7",
        "UPPER.PNG 7",
        "no_ending 7",
        "wrong.jpg 7",  # a PNG for all that
        "deep/er/a.png 7",
        "./deep/../a.png 7",
        "fünf Äpfel.png 7",
        "日本語 画像.png 7",
        "/a.png 7",  # as in the lists of ImageNet, with root_folder
        "a.png -2",
    ],
)
def test_lines_as_people_write_them(tmp_path, line):
    name, label = line.strip(" \t\r\ufeff").rsplit(maxsplit=1)
    save(tmp_path / name.lstrip("/"))
    layer, top = build(ImageData, text(write_list(tmp_path, f"{line}\n\n")))
    pixels, labels = take(layer, top, 1)[0]
    np.testing.assert_array_equal(pixels[0], BGR)
    assert labels.tolist() == [int(label)]
    layer.close()


def test_names_that_are_no_utf8(tmp_path):
    name = b"latin-\xe9.png"
    save(tmp_path / "a.png").rename(tmp_path / os.fsdecode(name))
    layer, top = build(ImageData, text(write_list(tmp_path, name + b" 1\n")))
    np.testing.assert_array_equal(take(layer, top, 1)[0][0][0], BGR)
    layer.close()


def test_symbolic_links_are_followed(tmp_path):
    save(tmp_path / "far" / "real.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "far" / "real.png")
    (tmp_path / "folder").symlink_to(tmp_path / "far")
    source = write_list(tmp_path, "link.png 0\nfolder/real.png 1\n")
    layer, top = build(ImageData, text(source, batch=2))
    np.testing.assert_array_equal(take(layer, top, 1)[0][0], [BGR, BGR])
    layer.close()
    (tmp_path / "link.png").unlink()
    (tmp_path / "link.png").symlink_to("nowhere.png")
    with pytest.raises(FileNotFoundError, match=r"list\.txt:1: the file '.*link\.png' does not"):
        build(ImageData, text(source))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a.png 0\nb.png\n", r"list\.txt:2: expected 'path label' with an integer label, got 'b.p"),
        ("a.png 0\na.png cat\n", r"list\.txt:2: expected .*, got 'a\.png cat'"),
        ("a.png 0\n\na.png 1.5\n", r"list\.txt:3: expected .*, got 'a\.png 1\.5'"),
        ("a.png 99999999999\n", r"list\.txt:1: label 99999999999 is no 32-bit integer"),
        ("a.png,1\n", r"list\.txt:1: expected"),
        ("", "is empty"),
        ("\n \t\r\n", "is empty"),
    ],
)
def test_bad_lists(tmp_path, content, message):
    save(tmp_path / "a.png")
    with pytest.raises(ValueError, match=message):
        build(ImageData, text(write_list(tmp_path, content)))


def test_a_missing_list_and_a_missing_image(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"list of images '.*list\.txt' does not exist"):
        build(ImageData, text(tmp_path / "list.txt"))
    save(tmp_path / "a.png")
    source = write_list(tmp_path, "a.png 0\na.png 1\nno such.png 2\n")
    layer, top = build(ImageData, text(source, batch=3))
    with pytest.raises(FileNotFoundError, match=r"list\.txt:3: the file '.*no such\.png' does"):
        layer.forward([], top)
    layer.close()
    with pytest.raises(IsADirectoryError, match=r"list\.txt:1: cannot read the file '.*: Is a dir"):
        build(ImageData, text(write_list(tmp_path, ". 0\n")))


# -- images ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_colours_are_blue_green_red(tmp_path, form):
    pixels = only_image(tmp_path, Image.fromarray(COLOURS), "a.Img", form=form)
    np.testing.assert_array_equal(pixels, BGR)


def test_gray_becomes_three_channels_and_colours_one(tmp_path):
    gray = Image.fromarray(COLOURS).convert("L")
    expected = np.asarray(gray, np.float32)
    np.testing.assert_array_equal(only_image(tmp_path, gray), [expected] * 3)
    np.testing.assert_array_equal(only_image(tmp_path, gray, more="is_color: false"), [expected])
    colours = Image.fromarray(COLOURS)
    np.testing.assert_array_equal(only_image(tmp_path, colours, more="is_color: false"), [expected])
    # ITU-R 601: what OpenCV calls gray
    luma = COLOURS.astype(np.float64) @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(expected, luma, atol=1)


@pytest.mark.parametrize("alpha", [0, 100, 255])
def test_alpha_is_dropped(tmp_path, alpha):
    layer = np.full((6, 5, 1), alpha, np.uint8)
    pixels = only_image(tmp_path, Image.fromarray(np.concatenate([COLOURS, layer], axis=2)))
    np.testing.assert_array_equal(pixels, BGR)
    gray = COLOURS[:, :, :1]
    pixels = only_image(tmp_path, Image.fromarray(np.concatenate([gray, layer], axis=2), "LA"))
    np.testing.assert_array_equal(pixels, [gray[:, :, 0]] * 3)


def test_a_palette_with_transparency(tmp_path):
    image = Image.new("P", (2, 2), 1)
    image.putpalette([9, 9, 9, 10, 20, 30])
    file = io.BytesIO()
    image.save(file, "PNG", transparency=bytes([0, 77]))
    pixels = only_image(tmp_path, file.getvalue())
    np.testing.assert_array_equal(pixels, np.full((2, 2, 3), [30, 20, 10]).transpose(2, 0, 1))


def test_sixteen_bits_keep_the_upper_eight(tmp_path):
    wide = RNG.integers(0, 2**16, (6, 5)).astype(np.uint16)
    pixels = only_image(tmp_path, Image.fromarray(wide))
    np.testing.assert_array_equal(pixels, [wide >> 8] * 3)


def test_cmyk(tmp_path):
    inks = np.zeros((8, 8, 4), np.uint8)
    inks[:, :, 0] = 255  # cyan: no red
    pixels = only_image(tmp_path, Image.fromarray(inks, "CMYK"), "a.JPG", form="JPEG")
    np.testing.assert_allclose(pixels.mean(axis=(1, 2)), [255, 255, 0], atol=3)


def test_of_an_animation_the_first_picture(tmp_path):
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(
        tmp_path / "a.gif", "GIF", save_all=True, append_images=frames[1:], duration=40, loop=0
    )
    pixels = only_image(tmp_path, (tmp_path / "a.gif").read_bytes(), "a.gif")
    np.testing.assert_array_equal(pixels.mean(axis=(1, 2)), [0, 0, 255])


def encoded(form: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (60, 50, 3), np.uint8)).save(
        file, form
    )
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "an image of 0 bytes: it is empty"),
        (b"this is a text, not a picture\n", "the image of 30 bytes: no known format"),
        (b"<html><body>404</body></html>", "the image of 29 bytes: no known format"),
        (encoded("PNG")[:-2000], "the image of .* truncated"),
        (encoded("JPEG")[:-2000], "the image of .* truncated"),
        (encoded("JPEG")[:40], "the image of 40 bytes"),
        (encoded("GIF")[:100], "the image of 100 bytes"),
        (encoded("TIFF")[:100], "the image of 100 bytes"),
    ],
    ids=["empty", "text", "html", "png", "jpeg", "jpeg head", "gif head", "tiff head"],
)
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data", "ignore:Truncated File Read")
def test_damaged_files_are_named(tmp_path, content, reason):
    save(tmp_path / "good.png")
    (tmp_path / "bad.jpg").write_bytes(content)
    source = write_list(tmp_path, "good.png 0\nbad.jpg 1\n")
    layer, top = build(ImageData, text(source))
    take(layer, top, 1)
    with pytest.raises(ValueError, match=rf"list\.txt:2: '.*bad\.jpg': cannot decode {reason}"):
        take(layer, top, 1)
    layer.close()


# -- sizes and transformation ----------------------------------------------------------------------


def test_resized_as_pytorch_does_without_averaging(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for size in ((3, 9), (12, 2), (6, 5), (1, 1), (13, 17)):
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(BGR.astype(np.float32))[None], size, mode="bilinear"
        )[0].numpy()
        np.testing.assert_allclose(resize(BGR, *size), expected, atol=0.51)
        more = f"new_height: {size[0]} new_width: {size[1]}"
        np.testing.assert_array_equal(
            only_image(tmp_path, Image.fromarray(COLOURS), more=more), resize(BGR, *size)
        )


def test_sizes_may_differ_between_batches_but_not_within(tmp_path):
    save(tmp_path / "small.png", COLOURS[:4, :3])
    save(tmp_path / "large.png")
    source = write_list(tmp_path, "large.png 0\nsmall.png 1\n")
    layer, top = build(ImageData, text(source))
    for height, width in ((6, 5), (4, 3), (6, 5)):
        layer.reshape([], top)
        layer.forward([], top)
        assert top[0].shape == (1, 3, height, width)
        np.testing.assert_array_equal(top[0].data[0], BGR[:, :height, :width])
    layer.close()
    layer, top = build(ImageData, text(source, batch=2))
    with pytest.raises(
        ValueError, match=r"list\.txt:2: the image is 3x4x3, the first of its batch 3x6x5; set new"
    ):
        layer.forward([], top)
    layer.close()
    layer, top = build(ImageData, text(source, transform="crop_size: 3", batch=2))
    assert take(layer, top, 1)[0][0].shape == (2, 3, 3, 3)
    layer.close()
    layer, top = build(ImageData, text(source, transform="crop_size: 4", batch=2))
    with pytest.raises(ValueError, match=r"list\.txt:2: .*no side may be below crop_size 4"):
        layer.forward([], top)
    layer.close()


def test_transformed(tmp_path):
    save(tmp_path / "a.png")
    options = "crop_size: 4 mirror: true scale: 0.5 mean_value: 1 mean_value: 2 mean_value: 3"
    layer, top = build(ImageData, text(write_list(tmp_path, "a.png 0"), "", options, batch=8))
    pixels = take(layer, top, 1)[0][0]
    layer.close()
    window = core.TransformOptions()
    window.crop_size, window.mirror, window.random_crop = 4, True, True
    window.random_key = random_key(1, "layer")
    moved = (BGR - np.float32([[[1]], [[2]], [[3]]])) / 2
    for number, found in enumerate(pixels):
        y, x, mirrored = core.draw_window(window, 3, 6, 5, number)
        part = moved[:, y : y + 4, x : x + 4]
        np.testing.assert_array_equal(found, part[:, :, ::-1] if mirrored else part)


def test_the_mean_must_fit(tmp_path):
    save(tmp_path / "a.png")
    np.save(tmp_path / "mean.npy", np.zeros((3, 7, 7), np.float32))
    source = write_list(tmp_path, "a.png 0")
    with pytest.raises(ValueError, match=r"the mean in .* has shape 3x7x7, the images 3x6x5"):
        build(ImageData, text(source, transform=f'mean_file: "{tmp_path / "mean.npy"}"'))


# -- order -----------------------------------------------------------------------------------------


@pytest.fixture
def numbered(tmp_path):
    for i in range(7):
        save(tmp_path / f"{i}.png", np.full((4, 4), i, np.uint8))
    return write_list(tmp_path, "".join(f"{i}.png {i}\n" for i in range(7)))


def labels_of(options, count, seed=1, position=None):
    layer, top = build(ImageData, options, seed=seed)
    if position is not None:
        layer.position = position
    batches = take(layer, top, count)
    layer.close()
    for pixels, labels in batches:
        np.testing.assert_array_equal(pixels[:, 0, 0, 0], labels)
    return np.concatenate([batch[1] for batch in batches]).astype(int).tolist()


def test_every_pass_is_another_shuffle_of_all(numbered):
    plain = labels_of(text(numbered, batch=2), 7)
    assert plain == [*range(7)] * 2
    found = labels_of(text(numbered, "shuffle: true", batch=2), 14)
    passes = [found[at : at + 7] for at in range(0, 28, 7)]
    assert all(sorted(one) == [*range(7)] for one in passes)
    assert len({tuple(one) for one in passes}) == 4
    assert labels_of(text(numbered, "shuffle: true", batch=2), 14) == found
    assert labels_of(text(numbered, "shuffle: true", batch=2), 14, seed=2) != found


def test_the_first_place_is_anyones(numbered):
    options = text(numbered, "shuffle: true")
    assert {labels_of(options, 1, seed)[0] for seed in range(80)} == {*range(7)}


@pytest.mark.parametrize("position", [0, 3, 7, 16, 700])
def test_from_any_position_on(numbered, position):
    options = text(numbered, "shuffle: true rand_skip: 5", batch=1)
    whole = labels_of(options, 30, position=position)
    assert labels_of(options, 20, position=position + 10) == whole[10:]


def test_rand_skip_stays_within_its_range(numbered):
    options = text(numbered, "rand_skip: 3")
    assert {labels_of(options, 1, seed)[0] for seed in range(40)} == {0, 1, 2, 3}


def test_a_new_seed_means_a_new_order(numbered):
    options = text(numbered, "shuffle: true")
    layer, top = build(ImageData, options)
    take(layer, top, 1)  # has read ahead by now
    layer.position, layer.random_seed = 0, 2
    found = [int(batch[1][0]) for batch in take(layer, top, 7)]
    assert found == labels_of(options, 7, seed=2)
    layer.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("image_data_param { }", "needs a source"),
        ('image_data_param { source: "x" new_height: 3 }', "new_height 3 and new_width 0; set bo"),
        ('image_data_param { source: "x" batch_size: 0 }', "batch_size of 1 or more"),
        (
            'image_data_param { source: "x" } transform_param { force_gray: true }',
            "force_gray contradicts image_data_param's is_color: true",
        ),
        (
            'image_data_param { source: "x" is_color: false } transform_param { force_color: true '
            "}",
            "force_color contradicts image_data_param's is_color: false",
        ),
        ('image_data_param { source: "x" } data_param { prefetch: 0 }', "prefetch 0, needs 1 to"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(ImageData, options)


# -- threads ---------------------------------------------------------------------------------------


def test_a_dropped_layer_stops_its_threads(numbered):
    before = set(threading.enumerate())
    layer, top = build(ImageData, text(numbered, batch=4), phase=caffe_pb2.TEST)
    take(layer, top, 2)
    assert len(set(threading.enumerate()) - before) > 1
    del layer
    gc.collect()
    assert set(threading.enumerate()) <= before


def test_exit_without_close_is_clean(numbered):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_image_data as t\n"
        "from pathlib import Path\n"
        "layer, top = t.build(t.ImageData, t.text(Path(sys.argv[1]))); t.take(layer, top, 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, numbered, Path(__file__).parent],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
