"""What `caffe classify` and `caffe detect` have in common: the flags of a net for images."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from caffe.cli.common import required
from caffe.cli.flags import Flag, Flags, UsageError
from caffe.file_kind import require_file
from caffe.mode import set_mode_gpu
from caffe.prototxt import read_blob
from caffe.stored_blob import blob_to_array

IMAGE_FLAGS = (
    Flag("model_def", "", "net prototxt (deploy)"),
    Flag("pretrained_model", "", ".caffemodel"),
    Flag("gpu", False, "compute on the GPU; this build runs on the CPU"),
    Flag("mean_file", "", "mean to subtract: .npy or .binaryproto"),
    Flag("input_scale", 0.0, "factor behind the mean; 0: none"),
    Flag("raw_scale", 255.0, "factor before the mean, for images from 0 to 1"),
    Flag("channel_swap", "2,1,0", "order of channels of colour images: RGB to BGR by default"),
)


class ImageNet(NamedTuple):
    """The files of a net, and the options of Classifier and Detector."""

    model: str
    weights: str
    options: dict[str, Any]


def image_net(flags: Flags, channels: int) -> ImageNet:
    """Return what the flags say of a net whose input has so many channels.

    Raises:
        UsageError: flags that are missing or make no sense.
        FileNotFoundError, ValueError: a file is missing or of another kind.
    """
    if flags.on("gpu"):
        set_mode_gpu()
    swap = whole_numbers(flags, "channel_swap")
    options = {
        "mean": _mean(flags.text("mean_file")),
        "input_scale": float(flags.values["input_scale"]) or None,
        "raw_scale": float(flags.values["raw_scale"]),
        "channel_swap": swap if len(swap) == channels or "channel_swap" in flags.given else None,
    }
    model = required(flags, "model_def", "the net prototxt")
    weights = required(flags, "pretrained_model", "the net's .caffemodel")
    return ImageNet(model, weights, options)


def whole_numbers(flags: Flags, name: str) -> list[int]:
    """Return the numbers of a comma-separated value. UsageError where one is none."""
    try:
        return [int(word) for word in flags.words(name)]
    except ValueError:
        raise UsageError(
            f"flag -{name} is '{flags.text(name)}', needs whole numbers separated by commas"
        ) from None


def _mean(path: str) -> npt.NDArray[np.float32] | None:
    if not path:
        return None
    file = require_file(path, "mean")
    if file.suffix == ".binaryproto":
        return blob_to_array(read_blob(file))
    return load_array(file)


def load_array(path: str | Path) -> npt.NDArray[np.float32]:
    """Load a .npy file. ValueError for one that holds no numbers."""
    try:
        return np.load(path, allow_pickle=False).astype(np.float32)  # type: ignore[no-any-return]
    except (ValueError, EOFError, TypeError) as error:
        raise ValueError(f"'{path}' is no .npy file of numbers: {error}") from error
