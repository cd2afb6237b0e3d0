"""What kind of file a path holds, so that an error can name it.

Binary protocol buffers carry no mark of their type. They are told apart by the numbers and wire
types of their top-level fields, which a scan finds without reading the payloads.
"""

from __future__ import annotations

import mmap
import re
from enum import Enum
from pathlib import Path

from caffe import wire
from caffe.proto import caffe_pb2
from caffe.wire import WireError


class Kind(Enum):
    """Kinds of files that users hand to the framework; the value is how messages call them."""

    EMPTY = "an empty file"
    HDF5 = "an HDF5 file"
    IMAGE = "an image"
    LMDB = "the data file of an LMDB (give its folder instead)"
    NUMPY = "a NumPy file"
    ARCHIVE = "a compressed archive"
    NET_TEXT = "a net prototxt"
    SOLVER_TEXT = "a solver prototxt"
    TEXT = "a text file"
    LFS_POINTER = "a pointer of Git LFS (git lfs pull fetches the file itself)"
    WEB_PAGE = "a web page (did the download end in an error page?)"
    NET_BINARY = "a .caffemodel (weights)"
    STATE_BINARY = "a .solverstate"
    BLOB_BINARY = "a .binaryproto (a mean or another array)"
    SOLVER_BINARY = "a solver in binary form"
    BINARY = "a binary file of unknown kind"


_MAGIC = (
    (b"\x89HDF\r\n\x1a\n", Kind.HDF5),
    (b"\x89PNG", Kind.IMAGE),
    (b"\xff\xd8\xff", Kind.IMAGE),
    (b"GIF8", Kind.IMAGE),
    (b"BM", Kind.IMAGE),
    (b"\x93NUMPY", Kind.NUMPY),
    (b"PK\x03\x04", Kind.ARCHIVE),
    (b"\x1f\x8b", Kind.ARCHIVE),
    (b"BZh", Kind.ARCHIVE),
    (b"\xfd7zXZ", Kind.ARCHIVE),
)
_TEXT_MAGIC = (
    (b"version https://git-lfs", Kind.LFS_POINTER),
    (b"<!doctype html", Kind.WEB_PAGE),
    (b"<html", Kind.WEB_PAGE),
)
_LMDB_MAGIC = b"\xde\xc0\xef\xbe"
_LMDB_MAGIC_AT = 16
_HEAD = 65536


def is_text(head: bytes) -> bool:
    """Tell whether `head`, the beginning of a file, is text in any encoding that keeps ASCII."""
    control = sum(byte < 32 and byte not in (9, 10, 11, 12, 13) for byte in head)
    return control == 0


def kind_of(path: str | Path) -> Kind:
    """Return what the file `path` holds, from its content alone.

    Raises:
        OSError: the file cannot be read.
    """
    path = Path(path)
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head:
        return Kind.EMPTY
    if head[_LMDB_MAGIC_AT : _LMDB_MAGIC_AT + 4] == _LMDB_MAGIC:
        return Kind.LMDB
    if is_text(head):
        return _text_kind(head)
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    try:
        return _binary_kind(top_level_fields(path))
    except WireError as error:
        fields = error.args[1]
        return _binary_kind(fields) if len(fields) > 1 else Kind.BINARY


def _text_kind(head: bytes) -> Kind:
    for start, kind in _TEXT_MAGIC:
        if head.lstrip().lower().startswith(start):
            return kind
    text = re.sub(rb"#[^\n]*", b"", head)
    depth = 0
    names = set()
    for match in re.finditer(rb'"(?:\\.|[^"\\\n])*"|([{}])|([A-Za-z_]\w*)(?=\s*[:{\[])', text):
        if match.group(1):
            depth += 1 if match.group(1) == b"{" else -1
        elif match.group(2) and depth == 0:
            names.add(match.group(2).decode())
    net = names & {field.name for field in caffe_pb2.NetParameter.DESCRIPTOR.fields}
    solver = names & {field.name for field in caffe_pb2.SolverParameter.DESCRIPTOR.fields}
    # Words like `type:` and `name:` stand in many a text; a prototxt has few others.
    if len(net) == len(solver) or max(len(net), len(solver)) <= len(names - net - solver):
        return Kind.TEXT
    return Kind.NET_TEXT if len(net) > len(solver) else Kind.SOLVER_TEXT


def _binary_kind(fields: set[tuple[int, int]]) -> Kind:
    """Name the message that top-level `fields`, as (number, wire type), fit."""
    blob = {(i, wire.VARINT) for i in (1, 2, 3, 4)} | {(i, wire.BYTES) for i in (5, 6, 7, 8, 9)}
    blob |= {(i, wire.FIXED32) for i in (5, 6)} | {(i, wire.FIXED64) for i in (8, 9)}
    state = {
        (1, wire.VARINT),
        (2, wire.BYTES),
        (3, wire.BYTES),
        (4, wire.VARINT),
        (1000, wire.BYTES),
    }
    net = {(i, wire.BYTES) for i in (1, 2, 3, 4, 6, 8, 100)} | {(i, wire.VARINT) for i in (4, 5, 7)}
    solver_only = {(5, wire.FIXED32), (7, wire.VARINT), (24, wire.BYTES), (25, wire.BYTES)}
    has_data = bool(fields & {(i, kind) for i in (5, 7, 8) for kind in (wire.BYTES, wire.FIXED32)})
    if (100, wire.BYTES) in fields:
        return Kind.NET_BINARY
    if fields <= state and fields & {(1, wire.VARINT), (3, wire.BYTES)}:
        return Kind.STATE_BINARY
    if fields <= blob and has_data:
        return Kind.BLOB_BINARY
    if fields <= net and fields & {(1, wire.BYTES), (2, wire.BYTES)}:
        return Kind.NET_BINARY
    if len(fields & solver_only) > 1:
        return Kind.SOLVER_BINARY
    return Kind.BINARY


def top_level_fields(path: str | Path) -> set[tuple[int, int]]:
    """Scan the protocol buffer in file `path`, payloads unread.

    Returns:
        The (field number, wire type) pairs that occur at the top level.

    Raises:
        WireError: what is wrong and at which byte; args[1] holds the fields found before.
        OSError: the file cannot be read.
    """
    found: set[tuple[int, int]] = set()
    with Path(path).open("rb") as stream:
        if not stream.seek(0, 2):
            return found
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                found.update((field.number, field.wire) for field in wire.fields(data))
            except WireError as error:
                raise WireError(error.args[0], found) from None
    return found


def require_file(path: str | Path, what: str) -> Path:
    """Return `path` if a file lies there.

    Args:
        path: where the user says it is.
        what: what it should be, for the message: "net", "solver", "weights", ...

    Raises:
        FileNotFoundError: nothing is there; says which path from which working directory.
        ValueError: a folder is there, or the file is empty.
    """
    found = Path(path)
    if not found.exists():
        where = "" if found.is_absolute() else f" (working directory {Path.cwd()})"
        raise FileNotFoundError(f"{what} file '{path}' does not exist{where}")
    if found.is_dir():
        raise ValueError(f"{what} file expected, but '{path}' is a folder")
    if found.stat().st_size == 0:
        raise ValueError(f"{what} file '{path}' is empty")
    return found


def wrong_kind(path: str | Path, wanted: str, found: Kind, advice: str = "") -> ValueError:
    """Return the error for a file of another kind than `wanted`."""
    tail = f"; {advice}" if advice else ""
    return ValueError(f"'{path}' is {found.value}, but {wanted} was expected{tail}")
