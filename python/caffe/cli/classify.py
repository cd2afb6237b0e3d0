"""`caffe classify`: scores of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from caffe import log
from caffe.atomic_file import atomic_file
from caffe.classifier import Classifier
from caffe.cli.common import arguments, required
from caffe.cli.flags import Flag, Flags, UsageError
from caffe.cli.image_nets import IMAGE_FLAGS, image_net, load_array, whole_numbers
from caffe.io import load_image
from caffe.net_inputs import input_channels

USAGE = "caffe classify INPUT OUTPUT.npy -model_def FILE -pretrained_model FILE FLAGS"
FLAGS = (
    *IMAGE_FLAGS,
    Flag("center_only", False, "score the centre instead of averaging ten crops"),
    Flag("images_dim", "256,256", "height,width that images are resized to before"),
    Flag("ext", "jpg", "ending of the images where INPUT is a folder"),
)


def run(flags: Flags) -> int:
    """Classify one image, the images of a folder in the order of their names, or a .npy batch.

    OUTPUT gets an array, images x classes.

    Raises:
        UsageError: flags or files that make no sense.
        ValueError, OSError, caffe.Error: whatever is wrong with the files or the net.
    """
    source, target = arguments(flags, 2, USAGE)
    channels = input_channels(required(flags, "model_def", "the net prototxt"))
    net = image_net(flags, channels)
    dims = whole_numbers(flags, "images_dim")
    if len(dims) != 2:
        raise UsageError(f"flag -images_dim is '{flags.text('images_dim')}', needs height,width")
    classifier = Classifier(net.model, net.weights, image_dims=dims, **net.options)
    images = _images(Path(source), flags.text("ext").lstrip("."), channels != 1)
    log.info(f"Classifying {len(images)} inputs.")
    scores = classifier.predict(images, not flags.on("center_only"))
    with atomic_file(target) as file:
        np.save(file, scores)
    log.info(f"Saving results into {target}")
    return 0


def _images(source: Path, ending: str, color: bool) -> list[npt.NDArray[np.float32]]:
    if source.is_dir():
        files = sorted(source.glob(f"*.{ending}"))
        if not files:
            raise ValueError(f"folder '{source}' has no files that end in .{ending}; see -ext")
        return [load_image(file, color) for file in files]
    if source.suffix == ".npy":
        batch = load_array(source)
        if batch.ndim != 4:
            raise ValueError(f"'{source}' has shape {batch.shape}, needs N x H x W x channels")
        return list(batch)
    return [load_image(source, color)]
