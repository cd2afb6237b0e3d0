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
def update_nesterov(
    parameter: Parameter, history: Tensor, options: UpdateOptions, momentum: float
) -> None: ...
def update_adagrad(
    parameter: Parameter, history: Tensor, options: UpdateOptions, delta: float
) -> None: ...
def update_rmsprop(
    parameter: Parameter, history: Tensor, options: UpdateOptions, rms_decay: float, delta: float
) -> None: ...
def update_adadelta(
    parameter: Parameter,
    gradient_squares: Tensor,
    update_squares: Tensor,
    options: UpdateOptions,
    momentum: float,
    delta: float,
) -> None: ...
def update_adam(
    parameter: Parameter,
    mean: Tensor,
    square: Tensor,
    options: UpdateOptions,
    beta1: float,
    beta2: float,
    delta: float,
    step: int,
) -> None: ...
def gradient_sum_squares(parameter: Parameter, /) -> float: ...
