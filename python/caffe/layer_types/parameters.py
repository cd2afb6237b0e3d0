"""How each layer type's learnable blobs are filled, and which of them may learn.

The fillers themselves are in caffe.fillers.
"""

from __future__ import annotations

from collections.abc import Callable

from caffe.proto import caffe_pb2 as pb


def _constant(value: float) -> pb.FillerParameter:
    return pb.FillerParameter(type="constant", value=value)


def _convolution(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    return [param.convolution_param.weight_filler, param.convolution_param.bias_filler]


def _embed(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    return [param.embed_param.weight_filler, param.embed_param.bias_filler]


def _inner_product(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    return [param.inner_product_param.weight_filler, param.inner_product_param.bias_filler]


def _bias(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    return [param.bias_param.filler]


def _prelu(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    p = param.prelu_param
    return [p.filler if p.HasField("filler") else _constant(0.25)]


def _lstm(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    return _recurrent(param, states=2)


def _rnn(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    p = param.recurrent_param
    return [*_recurrent(param, states=1), p.weight_filler, p.bias_filler]


def _recurrent(param: pb.LayerParameter, states: int) -> list[pb.FillerParameter]:
    p = param.recurrent_param
    has_static = len(param.bottom) > 2 + (states if p.expose_hidden else 0)
    return [p.weight_filler, p.bias_filler, *[p.weight_filler] * (1 + has_static)]


def _scale(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    scale = param.scale_param
    gamma = scale.filler if scale.HasField("filler") else _constant(1)
    if len(param.bottom) > 1:  # the scale is a bottom: only the bias learns
        return [scale.bias_filler]
    return [gamma, scale.bias_filler]


def _batch_norm(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    return [_constant(0)] * 3


_FILLERS: dict[str, Callable[[pb.LayerParameter], list[pb.FillerParameter]]] = {
    "BatchNorm": _batch_norm,
    "Bias": _bias,
    "Convolution": _convolution,
    "Deconvolution": _convolution,
    "Embed": _embed,
    "InnerProduct": _inner_product,
    "LSTM": _lstm,
    "PReLU": _prelu,
    "RNN": _rnn,
    "Scale": _scale,
}

#: Types whose blobs are statistics, not weights: no gradient ever reaches them.
STATISTICS_TYPES = frozenset({"BatchNorm"})


def parameter_fillers(param: pb.LayerParameter) -> list[pb.FillerParameter]:
    """Return a filler for each learnable blob of the layer; empty where it fills its own."""
    maker = _FILLERS.get(param.type)
    return maker(param) if maker else []


def parameter_specs(param: pb.LayerParameter, count: int) -> list[pb.ParamSpec]:
    """Return one ParamSpec for each of `count` learnable blobs: those written, then defaults.

    Raises ValueError for more specs than blobs, or a statistics blob that would learn.
    """
    if len(param.param) > count:
        raise ValueError(f"has {len(param.param)} param specs for {count} learnable blobs")
    specs = []
    for index in range(count):
        spec = pb.ParamSpec()
        if index < len(param.param):
            spec.CopyFrom(param.param[index])
        if param.type in STATISTICS_TYPES:
            if spec.HasField("lr_mult") and spec.lr_mult != 0:
                raise ValueError(
                    f"param {index} has lr_mult {spec.lr_mult:g}; the blobs of a {param.type} "
                    "layer are statistics and need lr_mult: 0"
                )
            spec.lr_mult = 0
            spec.decay_mult = 0
        specs.append(spec)
    return specs
