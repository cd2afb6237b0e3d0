"""The learnable blobs of a net: filling them, and sharing them by name.

Which layer type has which fillers is layer_types/parameters.py's to know; how blobs learn, the
solver's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from caffe import fillers
from caffe._core import Parameter
from caffe.graph import Graph, Node
from caffe.layer_types.base import LayerLike
from caffe.layer_types.parameters import parameter_fillers, parameter_specs
from caffe.proto import caffe_pb2 as pb
from caffe.stored_blob import blob_to_array


@dataclass
class LearnedBlob:
    """One learnable blob: its parameter, who owns it and how it learns."""

    parameter: Parameter
    layer: int  # the first that uses it
    spec: pb.ParamSpec
    sharers: int = 1  # layers that use it


class Learning:
    """Collects the learnable blobs of a net, layer by layer."""

    def __init__(self, graph: Graph) -> None:
        """Start with none."""
        self.blobs: list[LearnedBlob] = []
        self.shapes: dict[str, list[tuple[int, ...]]] = {}  # layer -> its own, whoever owns a blob
        self._graph = graph
        self._owners: dict[str, LearnedBlob] = {}

    def add(self, node: Node, layer: LayerLike, random_key: int) -> None:
        """Fill the layer's parameters, or let it share those of the same name.

        Raises ValueError for specs or fillers that make no sense, or blobs that cannot be shared.
        """
        parameters = list(layer.parameters)
        specs = parameter_specs(node.param, len(parameters))
        if not parameters:
            return
        if node.name in self.shapes:
            raise ValueError(
                "an earlier layer has the same name; weights are kept by layer name: rename one"
            )
        self.shapes[node.name] = [tuple(parameter.data.shape) for parameter in parameters]
        layer_fillers = parameter_fillers(node.param)
        for index, (parameter, spec) in enumerate(zip(parameters, specs)):
            owner = self._owners.get(spec.name) if spec.name else None
            if owner is not None:
                parameters[index] = self._share(owner, parameter, spec)
                continue
            if index < len(layer_fillers):
                rng = np.random.Generator(np.random.Philox(key=[random_key, index]))
                fillers.fill(parameter.data.numpy(), layer_fillers[index], rng)
            learned = LearnedBlob(parameter, node.index, spec)
            self.blobs.append(learned)
            if spec.name:
                self._owners[spec.name] = learned
        layer.parameters = parameters
        if node.param.blobs:
            _copy_written(node.param.blobs, parameters, self.shapes[node.name])

    def _share(self, owner: LearnedBlob, parameter: Parameter, spec: pb.ParamSpec) -> Parameter:
        ours, theirs = tuple(parameter.data.shape), tuple(owner.parameter.data.shape)
        owner_name = self._graph.nodes[owner.layer].name
        if spec.share_mode == pb.ParamSpec.STRICT and ours != theirs:
            raise ValueError(
                f"shares '{spec.name}' of layer '{owner_name}', but its shape is {ours} and theirs "
                f"{theirs}; share_mode: PERMISSIVE compares the number of values only"
            )
        if parameter.data.count != owner.parameter.data.count:
            raise ValueError(
                f"shares '{spec.name}' of layer '{owner_name}', but has {parameter.data.count} "
                f"values and they have {owner.parameter.data.count}"
            )
        for name in ("lr_mult", "decay_mult"):
            if not spec.HasField(name):
                continue
            own, owners = getattr(spec, name), getattr(owner.spec, name)
            if owner.spec.HasField(name) and own != owners:
                raise ValueError(
                    f"shares '{spec.name}' of layer '{owner_name}' with another {name}: "
                    f"{own:g}, theirs is {owners:g}"
                )
            setattr(owner.spec, name, own)
        owner.sharers += 1
        return owner.parameter


def _copy_written(
    blobs: Sequence[pb.BlobProto],
    parameters: Sequence[Parameter],
    shapes: Sequence[tuple[int, ...]],
) -> None:
    """Copy the values that a layer's own message carries."""
    if len(blobs) != len(parameters):
        raise ValueError(f"carries {len(blobs)} blobs, has {len(parameters)}")
    for index, (blob, parameter, shape) in enumerate(zip(blobs, parameters, shapes)):
        array = blob_to_array(blob)
        if array.size != parameter.data.count:
            raise ValueError(f"carries blob {index} of shape {array.shape}, needs {shape}")
        parameter.data.numpy()[...] = array.reshape(tuple(parameter.data.shape))
