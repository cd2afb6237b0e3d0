"""Bringing nets and solvers of older formats to the current one, in place.

From old to new: V0 layers (upgrade_v0.py), V1 layers (`layers`, enum types, flat lists of learning
rates), transformation options inside data layers, inputs as fields of the net, learning rates of
BatchNorm's statistics, `solver_type`.
"""

from __future__ import annotations

from google.protobuf.message import Message

from caffe.proto import caffe_pb2
from caffe.upgrade_v0 import upgrade_v0

_V1_TYPES = {
    "ABSVAL": "AbsVal",
    "ACCURACY": "Accuracy",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "CONCAT": "Concat",
    "CONTRASTIVE_LOSS": "ContrastiveLoss",
    "CONVOLUTION": "Convolution",
    "DATA": "Data",
    "DECONVOLUTION": "Deconvolution",
    "DROPOUT": "Dropout",
    "DUMMY_DATA": "DummyData",
    "EUCLIDEAN_LOSS": "EuclideanLoss",
    "ELTWISE": "Eltwise",
    "EXP": "Exp",
    "FLATTEN": "Flatten",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "HINGE_LOSS": "HingeLoss",
    "IM2COL": "Im2col",
    "IMAGE_DATA": "ImageData",
    "INFOGAIN_LOSS": "InfogainLoss",
    "INNER_PRODUCT": "InnerProduct",
    "LRN": "LRN",
    "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss",
    "MVN": "MVN",
    "POOLING": "Pooling",
    "POWER": "Power",
    "RELU": "ReLU",
    "SIGMOID": "Sigmoid",
    "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
    "SILENCE": "Silence",
    "SOFTMAX": "Softmax",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "SPLIT": "Split",
    "SLICE": "Slice",
    "TANH": "TanH",
    "WINDOW_DATA": "WindowData",
    "THRESHOLD": "Threshold",
}
_SOLVER_TYPES = {
    "SGD": "SGD",
    "NESTEROV": "Nesterov",
    "ADAGRAD": "AdaGrad",
    "RMSPROP": "RMSProp",
    "ADADELTA": "AdaDelta",
    "ADAM": "Adam",
}
_BATCH_NORM_BLOBS = 3
_AXES_OF_INPUT_DIM = 4
_TRANSFORM_FIELDS = ("scale", "mean_file", "crop_size", "mirror")
_DATA_PARAMS = ("data_param", "image_data_param", "window_data_param")


def upgrade_net(net: caffe_pb2.NetParameter, name: str = "net") -> bool:
    """Bring `net` to the current format, in place.

    Args:
        net: read from text or binary.
        name: starts error messages; usually the path.

    Returns:
        Whether anything had to be changed.

    Raises:
        ValueError: the old format is inconsistent.
    """
    changed = False
    if net.layers:
        _upgrade_v1(net, name)
        changed = True
    for layer in net.layer:
        changed |= _upgrade_transform(layer)
    if net.input or net.input_shape or net.input_dim:
        _upgrade_inputs(net, name)
        changed = True
    for layer in net.layer:
        changed |= _upgrade_batch_norm(layer)
    return changed


def upgrade_solver(solver: caffe_pb2.SolverParameter, name: str = "solver") -> bool:
    """Bring `solver`, and the nets written inside it, to the current format, in place.

    Returns:
        Whether anything had to be changed.

    Raises:
        ValueError: `type` and the older `solver_type` are both given, or a net inside is wrong.
    """
    changed = False
    if solver.HasField("solver_type"):
        if solver.HasField("type"):
            raise ValueError(f"{name}: give 'type' or the older 'solver_type', not both")
        legacy = caffe_pb2.SolverParameter.SolverType.Name(solver.solver_type)
        solver.type = _SOLVER_TYPES[legacy]
        solver.ClearField("solver_type")
        changed = True
    for field in ("net_param", "train_net_param"):
        if solver.HasField(field):
            changed |= upgrade_net(getattr(solver, field), f"{name}: {field}")
    for net in solver.test_net_param:
        changed |= upgrade_net(net, f"{name}: test_net_param")
    return changed


