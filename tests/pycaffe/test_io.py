"""caffe.io: images, the Transformer, and arrays in messages."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe import io
from caffe.proto import caffe_pb2 as pb

RNG = np.random.default_rng(5)


def save(path, array, mode=None):
    Image.fromarray(array, mode).save(path) if mode else Image.fromarray(array).save(path)
    return path


# -- messages --------------------------------------------------------------------------------------


def test_blobproto_round_trip() -> None:
    array = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    blob = io.array_to_blobproto(array, diff=2 * array)
    assert list(blob.shape.dim) == [2, 3, 4]
    np.testing.assert_array_equal(io.blobproto_to_array(blob), array)
    np.testing.assert_array_equal(io.blobproto_to_array(blob, return_diff=True), 2 * array)


def test_scalar_blobproto() -> None:
    array = np.array(123.0)
    assert io.blobproto_to_array(io.array_to_blobproto(array)).shape == ()


def test_blobproto_of_old_sizes() -> None:
    blob = pb.BlobProto(num=1, channels=2, height=1, width=3, data=range(6))
    np.testing.assert_array_equal(
        io.blobproto_to_array(blob), np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3)
    )


def test_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the gradient has shape \(2,\), the values \(3,\)"):
        io.array_to_blobproto(np.zeros(3), np.zeros(2))


def test_blobprotovector_round_trip() -> None:
    arrays = [RNG.normal(size=size).astype(np.float32) for size in ((2, 3), (4,), (1, 1, 5))]
    found = io.blobprotovector_str_to_arraylist(io.arraylist_to_blobprotovector_str(arrays))
    assert len(found) == len(arrays)
    for ours, theirs in zip(found, arrays):
        np.testing.assert_array_equal(ours, theirs)


def test_datum_round_trip() -> None:
    pixels = RNG.integers(0, 256, (3, 2, 4), dtype=np.uint8)
    datum = io.array_to_datum(pixels, 7)
    assert datum.label == 7
    assert datum.data == pixels.tobytes()
    np.testing.assert_array_equal(io.datum_to_array(datum), pixels)
    values = RNG.normal(size=(1, 2, 3))
    np.testing.assert_allclose(io.datum_to_array(io.array_to_datum(values)), values, rtol=1e-6)


# -- images ----------------------------------------------------------------------------------------


def test_load_image_in_colour(tmp_path) -> None:
    pixels = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    image = caffe.io.load_image(str(save(tmp_path / "a.png", pixels)))
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, pixels / 255, atol=1e-7)


def test_load_image_in_gray(tmp_path) -> None:
    pixels = RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8)
    image = io.load_image(save(tmp_path / "a.png", pixels), color=False)
    r, g, b = np.moveaxis(pixels / 255, 2, 0)
    assert image.shape == (4, 5, 1)
    np.testing.assert_allclose(image[:, :, 0], 0.2125 * r + 0.7154 * g + 0.0721 * b, atol=1e-6)


@pytest.mark.parametrize("mode", ["gray", "alpha", "palette", "cmyk", "16 bits"])
def test_load_image_of_any_kind(tmp_path, mode) -> None:
    gray = RNG.integers(0, 256, (4, 5), dtype=np.uint8)
    colour = Image.fromarray(RNG.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    path = tmp_path / ("a.tif" if mode == "cmyk" else "a.png")
    expected = np.asarray(colour) / 255
    if mode == "gray":
        save(path, gray)
        expected = np.repeat(gray[:, :, np.newaxis] / 255, 3, axis=2)
    elif mode == "alpha":
        colour.putalpha(128)
        colour.save(path)
    elif mode == "palette":
        few = colour.quantize(8)
        few.save(path)
        expected = np.asarray(few.convert("RGB")) / 255
    elif mode == "cmyk":
        colour.convert("CMYK").save(path)
    else:
        deep = gray.astype(np.uint16) * 256 + 77
        save(path, deep)
        expected = np.repeat(deep[:, :, np.newaxis] / 65535, 3, axis=2)
    np.testing.assert_allclose(io.load_image(path), expected, atol=1e-6)


def test_load_image_says_what_is_wrong(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.png"):
        io.load_image(tmp_path / "nothing.png")
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(ValueError, match=r"image '.*text.png' is of no known format"):
        io.load_image(tmp_path / "text.png")
    path = save(tmp_path / "cut.png", RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"image '.*cut.png' cannot be decoded"):
        io.load_image(path)


@pytest.mark.parametrize("size", [(7, 9), (20, 31), (13, 17), (1, 1)])
@pytest.mark.parametrize(("order", "mode"), [(0, "nearest-exact"), (1, "bilinear")])
def test_resize_as_pytorch_does(size, order, mode) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, to compare with, is not installed")
    image = RNG.normal(size=(13, 17, 5)).astype(np.float32)
    expected = torch.nn.functional.interpolate(
        torch.tensor(image.transpose(2, 0, 1))[None], size=size, mode=mode
    )[0].numpy()
    resized = io.resize_image(image, size, interp_order=order)
    assert resized.dtype == np.float32
    np.testing.assert_allclose(resized.transpose(2, 0, 1), expected, atol=1e-5)


def test_cubic_resize_follows_parabolas() -> None:
    places = np.arange(10)
    image = np.repeat((0.3 * places**2 - places)[np.newaxis, :, np.newaxis], 2, axis=0)
    wanted = (np.arange(30) + 0.5) / 3 - 0.5
    resized = io.resize_image(image, (2, 30), 3)[0, :, 0]
    inside = (wanted >= 1) & (wanted <= 8)
    np.testing.assert_allclose(resized[inside], (0.3 * wanted**2 - wanted)[inside], atol=1e-4)


def test_resize_to_the_same_size_is_a_copy() -> None:
    image = np.ones((3, 4, 1), np.float32)
    io.resize_image(image, (3, 4))[...] = 0
    assert (image == 1).all()


@pytest.mark.parametrize(
    ("shape", "size", "order", "message"),
    [
        ((4, 5), (2, 2), 1, "H x W x channels"),
        ((4, 5, 3), (0, 2), 1, "cannot resize 4 samples to 0"),
        ((4, 5, 3), (2, 2), 2, "order 2 is not offered: 0, 1 or 3"),
    ],
)
def test_resize_refuses(shape, size, order, message) -> None:
    with pytest.raises(ValueError, match=message):
        io.resize_image(np.zeros(shape), size, order)


def test_oversample() -> None:
    images = RNG.normal(size=(2, 7, 9, 3)).astype(np.float32)
    crops = io.oversample(images, (4, 5))
    assert crops.shape == (20, 4, 5, 3)
    for index, image in enumerate(images):
        expected = [image[:4, :5], image[:4, 4:], image[3:, :5], image[3:, 4:], image[1:5, 2:7]]
        np.testing.assert_array_equal(crops[10 * index : 10 * index + 5], expected)
        np.testing.assert_array_equal(
            crops[10 * index + 5 : 10 * index + 10], np.array(expected)[:, :, ::-1]
        )
    with pytest.raises(ValueError, match="cannot crop 8x5 from images 7x9"):
        io.oversample(images, (8, 5))


# -- Transformer -----------------------------------------------------------------------------------


def transformer(**also):
    made = io.Transformer({"data": (10, 3, 8, 6), **also})
    made.set_transpose("data", (2, 0, 1))
    made.set_mean("data", np.array([104.0, 117.0, 123.0]))
    made.set_raw_scale("data", 255)
    made.set_channel_swap("data", (2, 1, 0))
    made.set_input_scale("data", 0.5)
    return made


def test_preprocess_follows_caffes_order_of_steps() -> None:
    image = RNG.random((8, 6, 3)).astype(np.float32)
    before = image.copy()
    expected = (255 * image[:, :, ::-1] - [104, 117, 123]).transpose(2, 0, 1) * 0.5
    made = transformer().preprocess("data", image)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, expected, atol=1e-4)
    np.testing.assert_array_equal(image, before)


def test_deprocess_undoes_preprocess() -> None:
    image = RNG.random((8, 6, 3)).astype(np.float32)
    made = transformer()
    np.testing.assert_allclose(
        made.deprocess("data", made.preprocess("data", image)[np.newaxis]), image, atol=1e-5
    )


def test_gray_survives_deprocess() -> None:
    made = io.Transformer({"data": (1, 1, 8, 6)})
    made.set_transpose("data", (2, 0, 1))
    image = RNG.random((8, 6, 1)).astype(np.float32)
    np.testing.assert_array_equal(
        made.deprocess("data", made.preprocess("data", image)[np.newaxis]), image
    )


def test_preprocess_resizes() -> None:
    image = RNG.random((16, 12, 3))
    plain = io.Transformer({"data": (1, 3, 8, 6)})
    plain.set_transpose("data", (2, 0, 1))
    np.testing.assert_array_equal(
        plain.preprocess("data", image), io.resize_image(image, (8, 6)).transpose(2, 0, 1)
    )


def test_nothing_set_changes_nothing() -> None:
    values = RNG.normal(size=(8, 6, 3))
    plain = io.Transformer({"data": (1, 3, 8, 6)})
    np.testing.assert_array_equal(plain.preprocess("data", values), values.astype(np.float32))


def test_mean_image() -> None:
    made = io.Transformer({"data": (1, 3, 8, 6)})
    mean = RNG.normal(size=(3, 8, 6)).astype(np.float32)
    made.set_mean("data", mean)
    made.set_transpose("data", (2, 0, 1))
    np.testing.assert_array_equal(made.preprocess("data", np.zeros((8, 6, 3))), -mean)
    made.set_mean("data", mean[np.newaxis])
    np.testing.assert_array_equal(made.mean["data"], mean)


def test_mean_of_another_size_is_resized_with_a_warning(capsys) -> None:
    made = io.Transformer({"data": (1, 3, 8, 6)})
    mean = RNG.normal(size=(3, 16, 12)).astype(np.float32)
    made.set_mean("data", mean)
    np.testing.assert_array_equal(
        made.mean["data"], io.resize_image(mean.transpose(1, 2, 0), (8, 6)).transpose(2, 0, 1)
    )
    assert "the mean is 16x12, input 'data' 8x6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.preprocess("date", np.zeros((8, 6, 3))), "'date' is not one.*'data'"),
        (lambda t: t.deprocess("x", np.zeros(3)), "'x' is not one of the net's inputs"),
        (lambda t: t.set_raw_scale("x", 2), "'x' is not one"),
        (lambda t: t.set_input_scale("x", 2), "'x' is not one"),
        (lambda t: t.preprocess("data", np.zeros((8, 6))), r"takes an image of 3 axes"),
        (lambda t: t.set_transpose("data", (1, 0)), "transpose: axes .* no order of 0 to 2"),
        (lambda t: t.set_channel_swap("data", (0, 1, 2, 3)), "channel swap: .* 0 to 2"),
        (lambda t: t.set_mean("data", np.zeros(4)), r"mean of shape \(4,\) .*\(10, 3, 8, 6\)"),
        (lambda t: t.set_mean("data", np.zeros((1, 8, 6))), "it needs 3 values, or an image of 3"),
    ],
)
def test_transformer_refuses(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call(transformer())
