"""Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) from Debian's package dataset-fashion-mnist."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGE = "dataset-fashion-mnist"
INSTALLED = Path("/usr/share/datasets/fashion-mnist")
_FIRST_FILE = "train-images-idx3-ubyte"


def find_source(source: str | Path | None = None) -> Path:
    """Return a folder with the four idx files.

    Args:
        source: a folder given by the user; else the installed package, else a copy in the user's
            cache, else the package downloaded and unpacked there, which needs no root.

    Raises:
        FileNotFoundError: `source` is no folder, or there is no way to get the package.
        RuntimeError: download or unpacking failed.
    """
    if source is not None:
        folder = Path(source)
        if not folder.is_dir():
            raise FileNotFoundError(f"'{source}' is no folder")
        return folder
    cache = cache_folder()
    for folder in (INSTALLED, cache):
        if folder.is_dir() and any(folder.rglob(f"{_FIRST_FILE}*")):
            return folder
    return download(cache)


def cache_folder() -> Path:
    """Return where the unpacked package lies: below XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "comet" / "fashion-mnist"


def download(target: Path) -> Path:
    """Fetch the package with apt-get and unpack it into `target`, without root.

    Returns:
        `target`, complete.

    Raises:
        FileNotFoundError: this is no Debian: apt-get or dpkg-deb are missing.
        RuntimeError: one of them failed; with what it said.
    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise FileNotFoundError(
                f"Fashion-MNIST is not installed and {program} is missing to fetch it; give a "
                "folder with the four idx files as -source"
            )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        # As root, apt-get downloads as another user, who must be able to write here.
        Path(work).chmod(0o777)
        _call(["apt-get", "download", PACKAGE], work)
        packages = list(Path(work).glob(f"{PACKAGE}_*.deb"))
        if len(packages) != 1:
            raise RuntimeError(f"apt-get download {PACKAGE} left no package behind")
        unpacked = Path(work) / "unpacked"
        _call(["dpkg-deb", "-x", str(packages[0]), str(unpacked)], work)
        if target.exists():
            shutil.rmtree(target)
        (unpacked / INSTALLED.relative_to("/")).rename(target)
    return target


def _call(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise RuntimeError(
            f"'{' '.join(command[:3])}' failed: {said}; is the package list current "
            "(apt-get update)? Or give a folder with the four idx files as -source"
        )
