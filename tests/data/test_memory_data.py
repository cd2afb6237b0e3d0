"""The layer MemoryData fed with datums; with arrays it is tested through Net, in tests/pycaffe."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import caffe
from caffe import layers as L
from caffe.data.datum import array_to_datum
from caffe.proto import caffe_pb2

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (4, 3, 4, 5), np.uint8)


def net(phase=caffe.TEST, height=4, width=5, **transform):
    data, label = L.MemoryData(
        batch_size=2,
        channels=3,
        height=height,
        width=width,
        ntop=2,
        transform_param=transform,
    )
    n = caffe.NetSpec()
    n.data, n.label = data, label
    return caffe.Net(n.to_proto(), phase)


def datums(images=IMAGES):
    return [array_to_datum(image, 7 + i) for i, image in enumerate(images)]


def batch(made):
    out = made.forward()
    return out["data"].copy(), out["label"].tolist()


def test_datums_are_transformed():
    made = net(scale=0.5, mean_value=[1, 2, 3])
    made.add_datums(datums())
    expected = (IMAGES - np.float32([1, 2, 3])[:, None, None]) / 2
    for start in (0, 2, 0):
        data, labels = batch(made)
        np.testing.assert_array_equal(data, expected[start : start + 2])
        assert labels == [7 + start, 8 + start]


def test_crops_differ_between_datums_added():
    made = net(caffe.TRAIN, 2, 2, crop_size=2, mirror=True)
    seen = set()
    for _ in range(20):
        made.add_datums(datums(IMAGES[:2]))
        seen.add(batch(made)[0].tobytes())
    assert len(seen) > 10


def test_encoded_datums_are_decoded():
    file = io.BytesIO()
    Image.fromarray(IMAGES[0].transpose(1, 2, 0)[:, :, ::-1].copy()).save(file, "PNG")
    made = net()
    made.add_datums([caffe_pb2.Datum(encoded=True, data=file.getvalue(), label=3)] * 2)
    np.testing.assert_array_equal(batch(made)[0], IMAGES[[0, 0]])


def test_more_can_be_added_when_all_were_read():
    made = net()
    made.add_datums(datums())
    made.forward()
    with pytest.raises(ValueError, match="added before are still to be read"):
        made.add_datums(datums())
    made.forward()
    made.add_datums(datums(IMAGES[:2]))
    assert batch(made)[1] == [7, 8]
    made.add_datums(datums())
    made.set_input_arrays(IMAGES[2:], [1, 2])
    made.add_datums(datums(IMAGES[:2]))
    assert batch(made)[1] == [7, 8]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the data has 0 rows, needs a multiple of batch_size, 2"),
        (datums()[:3], "the data has 3 rows, needs a multiple of batch_size, 2"),
        (
            [*datums()[:1], array_to_datum(np.zeros((3, 4, 4), np.uint8), 0)],
            r"datum 1: it becomes \(3, 4, 4\), needs \(3, 4, 5\)",
        ),
        ([caffe_pb2.Datum(encoded=True, data=b"text")] * 2, "datum 0: cannot decode"),
    ],
)
def test_datums_that_do_not_fit(given, message):
    made = net()
    with pytest.raises(ValueError, match=message):
        made.add_datums(given)
    made.add_datums(datums())
    assert batch(made)[1] == [7, 8]


def test_a_net_without_such_a_layer():
    made = caffe.Net(L.DummyData(shape=dict(dim=[1])).to_proto(), caffe.TEST)
    with pytest.raises(ValueError, match=r"add_datums\(\) needs a layer of type MemoryData"):
        made.add_datums(datums())
