"""Nets described in Python instead of prototxt, as pycaffe's net_spec.

    from caffe import layers as L, params as P

    n = caffe.NetSpec()
    n.data, n.label = L.Data(source="train_lmdb", backend=P.Data.LMDB, batch_size=64, ntop=2)
    n.ip = L.InnerProduct(n.data, num_output=10, weight_filler=dict(type="xavier"))
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    net_parameter = n.to_proto()

A layer takes its bottoms as arguments and its fields as keywords: those of the message of its type
(num_output, of convolution_param) and those of LayerParameter (name, loss_weight, include, param).
A message is a dict or a message, a repeated field a list; a list of one may be left out. Two
keywords are no fields: ntop, the number of tops, and in_place. Mistakes are told where the layer is
made, by the nearest name.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Union

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from caffe.layer_types.factory import layer_types
from caffe.names import nearest, suggestion
from caffe.proto import caffe_pb2 as pb

_LAYER: Descriptor = pb.LayerParameter.DESCRIPTOR  # type: ignore[assignment]
_SUFFIX = "Parameter"

#: What a NetSpec names: a top, or a layer that has none.
Named = Union["Top", "Function"]
_Layers = dict["Function", pb.LayerParameter]
_Names = dict[Named, str]


def param_name_dict() -> dict[str, str]:
    """Return layer type -> name of its own message in LayerParameter, without "_param"."""
    return {
        field.message_type.name[: -len(_SUFFIX)]: field.name[: -len("_param")]
        for field in _LAYER.fields
        if field.name.endswith("_param") and field.message_type is not None
    }


_PARAM_NAMES = param_name_dict()


def to_proto(*tops: Top) -> pb.NetParameter:
    """Return the net that computes these tops; all layers are named by their type and a number."""
    return _net(tops, {})


def assign_proto(proto: Message, name: str, value: Any) -> None:
    """Set the field `name` of a message to a value, a list, a dict or a message.

    Raises:
        AttributeError: no such field; names the nearest.
        TypeError, ValueError: the value does not fit the field; names it.
    """
    owner: Descriptor = proto.DESCRIPTOR  # type: ignore[assignment]
    field = owner.fields_by_name.get(name)
    if field is None:
        known = suggestion(name, [other.name for other in owner.fields])
        raise AttributeError(f"{owner.name} has no field '{name}'{known}")
    if hasattr(getattr(proto, name), "extend"):
        values = value if isinstance(value, (list, tuple)) else [value]
        _extend(getattr(proto, name), field, values)
    elif field.message_type is not None:
        _merge(getattr(proto, name), name, value)
    else:
        try:
            setattr(proto, name, value)
        except (TypeError, ValueError) as error:
            raise _unfit(field, value, error) from None


def _extend(target: Any, field: FieldDescriptor, values: Iterable[Any]) -> None:
    for value in values:
        if field.message_type is not None:
            _merge(target.add(), field.name, value)
            continue
        try:
            target.append(value)
        except (TypeError, ValueError) as error:
            raise _unfit(field, value, error) from None


def _merge(target: Message, name: str, value: Any) -> None:
    if isinstance(value, type(target)):
        target.MergeFrom(value)
    elif isinstance(value, Mapping):
        target.SetInParent()
        for key, inner in value.items():
            assign_proto(target, key, inner)
    else:
        raise TypeError(
            f"field '{name}' is a {target.DESCRIPTOR.name}: give it a dict, not {value!r}"
        )


def _unfit(field: FieldDescriptor, value: Any, error: Exception) -> Exception:
    enum: EnumDescriptor | None = field.enum_type
    if enum is not None and isinstance(value, str):
        known = suggestion(value, [other.name for other in enum.values])
        return ValueError(f"field '{field.name}' has no value '{value}'{known}")
    return type(error)(f"field '{field.name}' cannot be {value!r}: {error}")


class Top:
    """One output of a layer."""

    def __init__(self, fn: Function, n: int) -> None:
        """Top number `n` of the layer `fn`."""
        self.fn = fn
        self.n = n

    def to_proto(self) -> pb.NetParameter:
        """Return the net that computes this top."""
        return to_proto(self)


class Function:
    """A layer: its type, the tops that it reads and its fields. Made by `layers`."""

    def __init__(self, type_name: str, inputs: Sequence[Top], params: Mapping[str, Any]) -> None:
        """Describe a layer of this type; `params` as the module says.

        Raises:
            AttributeError: a field that the layer does not have.
            TypeError, ValueError: a bottom that is no top, or a value that does not fit its field.
        """
        self.type_name = type_name
        for index, given in enumerate(inputs):
            if not isinstance(given, Top):
                raise TypeError(_no_top(type_name, index, given))
        self.inputs = tuple(inputs)
        self.params = dict(params)
        self.ntop = int(self.params.pop("ntop", 1))
        self.in_place = bool(self.params.pop("in_place", False))
        if self.in_place and self.ntop > len(self.inputs):
            raise ValueError(
                f"{type_name}: {self.ntop} tops in place need as many bottoms, "
                f"not {len(self.inputs)}"
            )
        self.tops = tuple(Top(self, n) for n in range(self.ntop))
        self._layer()  # mistakes are told here, where the user's line is in the traceback

    def _layer(self) -> pb.LayerParameter:
        """Return the layer without name, bottoms and tops."""
        layer = pb.LayerParameter(type=self.type_name)
        own = _PARAM_NAMES.get(self.type_name, "") + "_param"
        for key, value in self.params.items():
            target: Message = layer
            if not key.endswith("param") and own in _LAYER.fields_by_name:
                message: Message = getattr(layer, own)
                if key in message.DESCRIPTOR.fields_by_name:
                    target = message
            if target is layer and key not in _LAYER.fields_by_name:
                raise AttributeError(
                    f"{self.type_name} has no parameter '{key}'{_advice(own, key)}"
                )
            try:
                assign_proto(target, key, value)
            except (AttributeError, TypeError, ValueError) as error:
                raise type(error)(f"{self.type_name}: {error}") from None
        return layer

    def write(self, layers: _Layers, names: _Names, autonames: Counter[str]) -> None:
        """Add the layer to `layers`, those that it reads first, and name what has no name yet."""
        waiting: list[Function] = [self]
        while waiting:
            function = waiting[-1]
            missing = [top.fn for top in function.inputs if top.fn not in layers]
            if missing:
                waiting += reversed(missing)
                continue
            waiting.pop()
            if function not in layers:
                layers[function] = function._named(layers, names, autonames)

    def _named(self, layers: _Layers, names: _Names, autonames: Counter[str]) -> pb.LayerParameter:
        layer = self._layer()
        layer.bottom.extend(layers[top.fn].top[top.n] for top in self.inputs)
        first: Named = self.tops[0] if self.tops else self
        name = _name(first, names, autonames)
        if not layer.HasField("name"):
            layer.name = name
        if self.in_place:
            layer.top.extend(layer.bottom[: self.ntop])
        else:
            layer.top.extend(_name(top, names, autonames) for top in self.tops)
        return layer


def _name(named: Named, names: _Names, autonames: Counter[str]) -> str:
    """Return the name of a top or layer; one without gets its layer's type and a number."""
    if named not in names:
        kind = named.fn.type_name if isinstance(named, Top) else named.type_name
        taken = set(names.values())
        while True:
            autonames[kind] += 1
            name = f"{kind}{autonames[kind]}"
            if name not in taken:
                break
        names[named] = name
    return names[named]


