"""Update rules, one pass each."""

from typing import ClassVar

from caffe._core import Parameter, Tensor, _Enum

class Regularization(_Enum):
    L2: ClassVar[Regularization]
    L1: ClassVar[Regularization]

class UpdateOptions:
    def __init__(
        self,
        rate: float,
        gradient_scale: float = 1.0,
        decay: float = 0.0,
        regularization: Regularization = ...,
    ) -> None: ...

def update_sgd(
    parameter: Parameter, history: Tensor, options: UpdateOptions, momentum: float
) -> None: ...
def gradient_sum_squares(parameter: Parameter, /) -> float: ...
