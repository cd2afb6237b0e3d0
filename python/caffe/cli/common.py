"""Flags and checks that several subcommands share."""

from __future__ import annotations

from collections.abc import Sequence

from caffe import log
from caffe.cli.flags import Flag, Flags, UsageError
from caffe.file_kind import require_file
from caffe.mode import set_mode_gpu

SOLVER = Flag("solver", "", "solver prototxt")
MODEL = Flag("model", "", "net prototxt")
WEIGHTS = Flag("weights", "", ".caffemodel files to start from, separated by commas")
GPU = Flag("gpu", "", "ids of GPUs, or all; this build runs on the CPU")
ITERATIONS = Flag("iterations", 50, "number of iterations")
LEVEL = Flag("level", 0, "level of the net, for include and exclude rules")
BACKEND = Flag("backend", "lmdb", "kind of database", ("lmdb", "leveldb"))
OVERWRITE = Flag("overwrite", False, "replace what is there")
MEMORY_LIMIT = Flag(
    "memory_limit", "", "most memory that training may take, such as 2G; excludes mode NONE"
)
STRICT = Flag("strict", False, "stop at the first image that cannot be read")
STAGE = Flag("stage", "", "stages of the net, separated by commas")
_MOST_SHOWN = 20  # skipped files


def required(flags: Flags, name: str, what: str) -> str:
    """Return the value of a flag that must name a file, and make sure that the file is there.

    Raises:
        UsageError: the flag was not given.
        FileNotFoundError, ValueError: there is no such file.
    """
    path = flags.text(name)
    if not path:
        raise UsageError(f"flag -{name} is needed: {what}")
    require_file(path, name)
    return path


def no_arguments(flags: Flags) -> None:
    """Refuse words that are no flags.

    Raises:
        UsageError: there are some.
    """
    if flags.arguments:
        raise UsageError(f"unexpected argument '{flags.arguments[0]}'; flags start with a dash")


def warn_about_gpu(flags: Flags) -> None:
    """Say that -gpu does nothing in a CPU build; once, whoever else asks for the GPU."""
    if flags.text("gpu"):
        set_mode_gpu()


def positive(flags: Flags, name: str) -> int:
    """Return a flag's value, which must be 1 or more.

    Raises:
        UsageError: it is not.
    """
    value = flags.number(name)
    if value < 1:
        raise UsageError(f"flag -{name} is {value}, needs to be 1 or more")
    return value


def arguments(flags: Flags, count: int, usage: str) -> list[str]:
    """Return the words that are no flags, of which there must be so many.

    Raises:
        UsageError: another number of them.
    """
    if len(flags.arguments) != count:
        raise UsageError(f"{len(flags.arguments)} arguments given, needs {count}: {usage}")
    return flags.arguments


def report_skipped(skipped: Sequence[str], total: int) -> None:
    """Warn of images that were left out, the first ones by name.

    Args:
        skipped: a line each: which, and why.
        total: images there were.
    """
    for reason in skipped[:_MOST_SHOWN]:
        log.warning(f"Skipped {reason}")
    if skipped:
        log.warning(f"Skipped {len(skipped)} of {total} images; -strict stops at the first")


def image_size(flags: Flags) -> tuple[int, int] | None:
    """Return -resize_height and -resize_width; None where neither is given.

    Raises:
        UsageError: one without the other.
    """
    height, width = flags.number("resize_height"), flags.number("resize_width")
    if (height > 0) != (width > 0):
        raise UsageError("give both -resize_height and -resize_width, or neither")
    return (height, width) if height > 0 else None
