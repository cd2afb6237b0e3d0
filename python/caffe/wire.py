"""Protocol buffers at the level of bytes: which fields lie where, payloads unread.

The wire format: a field is a varint tag (number << 3 | wire type) and its payload. This is how
large weights are read and written without a Python object a value, or a copy of the file.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple, Union

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZE = {FIXED64: 8, FIXED32: 4}
_MOST_SHIFT = 63

Data = Union[bytes, mmap.mmap]


class WireError(ValueError):
    """The bytes are no protocol buffer, or one that was cut off; says at which byte."""


class Field(NamedTuple):
    """One field: its number, wire type, value (of a varint) and where its payload lies."""

    number: int
    wire: int
    value: int
    begin: int
    end: int


def fields(data: Data, begin: int = 0, end: int | None = None) -> Iterator[Field]:
    """Yield the fields of the message that `data[begin:end]` holds, in their order.

    Raises WireError where the bytes are no fields, or a field runs past the end.
    """
    at = begin
    size = len(data) if end is None else end
    while at < size:
        start = at
        tag, at = _varint(data, at, size)
        number, wire, value = tag >> 3, tag & 7, 0
        first = at
        if wire == VARINT:
            value, at = _varint(data, at, size)
        elif wire == BYTES:
            length, first = _varint(data, at, size)
            at = first + length
        elif wire in _SIZE:
            at += _SIZE[wire]
        else:
            raise WireError(f"byte {start} starts no field")
        if number == 0:
            raise WireError(f"byte {start} starts no field")
        if at > size:
            raise WireError(
                f"cut off: field {number} at byte {start} runs to {at}, past the end at {size}"
            )
        yield Field(number, wire, value, first, at)


def _varint(data: Data, at: int, size: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _MOST_SHIFT + 1, 7):
        if at >= size:
            raise WireError(f"cut off at byte {at}, within a number")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise WireError(f"byte {at - 10} starts no number")


def varint(value: int) -> bytes:
    """Return the bytes of a number from 0 up."""
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def header(number: int, length: int) -> bytes:
    """Return what stands before a payload of `length` bytes of field `number`."""
    return varint(number << 3 | BYTES) + varint(length)
