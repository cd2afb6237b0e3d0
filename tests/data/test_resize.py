"""One rule of resizing for lists of images, whoever reads them."""

from __future__ import annotations

import numpy as np
from PIL import Image
from test_data_layers import build, take

from caffe.data.datum import parse_record
from caffe.data.image_records import ImageSetOptions, make_record
from caffe.layer_types.image_data import ImageData


def by_definition(image, height, width):
    """Linear between pixels, sample i at (i + 1/2) m/n - 1/2, in double precision."""
    result = image.astype(np.float64)
    for axis, size in ((1, height), (2, width)):
        old = result.shape[axis]
        place = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
        moved = np.moveaxis(result, axis, -1)
        rows = [np.interp(place, range(old), row) for row in moved.reshape(-1, old)]
        result = np.moveaxis(np.reshape(rows, (*moved.shape[:-1], size)), -1, axis)
    return result


def test_databases_and_image_data_resize_alike(tmp_path):
    rng = np.random.default_rng(0)
    for height, width in ((50, 70), (9, 11), (20, 20)):
        path = tmp_path / f"{height}.png"
        colours = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(colours).save(path)
        datum, pixels = make_record(path.read_bytes(), 1, ImageSetOptions(size=(17, 23)))
        record = parse_record(datum.SerializeToString())
        assert record == (pixels.tobytes(), (3, 17, 23), 1)
        expected = by_definition(colours[:, :, ::-1].transpose(2, 0, 1), 17, 23)
        assert np.abs(pixels - expected).max() < 0.501
        (tmp_path / "list").write_text(f"{path} 1\n")
        layer, top = build(
            ImageData,
            f'image_data_param {{ source: "{tmp_path}/list" batch_size: 1 new_height: 17 '
            "new_width: 23 }",
        )
        np.testing.assert_array_equal(take(layer, top, 1)[0][0][0], pixels)
        layer.close()
