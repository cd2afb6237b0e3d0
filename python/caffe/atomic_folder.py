"""Folders, and sets of files, that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def refuse_existing(paths: Sequence[Path]) -> None:
    """Raise FileExistsError where something lies at one of the paths."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise FileExistsError(
                f"'{path}' exists already; remove it, or allow it to be overwritten (-overwrite)"
            )


def part_folder(path: Path) -> Path:
    """Make a hidden folder beside `path`, whose parents are made too, to be moved into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))


def make_public(folder: Path) -> None:
    """Give a folder of mkdtemp's, which is private, the mode that other folders get."""
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)


def move_into_place(made: Path, target: Path) -> None:
    """Let `made`, on the same disk, take the place of `target`, a file, folder or nothing.

    What lies at `target` is first moved aside, and back if that fails or is interrupted.
    """
    if not (target.exists() or target.is_symlink()):
        made.rename(target)
        return
    aside = part_folder(target)
    try:
        target.rename(aside / target.name)
        try:
            made.rename(target)
        except BaseException:
            (aside / target.name).rename(target)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def staged(out: Path, names: Sequence[str], overwrite: bool) -> Iterator[Path]:
    """Give a folder to make files and folders in; those named then move to `out`, all or none.

    Args:
        out: folder of what is made; made where missing.
        names: what will be made; names that are not made do no harm.
        overwrite: replace what lies there, when all is made.

    Raises:
        FileExistsError: one of the names is there already.
    """
    if not overwrite:
        refuse_existing([out / name for name in names])
    fresh = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    part = part_folder(out / "making")
    try:
        yield part
        for name in names:
            if (part / name).exists():
                move_into_place(part / name, out / name)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if fresh and not any(out.iterdir()):
            out.rmdir()
