"""`caffe convert_imageset`: a list of images to a database."""

from __future__ import annotations

from caffe import log
from caffe.cli.common import BACKEND, OVERWRITE, STRICT, arguments, image_size, report_skipped
from caffe.cli.flags import Flag, Flags
from caffe.data.image_records import ImageSetOptions
from caffe.data.image_set import convert_imageset

USAGE = "caffe convert_imageset FLAGS ROOTFOLDER LISTFILE DB"
FLAGS = (
    Flag("gray", False, "one channel"),
    Flag("shuffle", False, "shuffle the order"),
    Flag("seed", 1, "of the shuffle"),
    BACKEND,
    Flag("resize_height", 0, "resize all images to this height"),
    Flag("resize_width", 0, "and to this width"),
    Flag("check_size", False, "refuse images of another size than the first"),
    Flag("encoded", False, "store image files rather than pixels"),
    Flag("encode_type", "", "their format (png, jpg); that of each file by default"),
    STRICT,
    OVERWRITE,
)


def run(flags: Flags) -> int:
    """Convert.

    Raises:
        UsageError: flags or files that make no sense.
        ImportError: a LevelDB, and plyvel is not installed.
        ValueError, OSError: what is wrong with the list, the images or the database.
    """
    root, list_file, out = arguments(flags, 3, USAGE)
    options = ImageSetOptions(
        size=image_size(flags),
        gray=flags.on("gray"),
        check_size=flags.on("check_size"),
        encoded=flags.on("encoded"),
        encode_type=flags.text("encode_type"),
    )
    done = convert_imageset(
        root,
        list_file,
        out,
        options,
        shuffle_seed=flags.number("seed") if flags.on("shuffle") else None,
        strict=flags.on("strict"),
        overwrite=flags.on("overwrite"),
        backend=flags.text("backend"),
    )
    report_skipped(done.skipped, done.count + len(done.skipped))
    log.info(f"Processed {done.count} files.")
    return 0
