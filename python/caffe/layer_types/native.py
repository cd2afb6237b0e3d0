"""Makes C++ layers from LayerParameter messages: one function a type, one table of them.

Knows protobuf fields and their Caffe meanings, nothing of nets. The arithmetic is in caffe/layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from caffe._core import layers as core
from caffe.layer_types.labels import normalization
from caffe.proto import caffe_pb2 as pb


def _relu(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.ReLU(negative_slope=param.relu_param.negative_slope)


def _abs_val(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.AbsVal()


def _bnll(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.BNLL()


def _clip(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.clip_param
    if not (p.HasField("min") and p.HasField("max")):
        raise ValueError("clip_param needs min and max")
    return core.Clip(min=p.min, max=p.max)


def _elu(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.ELU(alpha=param.elu_param.alpha)


def _exp(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.exp_param
    return core.Exp(base=p.base, scale=p.scale, shift=p.shift)


def _log(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.log_param
    return core.Log(base=p.base, scale=p.scale, shift=p.shift)


def _power(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.power_param
    return core.Power(power=p.power, scale=p.scale, shift=p.shift)


def _prelu(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.PReLU(channel_shared=param.prelu_param.channel_shared)


def _sigmoid(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Sigmoid()


def _swish(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Swish(beta=param.swish_param.beta)


def _tanh(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.TanH()


def _threshold(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Threshold(threshold=param.threshold_param.threshold)


def _bias(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Bias(axis=param.bias_param.axis, num_axes=param.bias_param.num_axes)


def _mvn(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.mvn_param
    return core.MVN(
        normalize_variance=p.normalize_variance, across_channels=p.across_channels, eps=p.eps
    )


def _batch_norm(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.batch_norm_param
    test = phase == pb.TEST
    return core.BatchNorm(
        use_global_stats=p.use_global_stats if p.HasField("use_global_stats") else test,
        moving_average_fraction=p.moving_average_fraction,
        eps=p.eps,
    )


def _scale(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.scale_param
    return core.Scale(axis=p.axis, num_axes=p.num_axes, bias_term=p.bias_term)


def _dropout(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Dropout(ratio=param.dropout_param.dropout_ratio)


def _softmax(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Softmax(axis=param.softmax_param.axis)


def _softmax_loss(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.loss_param
    name = pb.LossParameter.NormalizationMode.Name(normalization(p))
    return core.SoftmaxWithLoss(
        axis=param.softmax_param.axis,
        ignore_label=p.ignore_label if p.HasField("ignore_label") else None,
        normalization=getattr(core.LossNormalization, name),
        tops=len(param.top),
    )


def _axis(message: pb.ConcatParameter | pb.SliceParameter, param: str, old: str) -> int:
    """`axis`, or the field `old` that it was called before."""
    if message.HasField("axis") and message.HasField(old):
        raise ValueError(f"{param} has both axis and its older name {old}; give one")
    return int(getattr(message, old if message.HasField(old) else "axis"))


def _concat(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Concat(axis=_axis(param.concat_param, "concat_param", "concat_dim"))


def _slice(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.slice_param
    return core.Slice(
        axis=_axis(p, "slice_param", "slice_dim"), points=list(p.slice_point), tops=len(param.top)
    )


def _reduction(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.reduction_param
    name = pb.ReductionParameter.ReductionOp.Name(p.operation)
    return core.Reduction(
        operation=getattr(core.ReductionOperation, name), axis=p.axis, coeff=p.coeff
    )


def _eltwise(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.eltwise_param
    name = pb.EltwiseParameter.EltwiseOp.Name(p.operation)
    return core.Eltwise(operation=getattr(core.EltwiseOperation, name), coeff=list(p.coeff))


def _split(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Split(tops=len(param.top))


def _flatten(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Flatten(axis=param.flatten_param.axis, end_axis=param.flatten_param.end_axis)


def _reshape(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.reshape_param
    return core.Reshape(dims=list(p.shape.dim), axis=p.axis, num_axes=p.num_axes)


def per_axis(
    message: pb.ConvolutionParameter | pb.PoolingParameter, name: str, short: str, values: list[int]
) -> list[int]:
    """Return `values`, or the fields short_h and short_w that 2-D layers may give instead.

    Raises ValueError where both are given, or only one of a pair.
    """
    height, width = f"{short}_h", f"{short}_w"
    if not (message.HasField(height) or message.HasField(width)):
        return values
    if values:
        raise ValueError(f"has both {name} and {height}, {width}; give one")
    # The pads default to 0; a kernel or a stride has no default of its own.
    if short != "pad" and not (message.HasField(height) and message.HasField(width)):
        raise ValueError(f"has only one of {height} and {width}; give both")
    return [getattr(message, height), getattr(message, width)]


class _ConvolutionOptions(TypedDict):
    """What the constructors of Convolution and Deconvolution take."""

    num_output: int
    kernel: list[int]
    bias: bool
    pad: list[int]
    stride: list[int]
    dilation: list[int]
    group: int
    axis: int


def _convolution_options(p: pb.ConvolutionParameter) -> _ConvolutionOptions:
    return {
        "num_output": p.num_output,
        "kernel": per_axis(p, "kernel_size", "kernel", list(p.kernel_size)),
        "bias": p.bias_term,
        "pad": per_axis(p, "pad", "pad", list(p.pad)),
        "stride": per_axis(p, "stride", "stride", list(p.stride)),
        "dilation": list(p.dilation),
        "group": p.group,
        "axis": p.axis,
    }


def _convolution(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Convolution(**_convolution_options(param.convolution_param))


def _deconvolution(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.Deconvolution(**_convolution_options(param.convolution_param))


def _inner_product(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.inner_product_param
    return core.InnerProduct(
        num_output=p.num_output, bias=p.bias_term, axis=p.axis, transpose=p.transpose
    )


def _pooling(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.pooling_param
    has_mask = len(param.top) > 1
    if has_mask and p.pool != pb.PoolingParameter.MAX:
        raise ValueError("a second top, the maximum's index, needs pool: MAX")
    kernel = [p.kernel_size] if p.HasField("kernel_size") else []
    kernel = per_axis(p, "kernel_size", "kernel", kernel)
    if p.global_pooling and kernel:
        raise ValueError("has both global_pooling and a kernel size; give one")
    if not p.global_pooling and not kernel:
        raise ValueError("has no kernel_size")
    pad = per_axis(p, "pad", "pad", [p.pad] if p.HasField("pad") else []) or [0]
    stride = per_axis(p, "stride", "stride", [p.stride] if p.HasField("stride") else []) or [1]
    return core.Pooling(
        method=getattr(core.PoolMethod, pb.PoolingParameter.PoolMethod.Name(p.pool)),
        kernel=_pair(kernel or [0]),
        stride=_pair(stride),
        pad=_pair(pad),
        global_pooling=p.global_pooling,
        round_mode=getattr(core.RoundMode, pb.PoolingParameter.RoundMode.Name(p.round_mode)),
        mask_top=has_mask,
    )


def _pair(values: list[int]) -> list[int]:
    return values * 2 if len(values) == 1 else values


def _lrn(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.lrn_param
    return core.LRN(
        local_size=p.local_size,
        alpha=p.alpha,
        beta=p.beta,
        region=getattr(core.NormRegion, pb.LRNParameter.NormRegion.Name(p.norm_region)),
        k=p.k,
    )


#: Type name in prototxt -> maker(layer parameter, phase). Makers raise ValueError on bad options.
MAKERS: dict[str, Callable[[pb.LayerParameter, int], core.Layer]] = {
    "AbsVal": _abs_val,
    "BatchNorm": _batch_norm,
    "Bias": _bias,
    "BNLL": _bnll,
    "Clip": _clip,
    "Concat": _concat,
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Dropout": _dropout,
    "Eltwise": _eltwise,
    "ELU": _elu,
    "Exp": _exp,
    "Flatten": _flatten,
    "InnerProduct": _inner_product,
    "Log": _log,
    "LRN": _lrn,
    "MVN": _mvn,
    "Pooling": _pooling,
    "Power": _power,
    "PReLU": _prelu,
    "Reduction": _reduction,
    "ReLU": _relu,
    "Reshape": _reshape,
    "Scale": _scale,
    "Sigmoid": _sigmoid,
    "Slice": _slice,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _softmax_loss,
    "Split": _split,
    "Swish": _swish,
    "TanH": _tanh,
    "Threshold": _threshold,
}
