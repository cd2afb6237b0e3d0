"""Layers of the V0 format, the one of 2013, to V1: `layers { layer { type: "conv" ... } }`.

A V0 layer has its options in one flat message, its type as a word in lower case, and padding as a
layer of its own in front of the one that wants it.
"""

from __future__ import annotations

from google.protobuf.message import Message

from caffe import log
from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb

#: Types by name; the others have the enum's name in lower case.
_OTHER_TYPES = {"conv": "CONVOLUTION", "images": "IMAGE_DATA", "innerproduct": "INNER_PRODUCT",
                "pool": "POOLING"}  # fmt: skip
_SAME_TYPES = (
    "accuracy bnll concat data dropout euclidean_loss flatten hdf5_data hdf5_output im2col "
    "infogain_loss lrn multinomial_logistic_loss relu sigmoid softmax softmax_loss split tanh "
    "window_data"
)
_TYPES = {**{name: name.upper() for name in _SAME_TYPES.split()}, **_OTHER_TYPES}
_PADDING = "padding"
_PADDED = ("conv", "pool")

_CONV, _POOL, _INNER = "convolution_param.", "pooling_param.", "inner_product_param."
_DATA, _HDF5 = "data_param.", "hdf5_data_param."
_IMAGES, _WINDOW = "image_data_param.", "window_data_param."
_TRANSFORM = "transform_param."


def _in_lrn(name: str) -> dict[str, str]:
    return {"lrn": f"lrn_param.{name}"}


def _in_window(name: str) -> dict[str, str]:
    return {"window_data": _WINDOW + name}


#: Field of a V0 layer -> {type: place in a V1 layer}; type "" stands for all.
_PLACES: dict[str, dict[str, str]] = {
    "num_output": {"conv": _CONV + "num_output", "innerproduct": _INNER + "num_output"},
    "biasterm": {"conv": _CONV + "bias_term", "innerproduct": _INNER + "bias_term"},
    "weight_filler": {"conv": _CONV + "weight_filler", "innerproduct": _INNER + "weight_filler"},
    "bias_filler": {"conv": _CONV + "bias_filler", "innerproduct": _INNER + "bias_filler"},
    "pad": {"conv": _CONV + "pad", "pool": _POOL + "pad"},
    "kernelsize": {"conv": _CONV + "kernel_size", "pool": _POOL + "kernel_size"},
    "group": {"conv": _CONV + "group"},
    "stride": {"conv": _CONV + "stride", "pool": _POOL + "stride"},
    "pool": {"pool": _POOL + "pool"},
    "dropout_ratio": {"dropout": "dropout_param.dropout_ratio"},
    "local_size": _in_lrn("local_size"),
    "alpha": _in_lrn("alpha"),
    "beta": _in_lrn("beta"),
    "k": _in_lrn("k"),
    "source": {
        "data": _DATA + "source",
        "hdf5_data": _HDF5 + "source",
        "images": _IMAGES + "source",
        "window_data": _WINDOW + "source",
        "infogain_loss": "infogain_loss_param.source",
    },
    "batchsize": {
        "data": _DATA + "batch_size",
        "hdf5_data": _HDF5 + "batch_size",
        "images": _IMAGES + "batch_size",
        "window_data": _WINDOW + "batch_size",
    },
    "scale": {"": _TRANSFORM + "scale"},
    "meanfile": {"": _TRANSFORM + "mean_file"},
    "cropsize": {"": _TRANSFORM + "crop_size"},
    "mirror": {"": _TRANSFORM + "mirror"},
    "rand_skip": {"data": _DATA + "rand_skip", "images": _IMAGES + "rand_skip"},
    "shuffle_images": {"images": _IMAGES + "shuffle"},
    "new_height": {"images": _IMAGES + "new_height"},
    "new_width": {"images": _IMAGES + "new_width"},
    "concat_dim": {"concat": "concat_param.concat_dim"},
    "det_fg_threshold": _in_window("fg_threshold"),
    "det_bg_threshold": _in_window("bg_threshold"),
    "det_fg_fraction": _in_window("fg_fraction"),
    "det_context_pad": _in_window("context_pad"),
    "det_crop_mode": _in_window("crop_mode"),
    "hdf5_output_param": {"hdf5_output": "hdf5_output_param"},
    "blobs": {"": "blobs"},
    "blobs_lr": {"": "blobs_lr"},
    "weight_decay": {"": "weight_decay"},
}


def upgrade_v0(net: pb.NetParameter, name: str) -> None:
    """Bring the V0 layers of `net` to V1, in place; `name` starts error messages.

    An option that its layer's type never had is dropped with a warning, as BVLC Caffe does.

    Raises ValueError for an unknown type, or padding in front of a layer that takes none.
    """
    _fold_padding(net, name)
    layers = [_converted(old, name) if old.HasField("layer") else old for old in net.layers]
    kept = pb.NetParameter(layers=layers)
    net.ClearField("layers")
    net.layers.extend(kept.layers)


def _fold_padding(net: pb.NetParameter, name: str) -> None:
    """Give the pad of each padding layer to the layer that reads it, and take the layer out."""
    writers: dict[str, pb.V1LayerParameter] = {}
    for connection in net.layers:
        for index, bottom in enumerate(connection.bottom):
            source = writers.get(bottom)
            if source is None or source.layer.type != _PADDING:
                continue
            if connection.layer.type not in _PADDED or len(connection.bottom) != 1:
                raise ValueError(
                    f"{name}: layer '{connection.layer.name}' ({connection.layer.type}) reads from "
                    f"padding layer '{source.layer.name}'; only conv and pool with one bottom do"
                )
            if len(source.bottom) != 1 or len(source.top) != 1:
                raise ValueError(
                    f"{name}: padding layer '{source.layer.name}' needs one bottom and one top"
                )
            connection.layer.pad = source.layer.pad
            connection.bottom[index] = source.bottom[0]
        writers.update((top, connection) for top in connection.top)
    kept = [layer for layer in net.layers if layer.layer.type != _PADDING]
    copy = pb.NetParameter(layers=kept)
    net.ClearField("layers")
    net.layers.extend(copy.layers)


def _converted(old: pb.V1LayerParameter, name: str) -> pb.V1LayerParameter:
    layer = old.layer
    if layer.type not in _TYPES:
        raise ValueError(
            f"{name}: layer '{layer.name}' has the unknown type '{layer.type}'"
            f"{suggestion(layer.type, _TYPES)}"
        )
    new = pb.V1LayerParameter(bottom=old.bottom, top=old.top)
    if layer.HasField("name"):
        new.name = layer.name
    new.type = getattr(pb.V1LayerParameter, _TYPES[layer.type])
    for field, value in layer.ListFields():
        if field.name in ("name", "type"):
            continue
        places = _PLACES.get(field.name, {})
        place = places.get("", places.get(layer.type))
        if place is None:
            log.warning(
                f"{name}: layer '{layer.name}' ({layer.type}) has no use for '{field.name}': "
                "it is dropped"
            )
        else:
            _put(new, place, value)
    return new


def _put(message: Message, place: str, value: object) -> None:
    """Set, or append to, the field at "option" or "param.option"."""
    owner, _, option = place.rpartition(".")
    target = getattr(message, owner) if owner else message
    there = getattr(target, option)
    if hasattr(there, "extend"):
        there.extend(value if hasattr(value, "extend") else [value])
    elif isinstance(value, Message):
        there.CopyFrom(value)
    else:
        setattr(target, option, value)
