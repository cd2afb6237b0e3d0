"""The graph of a net: its layers and values, from a NetParameter. No arithmetic, no buffers.

A *value* is one writing of one blob: a layer whose top has the name of its bottom (in place) makes
a new value of the same blob. Rules by phase, level and stage are applied and Split layers are put
in where a value has several readers, named as Caffe names them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from caffe.names import suggestion
from caffe.proto import caffe_pb2 as pb

#: Types whose first top carries a loss weight of 1 unless the prototxt says otherwise.
LOSS_TYPES = frozenset(
    {
        "ContrastiveLoss",
        "EuclideanLoss",
        "HingeLoss",
        "InfogainLoss",
        "MultinomialLogisticLoss",
        "SigmoidCrossEntropyLoss",
        "SoftmaxWithLoss",
    }
)


@dataclass(eq=False)
class Value:
    """One writing of one blob."""

    index: int
    name: str  # of the blob
    producer: int  # index of the layer that writes it
    top: int  # which top of the producer
    readers: list[tuple[int, int]] = field(default_factory=list)  # (layer, bottom index)

    def __repr__(self) -> str:
        return f"Value({self.index}, {self.name!r})"


@dataclass(eq=False)
class Node:
    """One layer of the net, with the values that it reads and writes."""

    index: int
    param: pb.LayerParameter
    bottoms: list[Value]
    tops: list[Value]
    loss_weights: list[float]  # one a top

    @property
    def name(self) -> str:
        """The layer's name."""
        return self.param.name

    @property
    def type(self) -> str:
        """The layer's type as prototxt names it."""
        return self.param.type


@dataclass
class Graph:
    """Layers in the order of execution; values in the order of writing."""

    name: str
    nodes: list[Node]
    values: list[Value]

    def last_values(self) -> dict[str, Value]:
        """Blob name -> the last value of that name, in the order of first writing."""
        return {value.name: value for value in self.values}

    def outputs(self) -> list[Value]:
        """Return the values that no layer reads."""
        return [value for value in self.values if not value.readers]


def meets_rule(state: pb.NetState, rule: pb.NetStateRule) -> bool:
    """Whether a net in `state` meets every condition of `rule`."""
    if rule.HasField("phase") and rule.phase != state.phase:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    stages = set(state.stage)
    return stages.issuperset(rule.stage) and stages.isdisjoint(rule.not_stage)


def filter_net(net: pb.NetParameter, state: pb.NetState) -> pb.NetParameter:
    """Return the net without the layers that its include and exclude rules leave out in `state`.

    Raises ValueError for a layer with both kinds of rules.
    """
    filtered = pb.NetParameter()
    filtered.CopyFrom(net)
    filtered.state.CopyFrom(state)
    del filtered.layer[:]
    for layer in net.layer:
        if layer.include and layer.exclude:
            raise ValueError(
                f"layer '{layer.name}' has both include and exclude rules; use one kind"
            )
        if layer.include:
            kept = any(meets_rule(state, rule) for rule in layer.include)
        else:
            kept = not any(meets_rule(state, rule) for rule in layer.exclude)
        if kept:
            filtered.layer.add().CopyFrom(layer)
    return filtered


def loss_weights(layer: pb.LayerParameter) -> list[float]:
    """Return one loss weight a top: those written, else 1 for the first top of a loss layer.

    Raises ValueError where the number of weights written is not that of the tops.
    """
    if layer.loss_weight:
        if len(layer.loss_weight) != len(layer.top):
            raise ValueError(
                f"layer '{layer.name}' ({layer.type}): has {len(layer.loss_weight)} loss_weight, "
                f"needs one for each of its {len(layer.top)} tops"
            )
        return list(layer.loss_weight)
    weights = [0.0] * len(layer.top)
    if layer.type in LOSS_TYPES and weights:
        weights[0] = 1.0
    return weights


