"""Reading nets, solvers, weights and solver states, text and binary.

Whatever is wrong with a file becomes one line: a `FileNotFoundError` for a path that leads nowhere,
a `ValueError` for bad content. Text errors start with `path:line:column:`. Old formats are
upgraded on the way (see `caffe.upgrade`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar, cast

from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.message import DecodeError, Message

from caffe import upgrade
from caffe.file_kind import Kind, kind_of, require_file, top_level_fields, wrong_kind
from caffe.names import nearest, suggestion
from caffe.proto import caffe_pb2
from caffe.wire import WireError

_M = TypeVar("_M", bound=Message)

_WANTED = {
    Kind.NET_TEXT: ("net", "a net prototxt"),
    Kind.SOLVER_TEXT: ("solver", "a solver prototxt"),
    Kind.NET_BINARY: ("weights", "a .caffemodel (weights)"),
    Kind.STATE_BINARY: ("solver state", "a .solverstate"),
    Kind.BLOB_BINARY: ("mean", "a .binaryproto"),
}
_ADVICE = {
    (Kind.NET_TEXT, Kind.SOLVER_TEXT): "give the file named in its 'net:' field",
    (Kind.NET_TEXT, Kind.NET_BINARY): "give the net's .prototxt here and this file as the weights",
    (Kind.SOLVER_TEXT, Kind.NET_TEXT): "give the solver whose 'net:' field names this file",
    (Kind.NET_BINARY, Kind.STATE_BINARY): "give the .caffemodel that was written with it",
    (Kind.STATE_BINARY, Kind.NET_BINARY): "give the .solverstate that was written with it, "
    "or start from weights alone with -weights",
    (Kind.NET_BINARY, Kind.HDF5): "HDF5 weights have names that end in .h5",
    (Kind.STATE_BINARY, Kind.HDF5): "HDF5 solver states have names that end in .h5",
}


def read_net(path: str | Path) -> caffe_pb2.NetParameter:
    """Read a net from a prototxt file, upgraded to the current format.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a net prototxt, or an error in it (`path:line:column: message`).
    """
    net = read_net_as_written(path)
    upgrade.upgrade_net(net, str(path))
    return net


def read_net_as_written(path: str | Path) -> caffe_pb2.NetParameter:
    """Read a net from a prototxt file, in whatever format it is; errors as read_net()."""
    net = caffe_pb2.NetParameter()
    _parse(_read_text(path, Kind.NET_TEXT), net, str(path), Kind.NET_TEXT)
    return net


def parse_net(text: str, name: str = "<text>") -> caffe_pb2.NetParameter:
    """Parse the text of a net, upgraded to the current format; `name` starts error messages.

    Raises:
        ValueError: an error in the text (`name:line:column: message`).
    """
    net = caffe_pb2.NetParameter()
    _parse(text, net, name, Kind.NET_TEXT)
    upgrade.upgrade_net(net, name)
    return net


def read_solver(path: str | Path) -> caffe_pb2.SolverParameter:
    """Read a solver from a prototxt file, upgraded to the current format.

    As in BVLC Caffe, a snapshot_prefix that is missing is the file's path without its ending, and
    one that is a folder is that name in the folder.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a solver prototxt, or an error in it (`path:line:column: message`).
    """
    solver = read_solver_as_written(path)
    upgrade.upgrade_solver(solver, str(path))
    if not solver.snapshot_prefix:
        solver.snapshot_prefix = str(Path(path).with_suffix(""))
    elif Path(solver.snapshot_prefix).is_dir():
        solver.snapshot_prefix = str(Path(solver.snapshot_prefix) / Path(path).stem)
    return solver


def read_solver_as_written(path: str | Path) -> caffe_pb2.SolverParameter:
    """Read a solver from a prototxt file, in whatever format it is; errors as read_solver()."""
    solver = caffe_pb2.SolverParameter()
    _parse(_read_text(path, Kind.SOLVER_TEXT), solver, str(path), Kind.SOLVER_TEXT)
    return solver


def parse_solver(text: str, name: str = "<text>") -> caffe_pb2.SolverParameter:
    """Parse the text of a solver, upgraded to the current format; `name` starts error messages.

    Raises:
        ValueError: an error in the text (`name:line:column: message`).
    """
    solver = caffe_pb2.SolverParameter()
    _parse(text, solver, name, Kind.SOLVER_TEXT)
    upgrade.upgrade_solver(solver, name)
    return solver


def read_binary_net(path: str | Path) -> caffe_pb2.NetParameter:
    """Read a .caffemodel, upgraded to the current format.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file of another kind, or one that was cut off.
    """
    net = read_binary_net_as_written(path)
    upgrade.upgrade_net(net, str(path))
    return net


def read_binary_net_as_written(path: str | Path) -> caffe_pb2.NetParameter:
    """Read a .caffemodel, in whatever format it is; errors as read_binary_net()."""
    return _read_binary(path, caffe_pb2.NetParameter(), Kind.NET_BINARY)


def read_binary_state(path: str | Path) -> caffe_pb2.SolverState:
    """Read a .solverstate.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file of another kind, or one that was cut off.
    """
    return _read_binary(path, caffe_pb2.SolverState(), Kind.STATE_BINARY)


def read_blob(path: str | Path) -> caffe_pb2.BlobProto:
    """Read a .binaryproto: one array, such as a mean image.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file of another kind, or one that was cut off.
    """
    return _read_binary(path, caffe_pb2.BlobProto(), Kind.BLOB_BINARY)


def _read_text(path: str | Path, wanted: Kind) -> str:
    what, expected = _WANTED[wanted]
    file = require_file(path, what)
    kind = kind_of(file)
    if kind not in (Kind.TEXT, Kind.NET_TEXT, Kind.SOLVER_TEXT):
        raise wrong_kind(path, expected, kind, _ADVICE.get((wanted, kind), ""))
    # Comments in any old encoding do no harm: only strings must be UTF-8, and the parser says so.
    return file.read_bytes().decode("utf-8-sig", errors="surrogateescape")


def check_binary(path: str | Path, wanted: Kind) -> Path:
    """Return `path` if a whole protocol buffer of this kind lies there; what is in it may be wrong.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file of another kind, or one that was cut off.
    """
    what, expected = _WANTED[wanted]
    file = require_file(path, what)
    kind = kind_of(file)
    if kind not in (wanted, Kind.BINARY):
        raise wrong_kind(path, expected, kind, _ADVICE.get((wanted, kind), ""))
    try:
        top_level_fields(file)
    except WireError as error:
        tail = "; was the copy or download complete?" if "cut off" in error.args[0] else ""
        raise ValueError(f"'{path}' is not {expected}: {error.args[0]}{tail}") from error
    if kind is not wanted:
        raise wrong_kind(path, expected, kind)
    return file


def _read_binary(path: str | Path, message: _M, wanted: Kind) -> _M:
    file = check_binary(path, wanted)
    try:
        message.ParseFromString(file.read_bytes())
    except DecodeError as error:
        expected = _WANTED[wanted][1]
        raise ValueError(f"'{path}' is {expected} with damaged content: {error}") from error
    return message


def _parse(text: str, message: Message, name: str, wanted: Kind) -> None:
    """Fill `message` from `text`; errors become one line that starts with name:line:column."""
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        line, column = error.GetLine() or 1, error.GetColumn() or 1
        root = cast("Descriptor", message.DESCRIPTOR)
        detail = _explain(error, text, root, wanted)
        raise ValueError(f"{name}:{line}:{column}: {detail}") from None
    missing: list[str] = []
    message.IsInitialized(missing)  # type: ignore[call-arg]
    if missing:
        raise ValueError(f"{name}: required field '{missing[0]}' is missing")


def _explain(error: text_format.ParseError, text: str, root: Descriptor, wanted: Kind) -> str:
    raw = re.sub(r"^\d+:\d+ : ", "", str(error))
    # Newer versions of protobuf quote the whole line before the message; the position says as much.
    lines = text.splitlines()
    line = error.GetLine() or 1
    quoted = f"'{lines[line - 1]}': " if line <= len(lines) else ""
    raw = raw[len(quoted) :] if quoted and raw.startswith(quoted) else raw

    if found := re.match(r'Message type "([\w.]+)" has no field named "([^"]+)"', raw):
        return _unknown_field(_message_type(root, found[1]), found[2], root, wanted)
    found = re.match(r'Enum type "([\w.]+)" has no value \w+(?: number)? (\S+?)\.?$', raw)
    if found and found[2] == "[":
        return f"{_short(found[1])} takes one value, not a list"
    if found:
        return _unknown_value(found[1], found[2])
    if found := re.match(r'Message type "([\w.]+)" should not have multiple "(\w+)" fields', raw):
        return f"'{found[2]}' is given twice; {_short(found[1])} takes it once"
    if "surrogates not allowed" in raw:
        return "the string is not valid UTF-8"
    if "codec can't decode" in raw:
        return "the string has a backslash that starts no escape"
    if 'Expected "}"' in raw and (opened := _unclosed_brace(text)) is not None:
        return f"the '{{' of line {opened} is never closed"
    detail = raw[:1].lower() + raw[1:].rstrip(".")
    detail = "".join(c if c.isprintable() else repr(c)[1:-1] for c in detail)
    before, after = _around(lines, line, (error.GetColumn() or 1) - 1)
    field = re.search(r"(\w+)\s*:\s*(?:\[[^\[\]]*)?$", before)
    return (f"'{field[1]}': " if field else "") + detail + _hint(raw, after)


def _around(lines: list[str], line: int, column: int) -> tuple[str, str]:
    """Return the text before (of two lines) and after a place; `line` from 1, `column` from 0."""
    here = lines[line - 1] if line <= len(lines) else ""
    return "\n".join([*lines[: line - 1][-1:], here[:column]]), here[column:]


def _hint(raw: str, after: str) -> str:
    """Return advice on slips that are common, from the text where the error is."""
    if after.startswith("["):
        return "; it takes one value, not a list"
    if raw.startswith("Expected string"):
        return "; strings stand in quotes"
    if after.startswith(("//", "/*")):
        return "; comments start with #"
    if raw.startswith('Expected ":"'):
        return "; a field and its value stand as name: value"
    return ""


def _unknown_field(owner: Descriptor | None, field: str, root: Descriptor, wanted: Kind) -> str:
    if owner is None:
        return f"unknown field '{field}'"
    names = [known.name for known in owner.fields]
    if owner is root:
        other, kind = (
            (caffe_pb2.SolverParameter, Kind.SOLVER_TEXT)
            if wanted is Kind.NET_TEXT
            else (caffe_pb2.NetParameter, Kind.NET_TEXT)
        )
        if field in other.DESCRIPTOR.fields_by_name:
            advice = _ADVICE[(wanted, kind)]
            return (
                f"'{field}' is a field of {kind.value}, but {wanted.value} was expected; {advice}"
            )
    elif field in ("layer", "layers"):
        return f"{_short(owner.full_name)} has no field '{field}'; is a '}}' missing before it?"
    near = nearest(field, names)
    homes = [
        known.name
        for known in owner.fields
        if known.message_type is not None and field in known.message_type.fields_by_name
    ]
    if homes and (near is None or near.replace("_", "") != field.replace("_", "").lower()):
        where = " or ".join(f"'{home}'" for home in homes[:4])
        return f"{_short(owner.full_name)} has no field '{field}'; it belongs inside {where}"
    return f"{_short(owner.full_name)} has no field '{field}'{suggestion(field, names)}"


def _unknown_value(enum_name: str, value: str) -> str:
    enum = _enum_type(enum_name)
    names = [] if enum is None else [known.name for known in enum.values]
    return f"{_short(enum_name)} has no value {value}{suggestion(value, names)}"


def _short(full_name: str) -> str:
    return full_name[len("caffe.") :] if full_name.startswith("caffe.") else full_name


def _message_type(root: Descriptor, full_name: str) -> Descriptor | None:
    if root.full_name == full_name:
        return root
    found = root.file.message_types_by_name.get(_short(full_name).split(".")[0])
    for part in _short(full_name).split(".")[1:]:
        found = None if found is None else found.nested_types_by_name.get(part)
    return found


def _enum_type(full_name: str) -> EnumDescriptor | None:
    *path, last = _short(full_name).split(".")
    if not path:
        return caffe_pb2.DESCRIPTOR.enum_types_by_name.get(last)
    root = cast("Descriptor", caffe_pb2.NetParameter.DESCRIPTOR)
    owner = _message_type(root, ".".join(["caffe", *path]))
    return None if owner is None else owner.enum_types_by_name.get(last)


def _unclosed_brace(text: str) -> int | None:
    """Return the line of the innermost brace that is open at the end of `text`."""
    open_lines: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        for token in re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|#.*|[{}]', line):
            if token == "{":
                open_lines.append(number)
            elif token == "}" and open_lines:
                open_lines.pop()
    return open_lines[-1] if open_lines else None
