"""Transformation against a plain NumPy version, and its determinism."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe._core import data as core
from caffe.data.transform import Transformer, random_key, read_mean
from caffe.proto import caffe_pb2

TRAIN, TEST = caffe_pb2.TRAIN, caffe_pb2.TEST
SHAPE = (3, 7, 9)


def images(count, dtype, shape=SHAPE):
    rng = np.random.default_rng(1)
    return [rng.integers(0, 255, shape).astype(dtype) for _ in range(count)]


def run(transformer, batch, first_index=0):
    shape = transformer.output_shape(batch[0].shape)
    out = np.full((len(batch), *shape), np.nan, np.float32)
    stored = [image.tobytes() if image.dtype == np.uint8 else image for image in batch]
    transformer.transform(stored, [image.shape for image in batch], first_index, out)
    return out


def plain(param, phase, image, mean, index, key):
    """Do what transform.hpp says, in NumPy; windows come from the core."""
    options = core.TransformOptions()
    options.crop_size, options.mirror = param.crop_size, param.mirror
    options.random_crop, options.random_key = phase == TRAIN, key
    top, left, mirror = core.draw_window(options, *image.shape, index)
    moved = (image.astype(np.float32) - mean) * np.float32(param.scale)
    if param.crop_size:
        moved = moved[:, top : top + param.crop_size, left : left + param.crop_size]
    return moved[:, :, ::-1] if mirror else moved


@settings(max_examples=150, deadline=None)
@given(
    dtype=st.sampled_from([np.uint8, np.float32]),
    phase=st.sampled_from([TRAIN, TEST]),
    mean=st.sampled_from(["none", "one", "channel", "image"]),
    mirror=st.booleans(),
    crop=st.sampled_from([0, 1, 4, 7]),
    scale=st.sampled_from([1.0, 0.00390625, -2.5]),
    first=st.integers(0, 2**40),
)
def test_equals_numpy(tmp_path_factory, dtype, phase, mean, mirror, crop, scale, first):
    param = caffe_pb2.TransformationParameter(mirror=mirror, crop_size=crop, scale=scale)
    value = np.zeros((3, 1, 1), np.float32)
    if mean == "one":
        value += 5
        param.mean_value.append(5)
    elif mean == "channel":
        value[:, 0, 0] = [1, 2, 3]
        param.mean_value.extend([1, 2, 3])
    elif mean == "image":
        value = np.random.default_rng(2).random(SHAPE, np.float32)
        path = tmp_path_factory.mktemp("mean") / "mean.npy"
        np.save(path, value)
        param.mean_file = str(path)
    batch = images(5, dtype)
    out = run(Transformer(param, phase, 3, "data"), batch, first)
    key = random_key(3, "data")
    expected = [plain(param, phase, x, value, first + i, key) for i, x in enumerate(batch)]
    np.testing.assert_array_equal(out, np.stack(expected))


def windows(count, seed=0, name="data", crop=3, phase=TRAIN, mirror=True):
    options = core.TransformOptions()
    options.crop_size, options.random_crop, options.mirror = crop, phase == TRAIN, mirror
    options.random_key = random_key(seed, name)
    return [core.draw_window(options, *SHAPE, i) for i in range(count)]


def test_windows_are_spread_evenly():
    drawn = windows(20000)
    for axis, places in ((0, 5), (1, 7), (2, 2)):
        counts = np.bincount([window[axis] for window in drawn], minlength=places)
        assert len(counts) == places
        assert np.abs(counts / 20000 - 1 / places).max() < 0.02


def test_centre_in_test_phase():
    assert set(windows(50, phase=TEST, mirror=False)) == {(2, 3, False)}


def test_windows_depend_on_seed_name_and_index_alone():
    assert windows(50) == windows(50)
    assert windows(50) != windows(50, seed=1)
    assert windows(50) != windows(50, name="other")
    param = caffe_pb2.TransformationParameter(crop_size=3, mirror=True)
    batch = images(6, np.uint8)
    whole = run(Transformer(param, TRAIN, 0, "x"), batch, 100)
    rest = run(Transformer(param, TRAIN, 0, "x"), batch[4:], 104)
    np.testing.assert_array_equal(whole[4:], rest)


def test_images_of_several_sizes_with_a_crop():
    param = caffe_pb2.TransformationParameter(crop_size=4)
    batch = [np.full((1, size, size + 1), size, np.uint8) for size in (4, 9, 5)]
    out = run(Transformer(param, TRAIN), batch)
    assert out.reshape(3, -1).min(1).tolist() == out.reshape(3, -1).max(1).tolist() == [4, 9, 5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crop_size": 8}, "crop_size 8 is larger than the images .7x9.; lower it"),
        ({"mean_value": [1, 2]}, "2 mean_value for images of 3 channels; give one, or one per"),
    ],
)
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        Transformer(caffe_pb2.TransformationParameter(**options), TRAIN).output_shape(SHAPE)


def test_excluding_options():
    for options in (
        {"mean_file": "x", "mean_value": [1]},
        {"force_color": True, "force_gray": True},
    ):
        with pytest.raises(ValueError, match="exclude each other"):
            Transformer(caffe_pb2.TransformationParameter(**options), TRAIN)


def blob_file(path, **fields):
    path.write_bytes(caffe_pb2.BlobProto(**fields).SerializeToString())
    return path


def test_mean_files(tmp_path):
    values = list(range(6))
    old = blob_file(tmp_path / "a", num=1, channels=1, height=2, width=3, data=values)
    new = blob_file(tmp_path / "b", shape={"dim": [1, 2, 3]}, double_data=values)
    np.save(tmp_path / "c.npy", np.arange(6.0).reshape(1, 2, 3))
    for path in (old, new, tmp_path / "c.npy"):
        mean = read_mean(path)
        assert (mean.shape, mean.dtype) == ((1, 2, 3), np.float32)
        assert mean.ravel().tolist() == values


def test_per_channel_mean_file(tmp_path):
    path = blob_file(tmp_path / "m", num=1, channels=3, height=1, width=1, data=[1, 2, 3])
    param = caffe_pb2.TransformationParameter(mean_file=str(path))
    out = run(Transformer(param, TEST), [np.zeros(SHAPE, np.uint8)])
    assert out[0, :, 0, 0].tolist() == [-1, -2, -3]


def test_bad_mean_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="caffe prepare mean"):
        read_mean(tmp_path / "none.binaryproto")
    path = blob_file(tmp_path / "m", num=1, channels=1, height=2, width=3, data=[1])
    with pytest.raises(ValueError, match="holds 1 values, its shape 1x1x2x3 needs 6"):
        read_mean(path)
    (tmp_path / "m.npy").write_bytes(b"\x93NUMPYxx")
    with pytest.raises(ValueError, match="is no NumPy file"):
        read_mean(tmp_path / "m.npy")
    path = blob_file(tmp_path / "n", num=1, channels=3, height=2, width=2, data=range(12))
    param = caffe_pb2.TransformationParameter(mean_file=str(path))
    with pytest.raises(ValueError, match="has shape 3x2x2, the images 3x7x9; compute it"):
        Transformer(param, TEST).output_shape(SHAPE)


@pytest.mark.parametrize(
    ("batch", "shapes", "count", "message"),
    [
        ([b"abc"], [(1, 2, 2)], 4, "holds 3 values, its shape 1x2x2 needs 4"),
        ([b"abcd", b"ab"], [(1, 2, 2), (1, 1, 2)], 6, "without crop_size all must be of one size"),
        ([b"abcd"], [(1, 2, 2)], 5, "the output holds 5 values, the batch 4"),
        ([b"abcd"], [(1, 2, 2), (1, 2, 2)], 8, "one row for each of 1 images"),
        ([np.zeros(4)], [(1, 2, 2)], 4, "neither bytes nor float32"),
        ([np.zeros(8, np.float32)[::2]], [(1, 2, 2)], 4, "not contiguous"),
        ([b""], [(0, 2, 2)], 0, "holds nothing"),
    ],
)
def test_core_checks_sizes(batch, shapes, count, message):
    options = core.TransformOptions()
    with pytest.raises(ValueError, match=message):
        core.transform_batch(batch, np.array(shapes), options, 0, np.zeros(count, np.float32))
