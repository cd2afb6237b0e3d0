"""Trees of files to make databases of: folders, and tar files that need not be unpacked."""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from caffe.progress import Progress

_OTHERS_LITTER = ("__MACOSX", "Thumbs.db", "desktop.ini")
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")  # gzip, bzip2, xz, zstd
_MOST_LINKS = 8  # from one to the next
_MIB = 1 << 20


class ImageTree(ABC):
    """The files of a tree; to be used in a `with` statement.

    Hidden files and folders (those that begin with a dot, and what other systems strew about) do
    not belong to it.

    Attributes:
        root: the folder or tar file.
        files: paths below the root, with slashes, sorted.
        folders: the folders right below the root, sorted; they may be empty.
        skipped: a line for each thing that cannot be read, such as a link to nothing: which, why.
        hidden: how many hidden files and folders were passed over.
    """

    def __init__(self, root: Path) -> None:
        """Have no files yet."""
        self.root = root
        self.files: list[str] = []
        self.folders: list[str] = []
        self.skipped: list[str] = []
        self.hidden = 0

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return a file's content; several threads may. OSError where it cannot be read."""

    def where(self, path: str) -> str:
        """Return what a file is called in messages."""
        return f"'{self.root}/{path}'"

    def __enter__(self) -> ImageTree:
        """Return the tree."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what is open."""
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""


def open_tree(path: str | Path, below: str = "") -> ImageTree:
    """Return the files in a folder or an uncompressed tar file.

    Links are followed, round trips excepted. Tar files within a tar file count as folders.

    Args:
        path: the folder or file.
        below: if there is a folder of this name right in it, that is the root.

    Raises:
        FileNotFoundError: nothing lies at `path`.
        ValueError: neither a folder nor a tar file, a damaged one, or one without files.
    """
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"'{path}' does not exist; needed is a folder or a tar file")
    if root.is_dir():
        tree: ImageTree = _FolderTree(root / below if (root / below).is_dir() else root)
    else:
        tree = _TarTree(root, below)
    if not tree.files:
        tree.close()
        raise ValueError(f"'{path}' has no files{'; '.join(['', *tree.skipped[:1]])}")
    return tree


class _FolderTree(ImageTree):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._walk(str(root), "", ())
        self.files.sort()
        self.folders.sort()

    def _walk(self, folder: str, prefix: str, ancestors: tuple[tuple[int, int], ...]) -> None:
        status = os.stat(folder)  # noqa: PTH116 - a million Path objects would be slow
        above = (*ancestors, (status.st_dev, status.st_ino))
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            path = prefix + entry.name
            if _is_hidden(entry.name):
                self.hidden += 1
                continue
            try:
                status = entry.stat()
                if stat.S_ISDIR(status.st_mode):
                    if (status.st_dev, status.st_ino) in above:
                        self._skip(path, "a link to a folder that it lies in")
                        continue
                    if not prefix:
                        self.folders.append(entry.name)
                    self._walk(entry.path, path + "/", above)
                elif stat.S_ISREG(status.st_mode):
                    self.files.append(path)
                else:
                    self._skip(path, "neither a file nor a folder")
            except OSError as error:
                if entry.is_symlink() and not Path(entry.path).exists():
                    self._skip(path, f"a link to nothing ({error.strerror})")
                else:
                    self._skip(path, error.strerror or str(error))

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(f"{self.where(path)}: {reason}")

    def read(self, path: str) -> bytes:
        """Return a file's content; OSError where it cannot be read."""
        return Path(f"{self.root}/{path}").read_bytes()

    def close(self) -> None:
        """Do nothing: no file is open."""


class _Span(NamedTuple):
    offset: int
    size: int


class _TarTree(ImageTree):
    """Files are read from where they lie in the archive, in any order and by several threads."""

    def __init__(self, root: Path, below: str) -> None:
        super().__init__(root)
        self._spans: dict[str, _Span] = {}
        self._links: dict[str, str] = {}
        self._dirs: set[str] = set()
        with root.open("rb") as file:
            start = file.read(max(map(len, _COMPRESSED)))
        if start.startswith(_COMPRESSED):
            raise ValueError(
                f"'{root}' is compressed, so that its files cannot be read where they lie: "
                "unpack it (tar -xf) and give the folder"
            )
        try:
            with tarfile.open(root, "r:") as archive:
                self._scan(archive, "", 0, root.stat().st_size)
        except tarfile.TarError as error:
            raise ValueError(f"'{root}' is no tar file, or is cut off: {error}") from error
        for path in self._links:
            span = self._follow(path)
            if span is None:
                self.skipped.append(f"{self.where(path)}: a link to no file in the archive")
            else:
                self._spans[path] = span
        prefix = f"{below}/"
        if below and any(path.startswith(prefix) for path in self._spans):
            self._prefix = prefix
        else:
            self._prefix = ""
        at = len(self._prefix)
        self.files = sorted(path[at:] for path in self._spans if path.startswith(self._prefix))
        inside = [path for path in self._dirs if path.startswith(self._prefix)]
        folders = {path[at:].split("/")[0] for path in inside}
        folders |= {path.split("/")[0] for path in self.files if "/" in path}
        self.folders = sorted(folders - {"", "."})
        self._file = root.open("rb")

    def _scan(self, archive: tarfile.TarFile, prefix: str, begin: int, size: int) -> None:
        with Progress(size // _MIB, "MiB listed") as progress:
            for member in archive:
                progress.update(member.offset // _MIB)
                archive.members = []  # type: ignore[attr-defined]  # a list of a million is not needed
                path = prefix + posixpath.normpath(member.name).lstrip("/")
                if any(_is_hidden(part) for part in path.split("/")):
                    self.hidden += member.isfile()
                elif member.isdir():
                    self._dirs.add(path)
                elif member.issym():
                    target = posixpath.join(posixpath.dirname(path), member.linkname)
                    self._links[path] = posixpath.normpath(target)
                elif member.islnk():
                    self._links[path] = prefix + posixpath.normpath(member.linkname)
                elif member.isreg() and not member.issparse() and path.endswith(".tar"):
                    inner = archive.extractfile(member)
                    assert inner is not None  # it is a file
                    with tarfile.open(fileobj=inner, mode="r:") as nested:
                        at = begin + member.offset_data
                        self._scan(nested, path[: -len(".tar")] + "/", at, member.size)
                elif member.isreg() and not member.issparse():
                    self._spans[path] = _Span(begin + member.offset_data, member.size)
                else:
                    self.skipped.append(f"{self.where(path)}: neither a file nor a folder")

    def _follow(self, path: str) -> _Span | None:
        for _ in range(_MOST_LINKS):
            if path not in self._links:
                break
            path = self._links[path]
        return self._spans.get(path)

    def read(self, path: str) -> bytes:
        """Return a file's content; OSError where the archive is cut off."""
        span = self._spans[self._prefix + path]
        content = os.pread(self._file.fileno(), span.size, span.offset)
        if len(content) != span.size:
            raise OSError(f"the archive is cut off: {len(content)} of {span.size} bytes are there")
        return content

    def close(self) -> None:
        """Close the archive."""
        self._file.close()


def _is_hidden(name: str) -> bool:
    return (name.startswith(".") and name not in (".", "..")) or name in _OTHERS_LITTER
