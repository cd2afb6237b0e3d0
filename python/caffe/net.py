"""Net, as pycaffe has it: made from prototxt, run by forward() and backward(), read through blobs.

Puts the parts together: graph, layers, parameters and their sharing, memory plan, executor. The
running itself is executor.py's.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe import random_seed
from caffe import weights as net_weights
from caffe._core.layers import Need, Needs, Propagation
from caffe.backward_scope import decide_backward
from caffe.blob import Blob, ParameterBlob
from caffe.debug_info import DebugInfo
from caffe.executor import Executor
from caffe.graph import Graph, Node, build_graph
from caffe.layer_errors import LayerErrors
from caffe.layer_types.base import PythonLayer
from caffe.layer_types.factory import make_layer
from caffe.learning import LearnedBlob, Learning
from caffe.memory_plan import LayerFacts, MemoryPlan, make_plan
from caffe.names import suggestion
from caffe.net_batches import add_datums, forward_all, forward_backward_all, set_input_arrays
from caffe.net_views import ValueBlob, view_layer
from caffe.proto import caffe_pb2 as pb
from caffe.prototxt import read_net
from caffe.runtime import BoundSource, RuntimeLayer, StoredReport
from caffe.solver_check import check_layer_compression
from caffe.upgrade import upgrade_net

FloatArray = npt.NDArray[np.float32]
Compression = pb.CompressionParameter


class Net:
    """A network: layers, blobs and learnable parameters."""

    def __init__(
        self,
        network_file: str | Path | pb.NetParameter,
        *args: Any,
        phase: int | None = None,
        level: int = 0,
        stages: Sequence[str] | None = None,
        weights: str | Path | None = None,
    ) -> None:
        """Make a net; Net(file, phase, ...) or Net(file, weights, phase).

        Args:
            network_file: a prototxt file, or a NetParameter message.
            *args: phase, or weights and phase, in pycaffe's order.
            phase: caffe.TRAIN or caffe.TEST.
            level: for the rules min_level and max_level.
            stages: for the rules stage and not_stage.
            weights: a .caffemodel to start from.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the net makes no sense; says which layer and why.
        """
        phase, weights = _old_arguments(args, phase, weights)
        if phase not in (pb.TRAIN, pb.TEST):
            raise ValueError(f"phase is {phase!r}, needs to be caffe.TRAIN or caffe.TEST")
        param = (
            network_file if isinstance(network_file, pb.NetParameter) else read_net(network_file)
        )
        state = pb.NetState(phase=phase, level=level, stage=list(stages or ()))  # type: ignore[arg-type]
        self._build(param, state, Settings())
        if weights is not None:
            self.copy_from(weights)

    @classmethod
    def from_param(cls, param: pb.NetParameter, state: pb.NetState, settings: Settings) -> Net:
        """Make the net of a solver: its state, seed and compression are the solver's to say."""
        net = cls.__new__(cls)
        net._build(param, state, settings)
        return net

    # -- building ----------------------------------------------------------------------------------

    def _build(self, param: pb.NetParameter, state: pb.NetState, settings: Settings) -> None:
        current = pb.NetParameter()
        current.CopyFrom(param)
        upgrade_net(current)
        self.phase = state.phase
        self._settings = settings
        self._seed = settings.seed if settings.seed is not None else random_seed.current()
        self.graph: Graph = build_graph(current, state)
        self._runtime: list[RuntimeLayer] = []
        self._learning = Learning(self.graph)
        self._executor = Executor(
            self.graph,
            self._runtime,
            train=self.phase == pb.TRAIN,
            saves=settings.saves,
            seed=self._seed,
            bounds=settings.bounds,
        )
        self._executor.debug = DebugInfo() if current.debug_info else None
        self._set_up_layers()
        decide_backward(self._runtime, self.learned, current.force_backward, settings.saves)
        self._make_plan()
        self._make_views()

    def _set_up_layers(self) -> None:
        for node in self.graph.nodes:
            with LayerErrors(node):
                layer = make_layer(node.param, self.phase, self._layer_key(node))
                facts = LayerFacts(
                    _no_needs(node), layer.traits(), False, self._compression_of(node)
                )
                runtime = RuntimeLayer(
                    node,
                    layer,
                    facts,
                    Propagation([], []),
                    self._layer_key(node),
                    always_reshape=isinstance(layer, PythonLayer),
                )
                self._runtime.append(runtime)
            self._executor.reshape(node.index)
            with LayerErrors(node):
                self._learning.add(node, layer, self._layer_key(node))
                facts.traits = layer.traits()

    def _layer_key(self, node: Node) -> int:
        """Return what the layer's random numbers follow from: the net's seed and its name."""
        name = zlib.crc32(node.name.encode()) & 0xFFFFFFFF
        return (self._seed & 0xFFFFFFFF) << 32 | name

    def _compression_of(self, node: Node) -> pb.CompressionParameter:
        merged = Compression()
        merged.CopyFrom(self._settings.compression)
        # A net that a user makes holds every blob, whatever its layers ask for of a solver.
        if self._settings.bounds is not None:
            check_layer_compression(node.param.compression_param)
            merged.MergeFrom(node.param.compression_param)
        return merged

    def replan(self, compression: pb.CompressionParameter, *, forward_only: bool = False) -> None:
        """Let a solver's net go on with other compression; what it kept is released.

        Raises ValueError where it keeps a blob that does not exist.
        """
        self._settings.compression = compression
        self._settings.forward_only = forward_only
        for runtime in self._runtime:
            runtime.facts.compression.CopyFrom(self._compression_of(runtime.node))
        self._executor.release_all()
        self._executor.reports.clear()
        self._make_plan()

    def _make_plan(self) -> None:
        compression = self._settings.compression
        self._executor.slice_size = compression.slice
        modes = {compression.mode} | {layer.facts.compression.mode for layer in self._runtime}
        self._executor.plan = make_plan(
            self.graph,
            [layer.facts for layer in self._runtime],
            lambda value: self._executor.slots[value.index].count,
            retains_all=modes == {Compression.NONE} and not self._settings.forward_only,
            saves=self._settings.saves,
            keep=[*compression.keep, *self._kept_beside_overrides()],
        )
        self._check_keep(compression.keep)

    def plain_plan(self) -> MemoryPlan:
        """Return the plan of mode NONE, which keeps everything, to compare with."""
        return make_plan(
            self.graph,
            [layer.facts for layer in self._runtime],
            lambda value: self._executor.slots[value.index].count,
            retains_all=True,
            saves=self._settings.saves,
        )

    def _kept_beside_overrides(self) -> list[str]:
        """Blobs that stay readable where the solver says NONE and only some layers compress."""
        if self._settings.compression.mode != Compression.NONE or self._settings.forward_only:
            return []
        compressed = {
            value.name
            for layer in self._runtime
            if layer.facts.compression.mode != Compression.NONE
            for value in layer.node.bottoms
        }
        return [name for name in self.graph.last_values() if name not in compressed]

    def _check_keep(self, names: Iterable[str]) -> None:
        known = self.graph.last_values()
        for name in names:
            if name not in known and not self._settings.forward_only:
                raise ValueError(
                    f"compression_param: keep names no blob '{name}'{suggestion(name, known)}"
                )

    def _make_views(self) -> None:
        last = self.graph.last_values()
        for node in self.graph.nodes:
            # What the user fills is the input itself, whoever works in place on it.
            if node.type == "Input":
                last.update({top.name: top for top in node.tops})
        self._values = last
        self.blobs: OrderedDict[str, Blob] = OrderedDict(
            (name, ValueBlob(self._executor, value)) for name, value in last.items()
        )
        self.params: OrderedDict[str, list[ParameterBlob]] = OrderedDict(
            (name, list(map(ParameterBlob, layer.parameters, self._learning.shapes[name])))
            for name, layer in ((runtime.node.name, runtime.layer) for runtime in self._runtime)
            if layer.parameters
        )
        self.layers = [view_layer(runtime, self.params) for runtime in self._runtime]
        self.layer_dict = OrderedDict(zip((n.name for n in self.graph.nodes), self.layers))
        self.inputs = [
            top.name for node in self.graph.nodes if node.type == "Input" for top in node.tops
        ]
        self.outputs = [value.name for value in self.graph.outputs()]
        self.top_names = OrderedDict((n.name, [v.name for v in n.tops]) for n in self.graph.nodes)
        self.bottom_names = OrderedDict(
            (n.name, [v.name for v in n.bottoms]) for n in self.graph.nodes
        )
        self._layer_names = [node.name for node in self.graph.nodes]

    def reseed(self, seed: int) -> None:
        """Let the random numbers drawn from now on follow from `seed`."""
        self._seed = self._executor.seed = seed
        for runtime in self._runtime:
            runtime.random_key = self._layer_key(runtime.node)
            if isinstance(runtime.layer, PythonLayer):
                runtime.layer.layer.random_seed = runtime.random_key

    @property
    def learned(self) -> list[LearnedBlob]:
        """The learnable blobs, each once, in the order of their first use."""
        return self._learning.blobs

    @property
    def name(self) -> str:
        """The net's name."""
        return self.graph.name

    @property
    def executor(self) -> Executor:
        """What runs the net; for the solver and for measuring."""
        return self._executor

    @property
    def blob_loss_weights(self) -> OrderedDict[str, float]:
        """Blob name -> its weight in the loss, 0 for all but losses."""
        return OrderedDict(
            (name, self.graph.nodes[value.producer].loss_weights[value.top])
            for name, value in self._values.items()
        )

    # -- running -----------------------------------------------------------------------------------

    def forward(
        self,
        blobs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **inputs: npt.ArrayLike,
    ) -> dict[str, FloatArray]:
        """Run layers `start` to `end` (names, inclusive; all by default).

        Args:
            blobs: names of blobs to return besides the outputs.
            start: first layer to run.
            end: last layer to run.
            **inputs: arrays for the net's inputs, all of them or none.

        Returns:
            Blob name -> float32 view, which the next pass may overwrite.

        Raises:
            ValueError: unknown name, or an array whose shape does not fit.
            caffe.Error: a layer failed, or what layer `start` reads was released.
        """
        self._set_arrays(inputs, self.inputs, "data")
        first = self._layer_index(start, 0)
        last = self._layer_index(end, len(self.graph.nodes) - 1)
        outputs = self.outputs if end is None else self.top_names[end]
        names = [*outputs, *(blobs or [])]
        for name in names:
            self._blob(name)
        self._executor.forward(first, last, hold=[self._values[name] for name in names])
        return {name: self._blob(name).data for name in names}

    def backward(
        self,
        diffs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **output_diffs: npt.ArrayLike,
    ) -> dict[str, FloatArray]:
        """Run the backward passes from layer `start` down to `end` (names, inclusive).

        Args:
            diffs: names of blobs whose gradients to return besides those of the inputs.
            start: first layer to run, the net's last by default.
            end: last layer to run, the net's first by default.
            **output_diffs: gradients for the net's outputs.

        Returns:
            Blob name -> float32 view of the gradient.

        Raises:
            ValueError: unknown name, or an array whose shape does not fit.
            caffe.Error: a layer failed, or what it reads was released.
        """
        first = self._layer_index(start, len(self.graph.nodes) - 1)
        last = self._layer_index(end, 0)
        self._executor.seed_losses()
        self._set_arrays(output_diffs, self.outputs, "diff")
        self._executor.backward(first, last)
        names = self.inputs if end is None else self.bottom_names[end]
        return {name: self._blob(name).diff for name in [*names, *(diffs or [])]}

    forward_all = forward_all
    forward_backward_all = forward_backward_all
    set_input_arrays = set_input_arrays
    add_datums = add_datums

    def before_forward(self, function: Callable[[int], None]) -> None:
        """Call `function` with the index of each layer before its forward pass."""
        self._executor.hooks.before_forward.append(function)

    def after_forward(self, function: Callable[[int], None]) -> None:
        """Call `function` with the index of each layer after its forward pass."""
        self._executor.hooks.after_forward.append(function)

    def before_backward(self, function: Callable[[int], None]) -> None:
        """Call `function` with the index of each layer before its backward pass, if it has one."""
        self._executor.hooks.before_backward.append(function)

    def after_backward(self, function: Callable[[int], None]) -> None:
        """Call `function` with the index of each layer after its backward pass, if it has one."""
        self._executor.hooks.after_backward.append(function)

    def forward_timed(self) -> list[tuple[str, float]]:
        """Run forward; returns (layer name, milliseconds)."""
        times = self._executor.forward(0, len(self.graph.nodes) - 1)
        return list(zip(self._layer_names, times))

    def backward_timed(self) -> list[tuple[str, float]]:
        """Run backward; returns (layer name, milliseconds) of each layer that runs backward."""
        self._executor.seed_losses()
        times = self._executor.backward(len(self.graph.nodes) - 1, 0)
        return [(self._layer_names[index], took) for index, took in times]

    def loss(self) -> float:
        """Return the weighted sum of the loss tops, as the last forward pass left them."""
        total = 0.0
        for node in self.graph.nodes:
            for value, weight in zip(node.tops, node.loss_weights):
                if weight:
                    total += weight * float(self._executor.data(value).numpy().sum())
        return total

    def reshape(self) -> None:
        """Bring all shapes up to date with the inputs'."""
        for node in self.graph.nodes:
            self._executor.reshape(node.index)

    def clear_param_diffs(self) -> None:
        """Set the gradients of all parameters to zero."""
        for blob in self.learned:
            blob.parameter.clear_gradient()

    def close(self) -> None:
        """Stop the background threads of data layers; the net is done with."""
        for runtime in self._runtime:
            if isinstance(runtime.layer, PythonLayer) and hasattr(runtime.layer.layer, "close"):
                runtime.layer.layer.close()

    def _layer_index(self, name: str | None, default: int) -> int:
        if name is None:
            return default
        if name not in self._layer_names:
            raise ValueError(f"the net has no layer '{name}'{suggestion(name, self._layer_names)}")
        return self._layer_names.index(name)

    def _blob(self, name: str) -> Blob:
        if name not in self.blobs:
            raise ValueError(f"the net has no blob '{name}'{suggestion(name, self.blobs)}")
        return self.blobs[name]

    def _set_arrays(
        self, arrays: Mapping[str, npt.ArrayLike], expected: list[str], what: str
    ) -> None:
        if not arrays:
            return
        if set(arrays) != set(expected):
            raise ValueError(
                f"arrays were given for {sorted(arrays)}, the net needs them for {sorted(expected)}"
            )
        for name, values in arrays.items():
            array = np.asarray(values, dtype=np.float32)
            blob = self._blob(name)
            if array.shape != blob.shape:
                raise ValueError(
                    f"the array for '{name}' has shape {array.shape}, the blob {blob.shape}; "
                    "reshape the blob first"
                )
            getattr(blob, what)[...] = array

    # -- weights -----------------------------------------------------------------------------------

    def copy_from(self, path: str | Path) -> None:
        """Copy the weights of layers of the same name from a file of either format; others stay.

        Raises FileNotFoundError, ImportError where h5py is needed and missing, or ValueError for a
        wrong file, other shapes, no layer in common.
        """
        net_weights.copy(self.params, path)

    load_hdf5 = copy_from  # pycaffe's name for a .caffemodel.h5

    def copy_all_from(self, path: str | Path) -> None:
        """As copy_from(), but ValueError unless the file has every layer that learns."""
        net_weights.copy(self.params, path, whole=True)

    def share_with(self, other: Net) -> None:
        """Use the parameters of the layers of the same name in `other`, from now on.

        Raises ValueError where their shapes differ.
        """
        net_weights.share(self, other)

    def save(self, path: str | Path, write_diff: bool = False) -> None:
        """Write a .caffemodel, with gradients if asked for. OSError where it cannot be written."""
        net_weights.save(self, path, write_diff)

    def save_hdf5(self, path: str | Path, write_diff: bool = False) -> None:
        """Write a .caffemodel.h5, with gradients if asked for.

        Raises ImportError without h5py, or OSError where it cannot be written.
        """
        net_weights.save_hdf5(self, path, write_diff)

    def to_param(self) -> pb.NetParameter:
        """Return the net without weights, as it is: current format, rules applied, with splits."""
        param = pb.NetParameter(name=self.graph.name)
        for node in self.graph.nodes:
            layer = param.layer.add()
            layer.CopyFrom(node.param)
            del layer.blobs[:]
            layer.ClearField("compression_param")
        return param

    # -- compression -------------------------------------------------------------------------------

    def compression_report(self) -> list[StoredReport]:
        """Return what each value that backward reads cost in the last forward pass."""
        return [self._executor.reports[index] for index in sorted(self._executor.reports)]


@dataclass
class Settings:
    """What a solver says about a net; the defaults are those of a net that a user makes."""

    compression: pb.CompressionParameter = field(default_factory=Compression)
    seed: int | None = None
    saves: bool = True  # a backward pass will follow
    forward_only: bool = False  # blobs are let go after their last use, whatever the mode
    bounds: BoundSource | None = None


def _old_arguments(
    args: tuple[Any, ...], phase: int | None, weights: str | Path | None
) -> tuple[int, str | Path | None]:
    """Sort out Net(file, phase) and Net(file, weights, phase)."""
    rest = list(args)
    if rest and isinstance(rest[0], (str, Path)):
        weights = rest.pop(0)
    if rest and phase is None:
        phase = rest.pop(0)
    if rest:
        raise TypeError(f"Net() got {len(args)} arguments after the file, takes weights and phase")
    if phase is None:
        raise TypeError("Net() needs a phase: caffe.TRAIN or caffe.TEST")
    return phase, weights


def _no_needs(node: Node) -> Needs:
    return Needs([Need()] * len(node.bottoms), [Need()] * len(node.tops))
