"""The layers whose arithmetic is C++."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from caffe._core import Parameter, Tensor, _Enum

class Quality(_Enum):
    NOTHING: ClassVar[Quality]
    SIGN: ClassVar[Quality]
    BOUNDED: ClassVar[Quality]
    BOUNDED_SIGN: ClassVar[Quality]
    EXACT: ClassVar[Quality]

class BoundRule(_Enum):
    GRADIENT: ClassVar[BoundRule]
    NORMALISED: ClassVar[BoundRule]
    PROPAGATED: ClassVar[BoundRule]

class BatchAxis(_Enum):
    COUPLED: ClassVar[BatchAxis]
    INDEPENDENT: ClassVar[BatchAxis]

class Inverse(_Enum):
    NONE: ClassVar[Inverse]
    VALUE: ClassVar[Inverse]
    SELECTED: ClassVar[Inverse]

class Need:
    def __init__(self, quality: Quality = ..., rule: BoundRule = ...) -> None: ...
    @property
    def quality(self) -> Quality: ...
    @property
    def rule(self) -> BoundRule: ...

class Needs:
    def __init__(self, bottoms: Sequence[Need], tops: Sequence[Need]) -> None: ...
    @property
    def bottoms(self) -> list[Need]: ...
    @property
    def tops(self) -> list[Need]: ...

class Propagation:
    def __init__(self, bottoms: Sequence[bool], parameters: Sequence[bool]) -> None: ...
    @property
    def bottoms(self) -> list[bool]: ...
    @property
    def parameters(self) -> list[bool]: ...

class Traits:
    def __init__(self) -> None: ...
    cheap: bool
    keeps_sign: bool
    rectifies: bool
    inverse: Inverse
    slices: bool
    any_slices: bool
    sums_first: bool
    forward_in_place: bool
    backward_in_place: bool
    alias: bool
    batch_axis: BatchAxis
    differentiable_bottoms: int
    error_factor: float
    inverse_error_factor: float

class BatchSlice:
    def __init__(self, index: int = 0, first: int = 0, last: bool = True) -> None: ...
    @property
    def index(self) -> int: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> bool: ...

class ForwardContext:
    def __init__(
        self,
        train: bool,
        save_for_backward: bool = True,
        random_key: int = 0,
        forward_count: int = 0,
        inverts: bool = False,
        slice: BatchSlice = ...,
    ) -> None: ...
    @property
    def train(self) -> bool: ...
    @property
    def save_for_backward(self) -> bool: ...
    @property
    def random_key(self) -> int: ...
    @property
    def forward_count(self) -> int: ...
    @property
    def inverts(self) -> bool: ...
    @property
    def slice(self) -> BatchSlice: ...

def multiply(
    a: npt.NDArray[np.float32],
    b: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
    transpose_a: bool = False,
    transpose_b: bool = False,
    accumulate: bool = False,
) -> None: ...

class Layer:
    parameters: list[Parameter]
    def reshape(self, bottoms: Sequence[Sequence[int]], /) -> list[list[int]]: ...
    def needs(self, propagation: Propagation, /) -> Needs: ...
    def traits(self) -> Traits: ...
    def forward(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None: ...
    def backward(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        diff_src: Sequence[Tensor],
        propagation: Propagation,
        slice: BatchSlice = ...,
    ) -> None: ...
    def add_up(
        self,
        src: Sequence[Tensor],
        dst: Sequence[Tensor],
        diff_dst: Sequence[Tensor],
        propagation: Propagation,
        slice: BatchSlice,
    ) -> None: ...
    def rerun(
        self, src: Sequence[Tensor], dst: Sequence[Tensor], context: ForwardContext
    ) -> None: ...
    def invert(self, dst: Tensor, src: Tensor, slice: BatchSlice = ...) -> None: ...
    def gradient_terms(self) -> int: ...
    def exact_slice(self) -> int: ...
    def saved_bytes(self) -> int: ...
    def drop_saved(self) -> None: ...

class AbsVal(Layer):
    def __init__(self) -> None: ...

class BNLL(Layer):
    def __init__(self) -> None: ...

class Clip(Layer):
    def __init__(self, min: float, max: float) -> None: ...

class ELU(Layer):
    def __init__(self, alpha: float = 1.0) -> None: ...

class Exp(Layer):
    def __init__(self, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> None: ...

class Log(Layer):
    def __init__(self, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> None: ...

class Power(Layer):
    def __init__(self, power: float = 1.0, scale: float = 1.0, shift: float = 0.0) -> None: ...

class PReLU(Layer):
    def __init__(self, channel_shared: bool = False) -> None: ...

class ReLU(Layer):
    def __init__(self, negative_slope: float = 0.0) -> None: ...

class Sigmoid(Layer):
    def __init__(self) -> None: ...

class Swish(Layer):
    def __init__(self, beta: float = 1.0) -> None: ...

class TanH(Layer):
    def __init__(self) -> None: ...

class Threshold(Layer):
    def __init__(self, threshold: float = 0.0) -> None: ...

class Convolution(Layer):
    def __init__(
        self,
        num_output: int,
        kernel: Sequence[int],
        bias: bool = True,
        pad: Sequence[int] = ...,
        stride: Sequence[int] = ...,
        dilation: Sequence[int] = ...,
        group: int = 1,
        axis: int = 1,
    ) -> None: ...

class Deconvolution(Layer):
    def __init__(
        self,
        num_output: int,
        kernel: Sequence[int],
        bias: bool = True,
        pad: Sequence[int] = ...,
        stride: Sequence[int] = ...,
        dilation: Sequence[int] = ...,
        group: int = 1,
        axis: int = 1,
    ) -> None: ...

class InnerProduct(Layer):
    def __init__(
        self, num_output: int, bias: bool = True, axis: int = 1, transpose: bool = False
    ) -> None: ...

class PoolMethod(_Enum):
    MAX: ClassVar[PoolMethod]
    AVE: ClassVar[PoolMethod]
    STOCHASTIC: ClassVar[PoolMethod]

class RoundMode(_Enum):
    CEIL: ClassVar[RoundMode]
    FLOOR: ClassVar[RoundMode]

class Pooling(Layer):
    def __init__(
        self,
        method: PoolMethod,
        kernel: Sequence[int] = ...,
        stride: Sequence[int] = ...,
        pad: Sequence[int] = ...,
        global_pooling: bool = False,
        round_mode: RoundMode = ...,
        mask_top: bool = False,
    ) -> None: ...

class NormRegion(_Enum):
    ACROSS_CHANNELS: ClassVar[NormRegion]
    WITHIN_CHANNEL: ClassVar[NormRegion]

class LRN(Layer):
    def __init__(
        self,
        local_size: int = 5,
        alpha: float = 1.0,
        beta: float = 0.75,
        region: NormRegion = ...,
        k: float = 1.0,
    ) -> None: ...

class BatchNorm(Layer):
    def __init__(
        self,
        use_global_stats: bool = False,
        moving_average_fraction: float = 0.999,
        eps: float = 1e-5,
    ) -> None: ...

class Scale(Layer):
    def __init__(self, axis: int = 1, num_axes: int = 1, bias_term: bool = False) -> None: ...

class Bias(Layer):
    def __init__(self, axis: int = 1, num_axes: int = 1) -> None: ...

class MVN(Layer):
    def __init__(
        self, normalize_variance: bool = True, across_channels: bool = False, eps: float = 1e-9
    ) -> None: ...

class Dropout(Layer):
    def __init__(self, ratio: float = 0.5) -> None: ...

class LossNormalization(_Enum):
    FULL: ClassVar[LossNormalization]
    VALID: ClassVar[LossNormalization]
    BATCH_SIZE: ClassVar[LossNormalization]
    NONE: ClassVar[LossNormalization]

class Softmax(Layer):
    def __init__(self, axis: int = 1) -> None: ...

class SoftmaxWithLoss(Layer):
    def __init__(
        self,
        axis: int = 1,
        ignore_label: int | None = None,
        normalization: LossNormalization = ...,
        tops: int = 1,
    ) -> None: ...

class EltwiseOperation(_Enum):
    PROD: ClassVar[EltwiseOperation]
    SUM: ClassVar[EltwiseOperation]
    MAX: ClassVar[EltwiseOperation]

class Eltwise(Layer):
    def __init__(self, operation: EltwiseOperation = ..., coeff: Sequence[float] = ...) -> None: ...

class Concat(Layer):
    def __init__(self, axis: int = 1) -> None: ...

class Slice(Layer):
    def __init__(self, axis: int = 1, points: Sequence[int] = ..., tops: int = 1) -> None: ...

class Split(Layer):
    def __init__(self, tops: int = 2) -> None: ...

class ReductionOperation(_Enum):
    SUM: ClassVar[ReductionOperation]
    ASUM: ClassVar[ReductionOperation]
    SUMSQ: ClassVar[ReductionOperation]
    MEAN: ClassVar[ReductionOperation]

class Reduction(Layer):
    def __init__(
        self, operation: ReductionOperation = ..., axis: int = 0, coeff: float = 1.0
    ) -> None: ...

class Flatten(Layer):
    def __init__(self, axis: int = 1, end_axis: int = -1) -> None: ...

class Reshape(Layer):
    def __init__(self, dims: Sequence[int], axis: int = 0, num_axes: int = -1) -> None: ...
