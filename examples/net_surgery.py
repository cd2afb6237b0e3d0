"""Net surgery: a classifier becomes one that scores every place of a larger image.

    python examples/net_surgery.py -weights lenet.caffemodel -out lenet_everywhere.caffemodel

LeNet's fully connected layers read 4x4 and 1x1 places. As convolutions with windows of these sizes
they have the same weights, in another shape, and take images of any size: the scores become maps.
Without `-weights` the weights are random, which shows as much.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import caffe
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_net

MODEL = Path(__file__).resolve().parents[1] / "models" / "lenet" / "deploy.prototxt"
#: Fully connected layer -> size of the places that it reads, and its name as a convolution.
WINDOWS = {"ip1": (4, "ip1_conv"), "ip2": (1, "ip2_conv")}


def fully_convolutional(net: pb.NetParameter, height: int, width: int) -> pb.NetParameter:
    """Return the net with convolutions for its InnerProduct layers, for one image of this size."""
    result = pb.NetParameter()
    result.CopyFrom(net)
    result.layer[0].input_param.shape[0].dim[:] = [1, 1, height, width]
    for layer in result.layer:
        if layer.name in WINDOWS:
            window, name = WINDOWS[layer.name]
            outputs = layer.inner_product_param.num_output
            layer.ClearField("inner_product_param")
            layer.name, layer.type = name, "Convolution"
            layer.convolution_param.num_output = outputs
            layer.convolution_param.kernel_size.append(window)
    return result


def transplant(source: caffe.Net, target: caffe.Net) -> None:
    """Copy all weights; those of fully connected layers get the shape of the convolutions."""
    for name, blobs in source.params.items():
        other = WINDOWS[name][1] if name in WINDOWS else name
        for ours, theirs in zip(blobs, target.params[other]):
            theirs.data.flat = ours.data.flat


def main(words: Sequence[str] | None = None) -> float:
    """Operate, and compare; returns the largest difference between both nets' scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-weights", help="LeNet's .caffemodel")
    parser.add_argument("-out", help=".caffemodel to write")
    parser.add_argument("-size", type=int, default=40, help="height and width of the larger image")
    given = parser.parse_args(words)

    net = read_net(MODEL)
    classifier = caffe.Net(net, caffe.TEST, weights=given.weights)
    everywhere = caffe.Net(fully_convolutional(net, given.size, given.size), caffe.TEST)
    transplant(classifier, everywhere)

    image = np.random.default_rng(0).random((1, 1, given.size, given.size), dtype=np.float32)
    maps = everywhere.forward(data=image)["prob"]
    side = maps.shape[2]
    print(f"scores of {side}x{side} places, 4 pixels apart, in one pass")
    # The same places, cut out and classified one by one: both poolings together stride 4 pixels.
    places = [(4 * y, 4 * x) for y in range(side) for x in range(side)]
    cut = np.stack([image[0, :, y : y + 28, x : x + 28] for y, x in places])
    scores = classifier.forward_all(data=cut)["prob"]
    difference = float(np.abs(scores.T.reshape(maps.shape[1:]) - maps[0]).max())
    print(f"largest difference from classifying each of them: {difference:.1e}")
    if given.out:
        everywhere.save(given.out)
    return difference


if __name__ == "__main__":
    main()
