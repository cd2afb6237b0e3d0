"""Makes C++ layers from LayerParameter messages: one function a type, one table of them.

Knows protobuf fields and their Caffe meanings, nothing of nets. The arithmetic is in caffe/layers.
"""

from __future__ import annotations

from collections.abc import Callable

from caffe._core import layers as core
from caffe.proto import caffe_pb2 as pb


def _relu(param: pb.LayerParameter, phase: int) -> core.Layer:
    return core.ReLU(negative_slope=param.relu_param.negative_slope)


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
    mode = p.normalization
    if p.HasField("normalize") and not p.HasField("normalization"):
        mode = pb.LossParameter.VALID if p.normalize else pb.LossParameter.BATCH_SIZE
    name = pb.LossParameter.NormalizationMode.Name(mode)
    return core.SoftmaxWithLoss(
        axis=param.softmax_param.axis,
        ignore_label=p.ignore_label if p.HasField("ignore_label") else None,
        normalization=getattr(core.LossNormalization, name),
        tops=len(param.top),
    )


def _concat(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.concat_param
    if p.HasField("axis") and p.HasField("concat_dim"):
        raise ValueError("concat_param has both axis and its older name concat_dim; give one")
    return core.Concat(axis=p.concat_dim if p.HasField("concat_dim") else p.axis)


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


def _per_axis(
    message: pb.ConvolutionParameter | pb.PoolingParameter, name: str, short: str, values: list[int]
) -> list[int]:
    """`values`, or the pair of fields short_h and short_w that 2-D layers may give instead."""
    height, width = f"{short}_h", f"{short}_w"
    if not (message.HasField(height) or message.HasField(width)):
        return values
    if values:
        raise ValueError(f"has both {name} and {height}, {width}; give one")
    # The pads default to 0; a kernel or a stride has no default of its own.
    if short != "pad" and not (message.HasField(height) and message.HasField(width)):
        raise ValueError(f"has only one of {height} and {width}; give both")
    return [getattr(message, height), getattr(message, width)]


def _convolution(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.convolution_param
    return core.Convolution(
        num_output=p.num_output,
        kernel=_per_axis(p, "kernel_size", "kernel", list(p.kernel_size)),
        bias=p.bias_term,
        pad=_per_axis(p, "pad", "pad", list(p.pad)),
        stride=_per_axis(p, "stride", "stride", list(p.stride)),
        dilation=list(p.dilation),
        group=p.group,
        axis=p.axis,
    )


def _inner_product(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.inner_product_param
    return core.InnerProduct(
        num_output=p.num_output, bias=p.bias_term, axis=p.axis, transpose=p.transpose
    )


def _pooling(param: pb.LayerParameter, phase: int) -> core.Layer:
    p = param.pooling_param
    if p.pool == pb.PoolingParameter.STOCHASTIC:
        raise ValueError("pool: STOCHASTIC is not supported yet")
    has_mask = len(param.top) > 1
    if has_mask and p.pool != pb.PoolingParameter.MAX:
        raise ValueError("a second top, the maximum's index, needs pool: MAX")
    kernel = [p.kernel_size] if p.HasField("kernel_size") else []
    kernel = _per_axis(p, "kernel_size", "kernel", kernel)
    if p.global_pooling and kernel:
        raise ValueError("has both global_pooling and a kernel size; give one")
    if not p.global_pooling and not kernel:
        raise ValueError("has no kernel_size")
    pad = _per_axis(p, "pad", "pad", [p.pad] if p.HasField("pad") else []) or [0]
    stride = _per_axis(p, "stride", "stride", [p.stride] if p.HasField("stride") else []) or [1]
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
    "ReLU": _relu,
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution": _convolution,
    "Dropout": _dropout,
    "Eltwise": _eltwise,
    "Flatten": _flatten,
    "InnerProduct": _inner_product,
    "LRN": _lrn,
    "Pooling": _pooling,
    "Reshape": _reshape,
    "Scale": _scale,
    "Softmax": _softmax,
    "SoftmaxWithLoss": _softmax_loss,
    "Split": _split,
}
