"""What a net prototxt says of its first input, without making the net."""

from __future__ import annotations

from pathlib import Path

from caffe.prototxt import read_net


def input_channels(model: str | Path) -> int:
    """Return the channels of a net's first input, N x C x H x W.

    Raises:
        FileNotFoundError: no such file.
        ValueError: no net prototxt, or one without such an input.
    """
    for layer in read_net(model).layer:
        if layer.type == "Input" and layer.input_param.shape:
            shape = list(layer.input_param.shape[0].dim)
            if len(shape) == 4:
                return shape[1]
            raise ValueError(f"'{model}': input '{layer.name}' is {shape}, needs N x C x H x W")
    raise ValueError(f"'{model}' has no input for images; give the deploy prototxt")