def _no_top(type_name: str, index: int, given: object) -> str:
    message = f"{type_name} input {index} is not a Top (type is {type(given).__name__})"
    if isinstance(given, tuple):
        message += "; give its tops one by one"
    return message


def _advice(own: str, key: str) -> str:
    """Return the end of a message about an unknown keyword of a layer."""
    known = [field.name for field in _LAYER.fields]
    field = _LAYER.fields_by_name.get(own)
    if field is not None and field.message_type is not None:
        known = [*(inner.name for inner in field.message_type.fields), *known]
    known += ["ntop", "in_place"]
    homes = [
        field.name
        for field in _LAYER.fields
        if field.message_type is not None and key in field.message_type.fields_by_name
    ]
    if homes and nearest(key, known) is None:
        return f"; it belongs inside {' or '.join(f'{home}=dict({key}=...)' for home in homes[:4])}"
    return suggestion(key, known)


class NetSpec:
    """A net under construction: attributes (or items) are tops, and name them.

    The layers stand in the order of their assignment, each behind those that it reads. A layer has
    the name of its first top.
    """

    tops: OrderedDict[str, Named]

    def __init__(self) -> None:
        """Start without layers."""
        super().__setattr__("tops", OrderedDict())

    def __setattr__(self, name: str, value: Named) -> None:
        """Name a top. TypeError for anything else, such as all tops of a layer at once."""
        if isinstance(value, (tuple, list)):
            raise TypeError(
                f"'{name}' is given {len(value)} tops: name each, as in n.data, n.label = ..."
            )
        if not isinstance(value, (Top, Function)):
            raise TypeError(f"'{name}' needs to be a top of a layer, not {value!r}")
        self.tops[name] = value

    def __getattr__(self, name: str) -> Any:
        """Return the top of this name; AttributeError where there is none."""
        try:
            return self.tops[name]
        except KeyError:
            raise AttributeError(f"no top '{name}'{suggestion(name, self.tops)}") from None

    def __delattr__(self, name: str) -> None:
        """Forget the name; layers behind it that others read stay, without a name of their own."""
        del self[name]

    def __setitem__(self, key: str, value: Named) -> None:
        """As an attribute."""
        setattr(self, key, value)

    def __getitem__(self, item: str) -> Any:
        """As an attribute; KeyError where there is none."""
        if item not in self.tops:
            raise KeyError(f"no top '{item}'{suggestion(item, self.tops)}")
        return self.tops[item]

    def __delitem__(self, name: str) -> None:
        """As an attribute; KeyError where there is none."""
        del self.tops[name]

    def __contains__(self, name: str) -> bool:
        """Whether a top has this name."""
        return name in self.tops

    def __iter__(self) -> Iterator[str]:
        """Return the names, in the order of their assignment."""
        return iter(self.tops)

    def to_proto(self) -> pb.NetParameter:
        """Return the net."""
        return _net(self.tops.values(), {top: name for name, top in self.tops.items()})


