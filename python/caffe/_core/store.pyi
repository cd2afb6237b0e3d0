"""Activations between forward and backward."""

from typing import ClassVar

from caffe._core import MemoryKind, Tensor, _Enum

class Form(_Enum):
    RAW: ClassVar[Form]
    LOSSLESS: ClassVar[Form]
    BOUNDED: ClassVar[Form]
    SIGN: ClassVar[Form]

class Statistics:
    @property
    def count(self) -> int: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def sum(self) -> float: ...
    @property
    def sum_squares(self) -> float: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...

class StoredActivation:
    @property
    def form(self) -> Form: ...
    @property
    def raw_bytes(self) -> int: ...
    @property
    def stored_bytes(self) -> int: ...
    @property
    def error_bound(self) -> float: ...
    @property
    def statistics(self) -> Statistics: ...

class ActivationStore:
    def __init__(self) -> None: ...
    def save(
        self,
        tensor: Tensor,
        form: Form,
        error_bound: float = 0.0,
        keep_sign: bool = False,
        dither: int | None = None,
        expected_bytes: int = 0,
        count_values: bool = True,
    ) -> StoredActivation: ...
    def restore(self, stored: StoredActivation, /) -> Tensor: ...

def pack_sign(tensor: Tensor, kind: MemoryKind = ...) -> Tensor: ...
def statistics_of(tensor: Tensor) -> Statistics: ...
