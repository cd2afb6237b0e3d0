"""Error-bounded compression of float arrays; use it through caffe.sz."""

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

class Error(RuntimeError): ...

def compress(
    array: npt.NDArray[np.float32],
    error_bound: float,
    keep_sign: bool = False,
    row_length: int = 0,
    threads: int = 0,
    isa: str = "auto",
) -> bytes: ...
def compress_with_statistics(
    array: npt.NDArray[np.float32],
    error_bound: float,
    keep_sign: bool = False,
    row_length: int = 0,
    threads: int = 0,
    isa: str = "auto",
) -> tuple[bytes, dict[str, float]]: ...
def decompress(data: Buffer, threads: int = 0, isa: str = "auto") -> npt.NDArray[np.float32]: ...
def info(data: Buffer) -> Any: ...  # a dictionary; caffe.sz.Info says of what
def supported(isa: str) -> bool: ...
def max_compressed_size(count: int, dims: int) -> int: ...
