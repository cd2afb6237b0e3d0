"""ResNet-18 (He, Zhang, Ren and Sun, 2015) as a NetParameter, for images of any side from 64."""

from __future__ import annotations

from caffe import prototxt
from caffe.proto import caffe_pb2 as pb

STAGES = (64, 128, 256, 512)  # channels; each stage but the first halves the sides
BLOCKS = 2  # in each stage
CLASSES = 10

# BatchNorm, Scale and ReLU write in place, as in Caffe's models.
_NORMALISED = """
layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"
  convolution_param {{ num_output: {outputs} kernel_size: {kernel} stride: {stride} pad: {pad}
    bias_term: false weight_filler {{ type: "msra" }} }} }}
layer {{ name: "bn_{name}" type: "BatchNorm" bottom: "{name}" top: "{name}"
  batch_norm_param {{ moving_average_fraction: 0.95 }} }}
layer {{ name: "scale_{name}" type: "Scale" bottom: "{name}" top: "{name}"
  scale_param {{ bias_term: true }} }}
"""
_RELU = 'layer {{ name: "relu_{name}" type: "ReLU" bottom: "{name}" top: "{name}" }}\n'
_SUM = 'layer {{ name: "{name}" type: "Eltwise" bottom: "{a}" bottom: "{b}" top: "{name}" }}\n'
_POOL = """
layer {{ name: "pool1" type: "Pooling" bottom: "{bottom}" top: "pool1"
  pooling_param {{ pool: MAX kernel_size: 3 stride: 2 }} }}
"""
_HEAD = """
layer {{ name: "pool5" type: "Pooling" bottom: "{bottom}" top: "pool5"
  pooling_param {{ pool: AVE global_pooling: true }} }}
layer {{ name: "fc" type: "InnerProduct" bottom: "pool5" top: "fc"
  inner_product_param {{ num_output: {classes} weight_filler {{ type: "msra" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }}
"""


def resnet18() -> pb.NetParameter:
    """Return the net without its data layer, which has to make `data` and `label`."""
    text = _convolution("conv1", "data", STAGES[0], 7, 2) + _RELU.format(name="conv1")
    text += _POOL.format(bottom="conv1")
    bottom, channels = "pool1", STAGES[0]
    for stage, outputs in enumerate(STAGES):
        for block in range(BLOCKS):
            name = f"block{stage + 1}_{block + 1}"
            stride = 2 if stage and not block else 1
            text += _block(name, bottom, outputs, stride, projected=outputs != channels)
            bottom, channels = name, outputs
    text += _HEAD.format(bottom=bottom, classes=CLASSES)
    return prototxt.parse_net(text)


def _block(name: str, bottom: str, outputs: int, stride: int, projected: bool) -> str:
    first, second, shortcut = f"{name}_conv1", f"{name}_conv2", bottom
    text = ""
    if projected:
        shortcut = f"{name}_shortcut"
        text += _convolution(shortcut, bottom, outputs, 1, stride)
    text += _convolution(first, bottom, outputs, 3, stride) + _RELU.format(name=first)
    text += _convolution(second, first, outputs, 3, 1)
    return text + _SUM.format(name=name, a=shortcut, b=second) + _RELU.format(name=name)


def _convolution(name: str, bottom: str, outputs: int, kernel: int, stride: int) -> str:
    return _NORMALISED.format(
        name=name, bottom=bottom, outputs=outputs, kernel=kernel, stride=stride, pad=kernel // 2
    )