def insert_splits(net: pb.NetParameter) -> pb.NetParameter:
    """Return the net with a Split layer after each value that several readers share.

    A loss weight counts as a reader. Raises ValueError for a bottom that no earlier layer writes.
    """
    writer: dict[str, tuple[int, int]] = {}  # blob -> (layer, top) of its last value so far
    uses: dict[tuple[int, int], int] = {}
    reads: list[list[tuple[int, int]]] = []
    for index, layer in enumerate(net.layer):
        layer_reads = []
        for bottom in layer.bottom:
            if bottom not in writer:
                raise ValueError(
                    f"layer '{layer.name}' ({layer.type}): no earlier layer writes its bottom "
                    f"'{bottom}'{suggestion(bottom, writer)}"
                )
            layer_reads.append(writer[bottom])
            uses[writer[bottom]] = uses.get(writer[bottom], 0) + 1
        reads.append(layer_reads)
        for top_index, (top, weight) in enumerate(zip(layer.top, loss_weights(layer))):
            writer[top] = (index, top_index)
            uses[index, top_index] = int(weight != 0)

    result = pb.NetParameter()
    result.CopyFrom(net)
    del result.layer[:]
    next_copy: dict[tuple[int, int], int] = {}
    for index, layer in enumerate(net.layer):
        copy = result.layer.add()
        copy.CopyFrom(layer)
        for bottom_index, source in enumerate(reads[index]):
            if uses[source] > 1:
                producer = net.layer[source[0]]
                number = next_copy.get(source, 0)
                next_copy[source] = number + 1
                copy.bottom[bottom_index] = _split_top(producer, source[1], number)
        weights = loss_weights(layer)
        for top_index in range(len(layer.top)):
            count = uses[index, top_index]
            if count > 1:
                split = _split_layer(layer, top_index, count)
                if weights[top_index]:
                    # The loss is taken from the split's first copy, whose gradient it then is.
                    split.loss_weight.extend([weights[top_index]] + [0.0] * (count - 1))
                    weights[top_index] = 0.0
                    next_copy[index, top_index] = 1
                    del copy.loss_weight[:]
                    copy.loss_weight.extend(weights)
                result.layer.add().CopyFrom(split)
    return result


def _split_name(producer: pb.LayerParameter, top: int) -> str:
    return f"{producer.top[top]}_{producer.name}_{top}_split"


def _split_top(producer: pb.LayerParameter, top: int, number: int) -> str:
    return f"{_split_name(producer, top)}_{number}"


def _split_layer(producer: pb.LayerParameter, top: int, count: int) -> pb.LayerParameter:
    return pb.LayerParameter(
        name=_split_name(producer, top),
        type="Split",
        bottom=[producer.top[top]],
        top=[_split_top(producer, top, number) for number in range(count)],
    )


def build_graph(net: pb.NetParameter, state: pb.NetState) -> Graph:
    """Build the graph of `net` (in the current format) as it is in `state`.

    Raises ValueError for rules that contradict, bottoms that nothing writes, two layers that write
    one blob without reading it, or a loss weight count that does not fit.
    """
    filtered = filter_net(net, state)
    _check_writers(filtered)
    param = insert_splits(filtered)
    graph = Graph(param.name, [], [])
    current: dict[str, Value] = {}
    for index, layer in enumerate(param.layer):
        bottoms = [current[name] for name in layer.bottom]
        tops = []
        for top_index, name in enumerate(layer.top):
            tops.append(Value(len(graph.values), name, index, top_index))
            graph.values.append(tops[-1])
        for bottom_index, value in enumerate(bottoms):
            value.readers.append((index, bottom_index))
        current.update((value.name, value) for value in tops)
        graph.nodes.append(Node(index, layer, bottoms, tops, loss_weights(layer)))
    return graph


def _check_writers(net: pb.NetParameter) -> None:
    """Refuse two layers that write one blob, unless the later one reads it (in place)."""
    writers: dict[str, str] = {}
    for layer in net.layer:
        where = f"layer '{layer.name}' ({layer.type})"
        for position, top in enumerate(layer.top):
            if top in layer.top[:position]:
                raise ValueError(f"{where}: top '{top}' stands twice")
            if top in writers and top not in layer.bottom:
                raise ValueError(
                    f"{where}: top '{top}' is already written by layer '{writers[top]}'; "
                    "give it another name, or make it this layer's bottom as well"
                )
            writers[top] = layer.name
