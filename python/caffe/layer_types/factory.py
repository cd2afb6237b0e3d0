"""Makes a layer of a net from its LayerParameter: the table of all layer types.

C++ layers come from `native`; built-in Python layers from the modules named here; type "Python"
from the user's own module.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from caffe.layer_types import native
from caffe.layer_types.base import Layer, LayerLike, PythonLayer
from caffe.layer_types.builtin import BuiltIn, BuiltInRunner
from caffe.layer_types.spp import SPP
from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb

#: Built-in layers in Python, classes of that name: type -> module in caffe.layer_types.
PYTHON_TYPES = {
    "Accuracy": "accuracy",
    "ArgMax": "arg_max",
    "BatchReindex": "batch_reindex",
    "ContrastiveLoss": "contrastive_loss",
    "Crop": "crop",
    "Data": "data",
    "DummyData": "dummy_data",
    "Embed": "embed",
    "EuclideanLoss": "euclidean_loss",
    "Filter": "filter",
    "HDF5Data": "hdf5_data",
    "HDF5Output": "hdf5_output",
    "HingeLoss": "hinge_loss",
    "Im2col": "im2col",
    "ImageData": "image_data",
    "InfogainLoss": "infogain_loss",
    "Input": "input",
    "LSTM": "lstm",
    "LSTMUnit": "lstm_unit",
    "MemoryData": "memory_data",
    "MultinomialLogisticLoss": "multinomial_logistic_loss",
    "Parameter": "parameter",
    "RNN": "rnn",
    "SigmoidCrossEntropyLoss": "sigmoid_cross_entropy_loss",
    "Silence": "silence",
    "Tile": "tile",
    "WindowData": "window_data",
}
#: Built-in layers that are made of C++ ones, on the core's own interface.
COMPOSED_TYPES: dict[str, Callable[[pb.LayerParameter], LayerLike]] = {"SPP": SPP}


def layer_types() -> list[str]:
    """Return the names of all layer types, sorted."""
    return sorted([*native.MAKERS, *PYTHON_TYPES, *COMPOSED_TYPES, "Python"])


def make_layer(param: pb.LayerParameter, phase: int, random_seed: int) -> LayerLike:
    """Make the layer that `param` describes.

    Args:
        param: the layer, in the current format.
        phase: caffe.TRAIN or caffe.TEST.
        random_seed: what the layer's random numbers follow from.

    Raises:
        ValueError: unknown type, or options that make no sense.
        ImportError, AttributeError: the module or class of a Python layer cannot be found.
    """
    if param.type in native.MAKERS:
        return cast(LayerLike, native.MAKERS[param.type](param, phase))
    if param.type == "Python":
        return _wrap(_user_class(param), param, phase, random_seed)
    if param.type in PYTHON_TYPES:
        module = importlib.import_module(f"caffe.layer_types.{PYTHON_TYPES[param.type]}")
        return _wrap(getattr(module, param.type), param, phase, random_seed)
    if param.type in COMPOSED_TYPES:
        return COMPOSED_TYPES[param.type](param)
    if not param.type:
        raise ValueError('has no type: write one, such as type: "Convolution"')
    raise ValueError(f"unknown layer type '{param.type}'{suggestion(param.type, layer_types(), 0)}")


def _user_class(param: pb.LayerParameter) -> Callable[[], Layer]:
    options = param.python_param
    if not options.module or not options.layer:
        raise ValueError(
            "python_param needs module and layer: the class and where to import it from"
        )
    try:
        module = importlib.import_module(options.module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"cannot import module '{options.module}' ({error}); its folder must be in PYTHONPATH"
        ) from error
    if not hasattr(module, options.layer):
        names = [
            name
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_")
        ]
        raise AttributeError(
            f"module '{options.module}' has no class '{options.layer}'"
            f"{suggestion(options.layer, names)}"
        )
    return cast(Callable[[], Layer], getattr(module, options.layer))


def _wrap(
    make: Callable[[], Layer], param: pb.LayerParameter, phase: int, random_seed: int
) -> PythonLayer:
    layer = make()
    if not isinstance(layer, Layer):
        raise ValueError(f"{type(layer).__name__} is not a layer; derive it from caffe.Layer")
    if not hasattr(layer, "blobs"):
        Layer.__init__(layer)  # a class whose __init__ did not call ours
    layer.layer_param = param
    layer.name = param.name
    layer.type = param.type
    layer.phase = phase
    layer.param_str = param.python_param.param_str
    layer.random_seed = random_seed
    return BuiltInRunner(layer, param) if isinstance(layer, BuiltIn) else PythonLayer(layer, param)