def _upgrade_v1(net: caffe_pb2.NetParameter, name: str) -> None:
    if net.layer:
        raise ValueError(f"{name}: has both 'layer' and the older 'layers'; use 'layer' throughout")
    if any(old.HasField("layer") for old in net.layers):
        upgrade_v0(net, name)
    for old in net.layers:
        _convert_v1_layer(old, net.layer.add(), name)
    net.ClearField("layers")


def _convert_v1_layer(
    old: caffe_pb2.V1LayerParameter, new: caffe_pb2.LayerParameter, name: str
) -> None:
    if old.HasField("name"):
        new.name = old.name
    type_name = caffe_pb2.V1LayerParameter.LayerType.Name(old.type)
    if type_name not in _V1_TYPES:
        raise ValueError(f"{name}: layer '{old.name}' has no type (or type NONE)")
    new.type = _V1_TYPES[type_name]
    for field in ("bottom", "top", "loss_weight", "include", "exclude", "blobs"):
        getattr(new, field).extend(getattr(old, field))
    lengths = [len(old.param), len(old.blob_share_mode), len(old.blobs_lr), len(old.weight_decay)]
    for i in range(max(lengths)):
        spec = new.param.add()
        if i < len(old.param) and old.param[i]:
            spec.name = old.param[i]
        if i < len(old.blob_share_mode):
            strict = old.blob_share_mode[i] == caffe_pb2.V1LayerParameter.STRICT
            spec.share_mode = (
                caffe_pb2.ParamSpec.STRICT if strict else caffe_pb2.ParamSpec.PERMISSIVE
            )
        if i < len(old.blobs_lr):
            spec.lr_mult = old.blobs_lr[i]
        if i < len(old.weight_decay):
            spec.decay_mult = old.weight_decay[i]
    for descriptor, value in old.ListFields():
        if descriptor.name.endswith("_param") and isinstance(value, Message):
            getattr(new, descriptor.name).CopyFrom(value)


def _upgrade_transform(layer: caffe_pb2.LayerParameter) -> bool:
    """Move scale, mean_file, crop_size and mirror from the data options to transform_param."""
    changed = False
    for data_field in _DATA_PARAMS:
        if not layer.HasField(data_field):
            continue
        data = getattr(layer, data_field)
        for field in _TRANSFORM_FIELDS:
            if not data.HasField(field):
                continue
            if not layer.transform_param.HasField(field):
                setattr(layer.transform_param, field, getattr(data, field))
            data.ClearField(field)
            changed = True
    return changed


def _upgrade_inputs(net: caffe_pb2.NetParameter, name: str) -> None:
    """Replace the input fields of the net by an Input layer in front."""
    shapes = [list(shape.dim) for shape in net.input_shape]
    dims = list(net.input_dim)
    if shapes and dims:
        raise ValueError(f"{name}: give input_shape or the older input_dim, not both")
    if dims:
        if len(dims) % _AXES_OF_INPUT_DIM:
            raise ValueError(
                f"{name}: input_dim has {len(dims)} numbers, needs 4 for each of "
                f"{len(net.input)} inputs"
            )
        shapes = [dims[i : i + _AXES_OF_INPUT_DIM] for i in range(0, len(dims), _AXES_OF_INPUT_DIM)]
    # Weight files may name inputs without any shape; only a net that is to be built needs shapes.
    if shapes and len(shapes) != len(net.input):
        raise ValueError(
            f"{name}: {len(net.input)} input names but {len(shapes)} shapes; each input needs one "
            "input_shape (or four input_dim)"
        )
    layers = [caffe_pb2.LayerParameter(name="input", type="Input")]
    layers[0].top.extend(net.input)
    for shape in shapes:
        layers[0].input_param.shape.add().dim.extend(shape)
    layers.extend(net.layer)
    del net.layer[:]
    net.layer.extend(layers)
    for field in ("input", "input_shape", "input_dim"):
        net.ClearField(field)


def _upgrade_batch_norm(layer: caffe_pb2.LayerParameter) -> bool:
    """Set the learning rates of BatchNorm's three statistics, once written by hand, to zero."""
    if layer.type != "BatchNorm" or len(layer.param) != _BATCH_NORM_BLOBS:
        return False
    changed = False
    for spec in layer.param:
        changed |= spec.lr_mult != 0 or spec.decay_mult != 0
        spec.lr_mult = 0
        spec.decay_mult = 0
    return changed
