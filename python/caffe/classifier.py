"""Classifier: a net that classifies images, as pycaffe's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe import io
from caffe.io import FloatArray, Transformer, resize_image
from caffe.net import Net
from caffe.proto import caffe_pb2 as pb


class Classifier(Net):
    """A net with one input, N x C x H x W, and scores for N images as its first output."""

    def __init__(
        self,
        model_file: str | Path | pb.NetParameter,
        pretrained_file: str | Path,
        image_dims: Sequence[int] | None = None,
        mean: npt.ArrayLike | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
    ) -> None:
        """Make the net and a Transformer for images as caffe.io.load_image() reads them.

        Args:
            model_file: the net.
            pretrained_file: its weights.
            image_dims: (height, width) that images are resized to before crops of the input's size
                are taken; that size by default.
            mean: see Transformer.set_mean().
            input_scale: see Transformer.set_input_scale().
            raw_scale: see Transformer.set_raw_scale().
            channel_swap: see Transformer.set_channel_swap().

        Raises:
            FileNotFoundError: no such file.
            ValueError: the net makes no sense, has no image input, or an option does not fit it.
        """
        super().__init__(model_file, pb.TEST, weights=pretrained_file)
        self.transformer = image_transformer(self, mean, input_scale, raw_scale, channel_swap)
        height, width = self.blobs[self.inputs[0]].shape[2:]
        self.crop_dims = np.array([height, width])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims, dtype=int)
        if (self.image_dims < self.crop_dims).any():
            raise ValueError(
                f"image_dims {tuple(self.image_dims.tolist())} are smaller than the input, "
                f"{height}x{width}"
            )

    def predict(
        self,
        inputs: Sequence[npt.ArrayLike],
        oversample: bool = True,
    ) -> FloatArray:
        """Classify images.

        Args:
            inputs: H x W x C each, as caffe.io.load_image() reads them; any sizes.
            oversample: average over ten crops of each (corners, centre, mirrored); else the centre.

        Returns:
            float32, images x classes.

        Raises:
            ValueError: no images, or images that do not fit.
            caffe.Error: a layer failed.
        """
        if not len(inputs):
            raise ValueError("there are no images to classify")
        images = [resize_image(image, self.image_dims.tolist()) for image in inputs]
        size = self.crop_dims.tolist()
        crops = list(io.oversample(images, size)) if oversample else self._centres(images)
        name = self.inputs[0]
        batch = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        scores = self.forward_all(None, **{name: batch})[self.outputs[0]]
        if oversample:
            scores = scores.reshape(len(images), 10, -1).mean(axis=1)
        return scores.reshape(len(images), -1) if scores.ndim == 1 else scores

    def _centres(self, images: Sequence[FloatArray]) -> list[FloatArray]:
        top, left = (self.image_dims - self.crop_dims) // 2
        height, width = self.crop_dims
        return [image[top : top + height, left : left + width] for image in images]


def image_transformer(
    net: Net,
    mean: npt.ArrayLike | None,
    input_scale: float | None,
    raw_scale: float | None,
    channel_swap: Sequence[int] | None,
) -> Transformer:
    """Return a Transformer of images, H x W x C, for the one input of a net.

    Raises ValueError where the net has no one input for images, or an option does not fit it.
    """
    shapes = {name: net.blobs[name].shape for name in net.inputs}
    if not shapes or len(next(iter(shapes.values()))) != 4:
        raise ValueError(
            f"the net's first input needs to be N x C x H x W; its inputs are {shapes or 'none'}"
        )
    name = net.inputs[0]
    transformer = Transformer({name: shapes[name]})
    transformer.set_transpose(name, (2, 0, 1))
    if mean is not None:
        transformer.set_mean(name, mean)
    if input_scale is not None:
        transformer.set_input_scale(name, input_scale)
    if raw_scale is not None:
        transformer.set_raw_scale(name, raw_scale)
    if channel_swap is not None:
        transformer.set_channel_swap(name, channel_swap)
    return transformer
