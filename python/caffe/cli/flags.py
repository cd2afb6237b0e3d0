"""Command line flags as Caffe's users write them.

One or two dashes; `-flag value` and `-flag=value`; a boolean flag alone, with `=true` or `=false`,
or as `-noflag`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Union

from caffe.names import suggestion

Value = Union[str, int, float, bool]

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")


class UsageError(ValueError):
    """A command line that makes no sense; the message says what was expected."""


@dataclass(frozen=True)
class Flag:
    """One flag: its default gives its type; `choices` limits its values."""

    name: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()


@dataclass
class Flags:
    """The values of a command's flags, and what stood between them."""

    values: dict[str, Value]
    given: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        """Return a flag's value as text."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """Return a whole-number flag's value."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def on(self, name: str) -> bool:
        """Return a boolean flag's value."""
        return bool(self.values[name])

    def words(self, name: str) -> list[str]:
        """Return the parts of a comma-separated value; none for an empty one."""
        return [word for word in (part.strip() for part in self.text(name).split(",")) if word]


def parse(arguments: Sequence[str], known: Sequence[Flag]) -> Flags:
    """Read a command line.

    Args:
        arguments: what follows the subcommand.
        known: the flags it takes.

    Raises:
        UsageError: an unknown flag (the nearest is named), or a value that is missing or no value.
    """
    by_name = {flag.name: flag for flag in known}
    flags = Flags({flag.name: flag.default for flag in known})
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            flags.arguments += rest
            break
        if not _looks_like_flag(word):
            flags.arguments.append(word)
            continue
        name, equals, text = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        flag = by_name.get(name)
        negated = by_name.get(name[2:]) if name.startswith("no") and not equals else None
        if flag is None and negated is not None and isinstance(negated.default, bool):
            flags.values[negated.name] = False
            flags.given.add(negated.name)
            continue
        if flag is None:
            raise UsageError(f"unknown flag '{word.split('=')[0]}'{_suggest(name, by_name)}")
        if isinstance(flag.default, bool):
            text = text if equals else "true"
        elif not equals:
            if not rest:
                raise UsageError(f"flag -{name} needs a value: {flag.help}")
            text = rest.pop(0)
        flags.values[name] = _convert(flag, text)
        flags.given.add(name)
    return flags


def describe(known: Sequence[Flag]) -> str:
    """Return a table of flags for the help text, a line each."""
    lines = []
    for flag in known:
        default = "" if flag.default in ("", False) else f" (default {flag.default})"
        choices = f" [{'|'.join(flag.choices)}]" if flag.choices else ""
        lines.append(f"  -{flag.name:<20} {flag.help}{choices}{default}")
    return "\n".join(lines)


def _looks_like_flag(word: str) -> bool:
    name = word.lstrip("-")
    return word.startswith("-") and bool(name) and not name[0].isdigit() and name[0] != "."


def _suggest(name: str, known: dict[str, Flag]) -> str:
    return suggestion(name, known, most=20).replace("'", "'-", 1) if known else "; it takes none"


def _convert(flag: Flag, text: str) -> Value:
    value: Value = text
    try:
        if isinstance(flag.default, bool):
            if text.lower() not in _TRUE + _FALSE:
                raise ValueError
            value = text.lower() in _TRUE
        elif isinstance(flag.default, int):
            value = int(text)
        elif isinstance(flag.default, float):
            value = float(text)
    except ValueError:
        kinds = {bool: "true or false", int: "a whole number", float: "a number"}
        kind = kinds[type(flag.default)]
        raise UsageError(f"flag -{flag.name} needs {kind}, got '{text}'") from None
    if flag.choices and value not in flag.choices:
        raise UsageError(
            f"flag -{flag.name} is '{text}', but must be one of {', '.join(flag.choices)}"
        )
    return value
