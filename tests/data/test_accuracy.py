"""Accuracy against a loop that follows the definition word by word."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from caffe.layer_types.accuracy import Accuracy
from caffe.layer_types.factory import make_layer
from caffe.proto import caffe_pb2


class PlainBlob(SimpleNamespace):
    def __init__(self, data=0.0):
        super().__init__(data=np.array(data, np.float32))

    @property
    def shape(self):
        return self.data.shape

    def reshape(self, *shape):
        self.data = np.full(shape, np.nan, np.float32)


def run(scores, labels, options="", tops=2):
    layer = Accuracy()
    layer.layer_param = text_format.Parse(
        f"accuracy_param {{ {options} }}", caffe_pb2.LayerParameter()
    )
    bottom, top = [PlainBlob(scores), PlainBlob(labels)], [PlainBlob() for _ in range(tops)]
    layer.setup(bottom, top)
    layer.reshape(bottom, top)
    layer.forward(bottom, top)
    return [blob.data for blob in top]


def by_definition(scores, labels, top_k, ignored):
    """Scores: outer x classes x inner; labels: outer x inner."""
    classes = scores.shape[1]
    hits, samples = np.zeros(classes), np.zeros(classes)
    for (i, j), label in np.ndenumerate(labels):
        if label == ignored:
            continue
        row = scores[i, :, j]
        better = sum(row[k] >= row[label] for k in range(classes) if k != label)
        hits[label] += better < top_k
        samples[label] += 1
    return hits.sum() / max(samples.sum(), 1), hits / np.maximum(samples, 1)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    outer=st.integers(1, 5),
    classes=st.integers(1, 6),
    inner=st.integers(1, 4),
    ignore=st.booleans(),
    ties=st.booleans(),
    data=st.data(),
)
def test_equals_the_definition(seed, outer, classes, inner, ignore, ties, data):
    rng = np.random.default_rng(seed)
    scores = rng.random((outer, classes, inner), np.float32)
    scores = np.round(scores * 2) if ties else scores
    labels = rng.integers(0, classes, (outer, inner))
    top_k = data.draw(st.integers(1, classes))
    options = f"top_k: {top_k}" + (" ignore_label: 0" if ignore else "")
    total, each = run(scores, labels, options)
    expected = by_definition(scores, labels, top_k, 0 if ignore else None)
    assert total.shape == ()
    np.testing.assert_allclose(total, expected[0], rtol=1e-6)
    np.testing.assert_allclose(each, expected[1], rtol=1e-6)


def test_other_axis():
    scores = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    assert run(scores, [1, 0], "axis: 0")[0] == 1
    assert run(scores, [1, 0], "axis: -2")[0] == 1


def test_all_ignored_and_nan():
    assert run([[1.0, 2.0]], [1], "ignore_label: 1")[0] == 0
    assert run([[np.nan, np.nan]], [1])[0] == 0
    assert run([[np.nan, 1.0]], [1])[0] == 1


@pytest.mark.parametrize("label", [-1, 3, 1e9, np.nan, np.inf])
def test_label_out_of_range(label):
    with pytest.raises(ValueError, match=r"of sample 1 is not one of the 3 classes \(0 to 2\)"):
        run(np.zeros((2, 3)), [0, label])


@pytest.mark.parametrize(
    ("scores", "labels", "options", "message"),
    [
        ((2, 3), (3,), "", "have 2 positions outside axis 1, the labels of shape .3,. are 3"),
        ((2, 3), (2,), "axis: 2", "axis 2 does not exist"),
        ((2, 3), (2,), "top_k: 4", "top_k 4 exceeds the 3 classes"),
        ((2, 3), (2,), "top_k: 0", "top_k 0, needs 1 or more"),
    ],
)
def test_bad_shapes_and_options(scores, labels, options, message):
    with pytest.raises(ValueError, match=message):
        run(np.zeros(scores), np.zeros(labels), options)


def test_wrong_number_of_tops():
    param = caffe_pb2.LayerParameter(type="Accuracy", bottom=["x", "label"], top=["a", "b", "c"])
    with pytest.raises(ValueError, match="has 3 tops, needs 1 to 2"):
        make_layer(param, caffe_pb2.TEST, 0)
