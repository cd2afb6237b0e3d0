"""CaffeNet (AlexNet with pooling before normalisation) for the 120 breeds of Stanford Dogs.

Names and shapes are those of BVLC's model, whose weights can be loaded. The last layer alone has a
name of its own, so that theirs for 1000 classes are passed over.
"""

from __future__ import annotations

from typing import Any

from alexnet_layers import POOL, conv, dense, norm

from caffe import layers as L

NAME = "CaffeNet for Stanford Dogs"
CROP = 227
TRAIN_BATCH = 256
VAL_BATCH = 50
SOURCE = "data/dogs/{split}_lmdb"
MEAN_FILE = "data/dogs/mean.binaryproto"


def body(n: Any, data: Any, label: Any) -> Any:
    """Add the layers; returns the scores of 120 classes."""
    n.conv1 = conv(data, 0, num_output=96, kernel_size=11, stride=4)
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.pool1 = L.Pooling(n.conv1, **POOL)
    n.norm1 = norm(n.pool1)
    n.conv2 = conv(n.norm1, 1, num_output=256, kernel_size=5, pad=2, group=2)
    n.relu2 = L.ReLU(n.conv2, in_place=True)
    n.pool2 = L.Pooling(n.conv2, **POOL)
    n.norm2 = norm(n.pool2)
    n.conv3 = conv(n.norm2, 0, num_output=384, kernel_size=3, pad=1)
    n.relu3 = L.ReLU(n.conv3, in_place=True)
    n.conv4 = conv(n.conv3, 1, num_output=384, kernel_size=3, pad=1, group=2)
    n.relu4 = L.ReLU(n.conv4, in_place=True)
    n.conv5 = conv(n.conv4, 1, num_output=256, kernel_size=3, pad=1, group=2)
    n.relu5 = L.ReLU(n.conv5, in_place=True)
    n.pool5 = L.Pooling(n.conv5, **POOL)
    n.fc6 = dense(n.pool5, 4096, 0.005, 1)
    n.relu6 = L.ReLU(n.fc6, in_place=True)
    n.drop6 = L.Dropout(n.fc6, in_place=True, dropout_ratio=0.5)
    n.fc7 = dense(n.fc6, 4096, 0.005, 1)
    n.relu7 = L.ReLU(n.fc7, in_place=True)
    n.drop7 = L.Dropout(n.fc7, in_place=True, dropout_ratio=0.5)
    n.fc8_dogs = dense(n.fc7, 120, 0.01, 0)
    return n.fc8_dogs
