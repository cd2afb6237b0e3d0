"""Lists in Matlab's .mat files. Needs scipy, the extra `matlab`."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def _load(path: str | Path, variable: str) -> Any:
    try:
        from scipy.io import loadmat  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ImportError(
            f"'{path}' is a Matlab file, which needs scipy: pip install 'comet-caffe[matlab]'; or "
            "give a text file instead"
        ) from error
    try:
        content = loadmat(path, squeeze_me=True)
    except FileNotFoundError:
        raise FileNotFoundError(f"'{path}' does not exist") from None
    except Exception as error:  # scipy raises of every kind on damaged files
        raise ValueError(f"'{path}' cannot be read as a Matlab file: {error}") from error
    if variable not in content:
        raise ValueError(f"'{path}' has no variable '{variable}'")
    return content[variable]


def read_strings(path: str | Path, variable: str) -> list[str]:
    """Return a cell array of strings.

    Raises:
        FileNotFoundError: no such file.
        ImportError: scipy is not installed.
        ValueError: no Matlab file, or it has no such variable.
    """
    return [str(text) for text in _load(path, variable).ravel()]


def read_table(path: str | Path, variable: str, key: str, value: str) -> dict[int, str]:
    """Return fields of an array of structs, whole number -> string. Raises as read_strings()."""
    rows = _load(path, variable)
    try:
        return {int(row[key]): str(row[value]) for row in rows.ravel()}
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"'{path}': '{variable}' has no fields {key} and {value}") from error
