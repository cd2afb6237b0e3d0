"""The classes of an image.

    python examples/classify_image.py -model models/fashion_cnn/deploy.prototxt \
        -weights models/fashion_cnn/fashion_cnn_iter_938.caffemodel shirt.png

Prints the best classes and their scores. For a net that learned BGR images of 0 to 255 with a mean,
as CaffeNet: -raw_scale 255 -mean 104,117,123. A file of labels, one a line, names the classes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import caffe


def main(words: Sequence[str] | None = None) -> list[tuple[str, float]]:
    """Classify; returns the best classes with their scores, best first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image")
    parser.add_argument("-model", required=True, help="deploy prototxt")
    parser.add_argument("-weights", required=True, help=".caffemodel")
    parser.add_argument("-labels", help="text file with the names of the classes")
    parser.add_argument("-raw_scale", type=float, default=255 / 256, help="of images from 0 to 1")
    parser.add_argument("-mean", help="a value a channel, separated by commas")
    parser.add_argument("-best", type=int, default=5, help="how many classes to print")
    given = parser.parse_args(words)

    classifier = caffe.Classifier(
        given.model,
        given.weights,
        raw_scale=given.raw_scale,
        mean=None if given.mean is None else [float(value) for value in given.mean.split(",")],
    )
    channels = classifier.blobs[classifier.inputs[0]].channels
    if channels == 3:  # load_image() reads RGB, Caffe's databases hold BGR
        classifier.transformer.set_channel_swap(classifier.inputs[0], (2, 1, 0))
    image = caffe.io.load_image(given.image, color=channels == 3)
    scores = classifier.predict([image], oversample=False)[0]
    labels = Path(given.labels).read_text().splitlines() if given.labels else []
    best = []
    for index in np.argsort(-scores)[: given.best]:
        name = labels[index] if index < len(labels) else f"class {index}"
        best.append((name, float(scores[index])))
        print(f"{scores[index]:7.2%}  {name}")
    return best


if __name__ == "__main__":
    main()
