"""Classifier and Detector, against what their nets say of inputs made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe import layers as L

RNG = np.random.default_rng(9)
XAVIER = dict(type="xavier")


def model(tmp_path, batch=4, size=8):
    """A net of random weights with softmax scores of 5 classes: its file and its weights."""
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[batch, 3, size, size]))
    n.conv = L.Convolution(n.data, num_output=4, kernel_size=3, weight_filler=XAVIER)
    n.relu = L.ReLU(n.conv, in_place=True)
    n.ip = L.InnerProduct(n.relu, num_output=5, weight_filler=XAVIER)
    n.prob = L.Softmax(n.ip)
    path, weights = tmp_path / "net.prototxt", tmp_path / "net.caffemodel"
    path.write_text(str(n.to_proto()))
    caffe.Net(str(path), caffe.TEST).save(str(weights))
    return str(path), str(weights)


def scores(files, batch):
    """What the net says of images that are inputs already."""
    net = caffe.Net(*files, caffe.TEST)
    net.blobs["data"].reshape(*batch.shape)
    return net.forward(data=batch)["prob"].copy()


def inputs_of(images):
    return (255 * np.array(images)[..., ::-1] - [10, 20, 30]).transpose(0, 3, 1, 2) / 64


OPTIONS = dict(
    mean=np.array([10.0, 20.0, 30.0]), raw_scale=255, channel_swap=(2, 1, 0), input_scale=1 / 64
)


def test_centre_crops(tmp_path) -> None:
    files = model(tmp_path)
    images = RNG.random((6, 12, 10, 3)).astype(np.float32)
    classifier = caffe.Classifier(*files, image_dims=(12, 10), **OPTIONS)
    found = classifier.predict(images, oversample=False)
    assert found.shape == (6, 5)
    np.testing.assert_allclose(
        found, scores(files, inputs_of(images[:, 2:10, 1:9])), rtol=1e-4, atol=1e-6
    )


def test_oversampled(tmp_path) -> None:
    files = model(tmp_path)
    images = RNG.random((3, 12, 10, 3)).astype(np.float32)
    classifier = caffe.Classifier(*files, image_dims=(12, 10), **OPTIONS)
    crops = caffe.io.oversample(images, (8, 8))
    expected = scores(files, inputs_of(crops)).reshape(3, 10, 5).mean(axis=1)
    np.testing.assert_allclose(classifier.predict(images), expected, rtol=1e-4, atol=1e-6)


def test_images_of_any_size_are_resized(tmp_path) -> None:
    files = model(tmp_path)
    image = RNG.random((20, 30, 3)).astype(np.float32)
    found = caffe.Classifier(*files).predict([image], False)
    resized = caffe.io.resize_image(image, (8, 8)).transpose(2, 0, 1)[np.newaxis]
    np.testing.assert_allclose(found, scores(files, resized), rtol=1e-4, atol=1e-6)


def test_classifier_refuses(tmp_path) -> None:
    files = model(tmp_path)
    with pytest.raises(ValueError, match=r"image_dims \(4, 9\) are smaller than the input, 8x8"):
        caffe.Classifier(*files, image_dims=(4, 9))
    with pytest.raises(ValueError, match="no images to classify"):
        caffe.Classifier(*files).predict([])
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3]))
    n.ip = L.InnerProduct(n.data, num_output=2)
    flat = caffe.Net(n.to_proto(), caffe.TEST)
    flat.save(str(tmp_path / "flat.caffemodel"))
    with pytest.raises(ValueError, match="needs to be N x C x H x W"):
        caffe.Classifier(n.to_proto(), str(tmp_path / "flat.caffemodel"))


def photo(tmp_path, height=30, width=40):
    path = tmp_path / "photo.png"
    Image.fromarray(RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)
    return path


WINDOWS = [(2, 3, 12, 18), (0, 0, 30, 40), (10, 20, 18, 28), (5, 5, 9, 9), (20, 25, 30, 40)]


def test_detect_windows(tmp_path) -> None:
    files, path = model(tmp_path), photo(tmp_path)
    detector = caffe.Detector(*files, **OPTIONS)
    found = detector.detect_windows([(path, WINDOWS)])
    image = caffe.io.load_image(path)
    crops = [caffe.io.resize_image(image[t:b, left:r], (8, 8)) for t, left, b, r in WINDOWS]
    expected = scores(files, inputs_of(crops))
    assert [detection["window"] for detection in found] == WINDOWS
    assert {detection["filename"] for detection in found} == {str(path)}
    np.testing.assert_allclose(
        [detection["prediction"] for detection in found], expected, rtol=1e-4, atol=1e-6
    )


def test_context_shows_the_surroundings(tmp_path) -> None:
    detector = caffe.Detector(*model(tmp_path), context_pad=2, **OPTIONS)
    image = RNG.random((40, 40, 3)).astype(np.float32)
    # The window fills the middle 4 of 8 pixels: the crop is twice as large as the window.
    np.testing.assert_array_equal(detector.crop(image, (10, 10, 14, 14)), image[8:16, 8:16])


def test_context_outside_the_image_is_the_mean(tmp_path) -> None:
    detector = caffe.Detector(*model(tmp_path), context_pad=2, **OPTIONS)
    image = np.ones((40, 40, 3), np.float32)
    crop = detector.crop(image, (0, 0, 4, 4))
    np.testing.assert_array_equal(crop[2:, 2:], image[:6, :6])
    mean = np.array([30.0, 20.0, 10.0]) / 255  # in the order of load_image()
    np.testing.assert_allclose(crop[:2], np.broadcast_to(mean, (2, 8, 3)), atol=1e-6)
    np.testing.assert_allclose(
        detector.transformer.preprocess("data", crop)[:, :2], np.zeros((3, 2, 8)), atol=1e-5
    )


def test_every_window_gives_the_inputs_size(tmp_path) -> None:
    detector = caffe.Detector(*model(tmp_path), context_pad=3)
    image = RNG.random((13, 17, 3)).astype(np.float32)
    for _ in range(300):
        top, left = RNG.integers(0, 12), RNG.integers(0, 16)
        window = (top, left, RNG.integers(top + 1, 14), RNG.integers(left + 1, 18))
        assert detector.crop(image, window).shape == (8, 8, 3)


def test_detector_refuses(tmp_path) -> None:
    files, path = model(tmp_path), photo(tmp_path)
    with pytest.raises(ValueError, match="context_pad 4 leaves nothing"):
        caffe.Detector(*files, context_pad=4)
    detector = caffe.Detector(*files)
    with pytest.raises(ValueError, match=r"window \(50, 0, 60, 10\) has no pixel"):
        detector.detect_windows([(path, [(50, 0, 60, 10)])])
    with pytest.raises(ValueError, match="no windows to score"):
        detector.detect_windows([(path, [])])
    with pytest.raises(ImportError, match="selective_search_ijcv_with_python"):
        detector.detect_selective_search([path])
