"""Error-bounded compression of float arrays; use it through caffe.sz."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer

class Error(RuntimeError): ...

_Float = TypeVar("_Float", np.float32, np.float64)

def compress(
    array: npt.NDArray[_Float],
    error_bound: float,
    keep_sign: bool = False,
    mode: str = "abs",
    dither: int | None = None,
    negative_factor: float = 1.0,
    row_length: int = 0,
    checksum: bool = False,
    threads: int = 0,
    isa: str = "auto",
) -> bytes: ...
def compress_with_statistics(
    array: npt.NDArray[_Float],
    error_bound: float,
    keep_sign: bool = False,
    mode: str = "abs",
    dither: int | None = None,
    negative_factor: float = 1.0,
    row_length: int = 0,
    checksum: bool = False,
    threads: int = 0,
    isa: str = "auto",
) -> tuple[bytes, dict[str, float]]: ...
def decompress(data: Buffer, threads: int = 0, isa: str = "auto") -> npt.NDArray[Any]: ...
def decompress_into(
    data: Buffer, out: npt.NDArray[_Float], threads: int = 0, isa: str = "auto"
) -> None: ...
def decompress_range(
    data: Buffer, first: int, count: int, threads: int = 0, isa: str = "auto"
) -> npt.NDArray[Any]: ...
def info(data: Buffer) -> Any: ...  # a dictionary; caffe.sz.Info says of what
def supported(isa: str) -> bool: ...
def max_compressed_size(count: int, dims: int, float64: bool = False) -> int: ...