def _net(tops: Iterable[Named], names: _Names) -> pb.NetParameter:
    layers: _Layers = {}
    autonames: Counter[str] = Counter()
    for top in tops:
        function = top.fn if isinstance(top, Top) else top
        function.write(layers, names, autonames)
    net = pb.NetParameter()
    net.layer.extend(layers.values())
    return net


class Layers:
    """Attributes are functions that make a layer of that type: `layers.ReLU(bottom)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return what makes a layer of type `name`: bottoms and fields to its top.

        That returns a Top, a tuple of them if ntop is more than 1, and a Function if it is 0.
        Raises AttributeError for an unknown type; says the nearest.
        """
        known = {*layer_types(), *_PARAM_NAMES}
        if name not in known:
            raise AttributeError(f"no layer type '{name}'{suggestion(name, sorted(known))}")

        def make(*inputs: Top, **params: Any) -> Top | tuple[Top, ...] | Function:
            function = Function(name, inputs, params)
            if function.ntop == 0:
                return function
            return function.tops[0] if function.ntop == 1 else function.tops

        make.__name__ = name
        return make

    def __dir__(self) -> list[str]:
        """Return the layer types, for completion."""
        return layer_types()


class Parameters:
    """Enumerations of layers' messages: `params.Pooling.MAX`, of PoolingParameter."""

    def __getattr__(self, name: str) -> Any:
        """Return a message's enumeration values as attributes; AttributeError if unknown."""
        messages = {
            known[: -len(_SUFFIX)]: known
            for known in pb.DESCRIPTOR.message_types_by_name
            if known.endswith(_SUFFIX)
        }
        if name not in messages:
            raise AttributeError(f"no message '{name}Parameter'{suggestion(name, messages)}")
        return _Enumerations(messages[name])


class _Enumerations:
    def __init__(self, message: str) -> None:
        self._message = message

    def __getattr__(self, name: str) -> int:
        owner: Descriptor = pb.DESCRIPTOR.message_types_by_name[self._message]
        if name not in owner.enum_values_by_name:
            known = suggestion(name, owner.enum_values_by_name)
            raise AttributeError(f"{self._message} has no value '{name}'{known}")
        return int(owner.enum_values_by_name[name].number)


layers = Layers()
params = Parameters()
