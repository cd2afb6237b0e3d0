"""Detector: a net that scores windows of images, as pycaffe's for R-CNN."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from caffe.classifier import image_transformer
from caffe.io import FloatArray, load_image, resize_image
from caffe.net import Net
from caffe.proto import caffe_pb2 as pb

Window = Sequence[float]  # ymin, xmin, ymax, xmax


class Detection(TypedDict):
    """The scores of one window."""

    window: Window
    prediction: FloatArray
    filename: str


class Detector(Net):
    """A net with one input, N x C x H x W, and scores for N windows as its first output."""

    def __init__(
        self,
        model_file: str | Path | pb.NetParameter,
        pretrained_file: str | Path,
        mean: npt.ArrayLike | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
        context_pad: int | None = None,
    ) -> None:
        """Make the net; see Classifier.

        Args:
            model_file: the net.
            pretrained_file: its weights.
            mean: see Transformer.set_mean().
            input_scale: see Transformer.set_input_scale().
            raw_scale: see Transformer.set_raw_scale().
            channel_swap: see Transformer.set_channel_swap().
            context_pad: pixels of the net's input around the window that show its surroundings.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the net makes no sense, has no image input, or an option does not fit it.
        """
        super().__init__(model_file, pb.TEST, weights=pretrained_file)
        self.transformer = image_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def configure_crop(self, context_pad: int | None) -> None:
        """Set the surroundings of windows; what lies outside the image is the mean.

        Raises ValueError for a pad that leaves nothing of the window.
        """
        name = self.inputs[0]
        shape = self.blobs[name].shape
        self.context_pad = int(context_pad or 0)
        if not 0 <= 2 * self.context_pad < min(shape[2:]):
            raise ValueError(
                f"context_pad {context_pad} leaves nothing of an input of {shape[2]}x{shape[3]}"
            )
        centre = np.zeros(shape[1:], dtype=np.float32)  # what preprocess() makes of the mean
        self.crop_mean = self.transformer.deprocess(name, centre)

    def detect_windows(
        self, images_windows: Iterable[tuple[str | Path, Iterable[Window]]]
    ) -> list[Detection]:
        """Score windows of images.

        Args:
            images_windows: file of an image and its windows (ymin, xmin, ymax, xmax), in pixels.

        Returns:
            One detection a window: window, prediction (float32) and filename.

        Raises:
            FileNotFoundError: no such image.
            ValueError: no windows at all, or one that has no pixel in its image.
            caffe.Error: a layer failed.
        """
        name = self.inputs[0]
        color = self.blobs[name].shape[1] != 1
        asked: list[tuple[str, Window]] = []
        crops = []
        for filename, windows in images_windows:
            image = load_image(filename, color)
            for window in windows:
                asked.append((str(filename), window))
                crops.append(self.transformer.preprocess(name, self.crop(image, window)))
        if not asked:
            raise ValueError("there are no windows to score")
        scores = self.forward_all(None, **{name: np.stack(crops)})[self.outputs[0]]
        return [
            Detection(window=window, prediction=score, filename=filename)
            for (filename, window), score in zip(asked, scores)
        ]

    def detect_selective_search(self, image_fnames: Iterable[str | Path]) -> list[Detection]:
        """Score the windows that the module selective_search_ijcv_with_python proposes.

        Raises ImportError where that module, which is no part of this package, is missing; else as
        detect_windows().
        """
        try:
            search = importlib.import_module("selective_search_ijcv_with_python")
        except ModuleNotFoundError as error:
            raise ImportError(
                "detect_selective_search needs the module selective_search_ijcv_with_python; give "
                "windows of your own to detect_windows() instead"
            ) from error
        names = [str(Path(name).resolve()) for name in image_fnames]
        windows = search.get_windows(names, cmd="selective_search_rcnn")
        return self.detect_windows(zip(names, windows))

    def crop(self, im: FloatArray, window: Window) -> FloatArray:
        """Return a window of an image, with its surroundings if context_pad asks for them.

        Args:
            im: H x W x C.
            window: (ymin, xmin, ymax, xmax) in pixels, the upper ends excluded.

        Returns:
            The window as it is, or of the size of the net's input with surroundings.

        Raises:
            ValueError: the window has no pixel in the image.
        """
        box = np.asarray(window, dtype=np.float64)
        if not self.context_pad:
            top, left, bottom, right = np.round(box).astype(int)
            part = im[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
            if not part.size:
                raise ValueError(f"window {window} has no pixel in an image of shape {im.shape}")
            return part
        return self._with_context(im, box)

    def _with_context(self, im: FloatArray, box: npt.NDArray[np.float64]) -> FloatArray:
        """Enlarge `box` so that the window fills the input but for context_pad, and cut it out."""
        out = np.array(self.crop_mean.shape[:2])
        low, high = box[:2], box[2:]
        half = (high - low) / 2 * out / (out - 2 * self.context_pad)
        start = np.round((low + high) / 2 - half)
        end = np.maximum(np.round((low + high) / 2 + half), start + 1)
        inner_start, inner_end = np.maximum(start, 0), np.minimum(end, im.shape[:2])
        if (inner_end <= inner_start).any():
            raise ValueError(f"window {box.tolist()} has no pixel in an image of shape {im.shape}")
        scale = out / (end - start)
        place = np.minimum(np.round((inner_start - start) * scale), out - 1).astype(int)
        size = np.round((inner_end - inner_start) * scale)
        size = np.clip(size, 1, out - place).astype(int)
        (top, left), (bottom, right) = inner_start.astype(int), inner_end.astype(int)
        crop = self.crop_mean.copy()
        crop[place[0] : place[0] + size[0], place[1] : place[1] + size[1]] = resize_image(
            im[top:bottom, left:right], size.tolist()
        )
        return crop
