from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Blob(_message.Message):
    __slots__ = ["data", "diff", "shape"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    diff: bytes
    shape: Shape
    def __init__(self, shape: _Optional[_Union[Shape, _Mapping]] = ..., data: _Optional[bytes] = ..., diff: _Optional[bytes] = ...) -> None: ...

class Layer(_message.Message):
    __slots__ = ["blobs", "name", "type"]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedCompositeFieldContainer[Blob]
    name: str
    type: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., blobs: _Optional[_Iterable[_Union[Blob, _Mapping]]] = ...) -> None: ...

class Net(_message.Message):
    __slots__ = ["layer", "v1_layer"]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    V1_LAYER_FIELD_NUMBER: _ClassVar[int]
    layer: _containers.RepeatedCompositeFieldContainer[Layer]
    v1_layer: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, layer: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ..., v1_layer: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Shape(_message.Message):
    __slots__ = ["dim"]
    DIM_FIELD_NUMBER: _ClassVar[int]
    dim: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, dim: _Optional[_Iterable[int]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ["history"]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    history: _containers.RepeatedCompositeFieldContainer[Blob]
    def __init__(self, history: _Optional[_Iterable[_Union[Blob, _Mapping]]] = ...) -> None: ...
