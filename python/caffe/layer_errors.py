"""Puts the name and type of a layer in front of what goes wrong in it."""

from __future__ import annotations

from caffe._core import Error
from caffe.graph import Node


def _where(node: Node) -> str:
    return f"layer '{node.name}' ({node.type or 'no type'})"


class LayerErrors:
    """Puts the layer's name and type in front of what its code complains about.

    What a user's own Python layer raises goes through as it is, with a note that names the layer.
    """

    def __init__(self, node: Node, *, users_code: bool = False) -> None:
        """Name `node` in what goes wrong within the block; `users_code`: it may run a user's."""
        self.node = node
        self._users_code = users_code and node.type == "Python"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        where = _where(self.node)
        if not isinstance(error, Exception) or _names_layer(error):
            return
        if self._users_code:
            _set_note(error, f"in {where}")
        elif isinstance(error, MemoryError):
            raise _named(Error(f"{where}: out of memory: {error}")) from error
        elif type(error) in _OUR_ERRORS:
            raise _named(type(error)(f"{where}: {error}")) from error


#: What layers of our own raise; others, from whatever depth, keep their type and message.
_OUR_ERRORS = (
    ValueError,
    Error,
    RuntimeError,
    OSError,
    FileNotFoundError,
    PermissionError,
    ImportError,
    AttributeError,
)


def _names_layer(error: Exception) -> bool:
    return hasattr(error, "caffe_layer")


def _named(error: Exception) -> Exception:
    error.caffe_layer = True  # type: ignore[attr-defined]
    return error


def _set_note(error: Exception, note: str) -> None:
    """Show `note` under the traceback; Python has add_note() from 3.11 on."""
    _named(error)
    error.__notes__ = [*getattr(error, "__notes__", ()), note]
