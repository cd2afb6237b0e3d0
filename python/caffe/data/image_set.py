"""Sets of images to databases; the pixels are made in several threads."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from caffe.data.databases import WRITERS, checked_backend
from caffe.data.image_file import Pixels, decoding_thread_count, decoding_threads
from caffe.data.image_list import Entry, read_image_list
from caffe.data.image_records import ImageSetOptions, make_record
from caffe.data.mean import MeanSum
from caffe.data.record_writer import RecordWriter
from caffe.progress import Progress
from caffe.proto import caffe_pb2 as pb

_MOST_KEY_BYTES = 511  # LMDB's
_AHEAD = 2  # images a thread that may wait to be written; some 100 MiB each where they are large

A = TypeVar("A")
B = TypeVar("B")


@dataclass
class Conversion:
    """What came of a list."""

    count: int = 0  # records written
    skipped: list[str] = field(default_factory=list)  # a line a file: where, and why


def write_images(
    entries: Sequence[Entry],
    writer: RecordWriter,
    options: ImageSetOptions,
    *,
    read: Callable[[Entry], bytes],
    where: Callable[[Entry], str],
    strict: bool = False,
    mean: MeanSum | None = None,
) -> Conversion:
    """Write images to a database, in their order. The keys are number and path, as in BVLC Caffe.

    Args:
        entries: what to write; the numbers in the keys count those that are left out too.
        writer: of the database.
        options: what becomes of them.
        read: gives the content of an image's file, in several threads at once; may raise OSError.
        where: gives what an image is called in messages.
        strict: stop at the first image that cannot be read, instead of leaving it out.
        mean: the pixels of every image are added to it; they need one size then.

    Returns:
        How many records were written, and which images were left out.

    Raises:
        ValueError: no image that can be read, or sizes that differ if they are checked.
        ValueError, OSError: an unreadable image, if strict; or the database cannot be written.
    """
    done = Conversion()
    first: tuple[int, ...] | None = None

    def convert(entry: Entry) -> tuple[pb.Datum, Pixels] | OSError | ValueError:
        try:
            return make_record(read(entry), entry.label, options)
        except (OSError, ValueError) as error:
            return error

    with decoding_threads() as threads, Progress(len(entries), "images") as progress:
        for number, made in enumerate(_mapped(threads, convert, entries)):
            progress.update(number)
            entry = entries[number]
            if isinstance(made, Exception):
                reason = _reason(where(entry), made)
                if strict:
                    raise type(made)(reason) from made
                done.skipped.append(reason)
                continue
            datum, pixels = made
            first = first or pixels.shape
            if options.check_size and pixels.shape != first:
                raise ValueError(
                    f"{where(entry)} is {pixels.shape[1]}x{pixels.shape[2]}, the first image "
                    f"{first[1]}x{first[2]}; resize them to one size"
                )
            if mean is not None:
                mean.add(pixels)
            key = f"{number:08}_{entry.path}".encode(errors="surrogateescape")
            writer.put(key[:_MOST_KEY_BYTES], datum.SerializeToString())
            done.count += 1
    if not done.count:
        raise ValueError(
            f"none of the {len(entries)} images can be read; the first: {done.skipped[0]}"
            if entries
            else "there are no images"
        )
    return done


def _mapped(
    threads: ThreadPoolExecutor, function: Callable[[A], B], items: Sequence[A]
) -> Iterator[B]:
    """Yield function(item) of each in order, worked out in threads, a few of them ahead."""
    ahead = _AHEAD * decoding_thread_count()
    running: deque[Future[B]] = deque()
    try:
        for item in items:
            running.append(threads.submit(function, item))
            if len(running) >= ahead:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


def convert_imageset(
    root: str | Path,
    list_file: str | Path,
    out: str | Path,
    options: ImageSetOptions | None = None,
    *,
    shuffle_seed: int | None = None,
    strict: bool = False,
    overwrite: bool = False,
    backend: str = "lmdb",
) -> Conversion:
    """Write the images that `list_file` names, with their labels, to a database at `out`.

    The keys are the number in the list and the path, as in BVLC Caffe. The database is there when
    all is done, or not at all.

    Args:
        root: folder that the paths are relative to.
        list_file: see `read_image_list`.
        out: folder of the database.
        options: what becomes of the images.
        shuffle_seed: shuffle the order with this seed; None keeps it.
        strict: stop at the first image that cannot be read, instead of leaving it out.
        overwrite: replace a database that is there.
        backend: its kind, lmdb or leveldb.

    Returns:
        How many records were written, and which files were left out.

    Raises:
        FileNotFoundError, FileExistsError: the list is missing, or the output is there already.
        ImportError: a LevelDB, and plyvel is not installed.
        ValueError: a bad line, no image that can be read, sizes that differ if they are checked;
            if strict, an unreadable or missing image too.
    """
    entries = read_image_list(list_file)
    if shuffle_seed is not None:
        random.Random(shuffle_seed).shuffle(entries)
    with WRITERS[checked_backend(backend)](out, overwrite) as writer:
        return write_images(
            entries,
            writer,
            options or ImageSetOptions(),
            read=lambda entry: (Path(root) / entry.path).read_bytes(),
            where=lambda entry: f"{list_file}:{entry.line}: '{entry.path}'",
            strict=strict,
        )


def images_to_lmdb(
    root: str | Path,
    list_file: str | Path,
    out: str | Path,
    *,
    size: tuple[int, int] | None = None,
    gray: bool = False,
    shuffle_seed: int | None = None,
    overwrite: bool = False,
) -> int:
    """Write images of one size to an LMDB at `out`; every image must be readable.

    Arguments and errors are those of convert_imageset(), strict and with sizes checked.

    Returns:
        The number of records.
    """
    options = ImageSetOptions(size=size, gray=gray, check_size=True)
    done = convert_imageset(
        root,
        list_file,
        out,
        options,
        shuffle_seed=shuffle_seed,
        strict=True,
        overwrite=overwrite,
    )
    return done.count


def _reason(where: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{where} does not exist below the root folder"
    text = error.strerror if isinstance(error, OSError) and error.strerror else error
    return f"{where}: {text}"
