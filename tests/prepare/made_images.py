"""Small folders of images in the layouts of data sets, with all that goes wrong in real ones."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from caffe.data.datum import Record, parse_record
from caffe.data.lmdb_source import LmdbSource


def colours(seed, height=12, width=10):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def image_bytes(form="JPEG", mode="RGB", seed=0, **options):
    file = io.BytesIO()
    Image.fromarray(colours(seed)).convert(mode).save(file, form, **options)
    return file.getvalue()


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def flat_bytes(value: int, form="PNG", size=(9, 7)):
    """An image of one colour, which resizing keeps."""
    file = io.BytesIO()
    Image.new("RGB", size, (value, value, value)).save(file, form)
    return file.getvalue()


def write_good(root: Path, classes, count: int) -> None:
    for label, name in enumerate(classes):
        for i in range(count):
            write(root / name / f"{i}.png", flat_bytes(10 * label + i))


def write_messy(root: Path) -> tuple[list[str], dict[str, str]]:
    """Make a folder of classes with hard cases.

    Returns the paths of images that can be read, and for each thing that cannot: path -> reason.
    """
    sixteen = io.BytesIO()
    Image.fromarray(np.arange(120, dtype=np.uint16).reshape(12, 10) * 500).save(sixteen, "PNG")
    animation = io.BytesIO()
    frames = [Image.fromarray(colours(seed)) for seed in range(3)]
    frames[0].save(animation, "GIF", save_all=True, append_images=frames[1:])
    good = {
        "cats/a cat with  blanks.jpg": image_bytes(),
        "cats/UPPER.JPEG": image_bytes(seed=1),
        "cats/same.png": image_bytes("PNG", seed=2),
        "dogs/same.png": image_bytes("PNG", seed=3),
        "cats/alpha.png": image_bytes("PNG", "RGBA"),
        "cats/gray.jpg": image_bytes(mode="L"),
        "cats/cmyk.jpg": image_bytes(mode="CMYK"),
        "cats/16 bit.png": sixteen.getvalue(),
        "cats/animation.gif": animation.getvalue(),
        "dogs/hündchen-犬.jpg": image_bytes(seed=4),
        os.fsdecode(b"dogs/latin-\xfc.jpg"): image_bytes(seed=5),
        "dogs/nested/deeper/d.png": image_bytes("PNG", seed=6),
        "dogs/no ending": image_bytes(seed=7),
    }
    bad = {
        "cats/truncated.jpg": (image_bytes()[:-200], "truncated"),
        "cats/empty.jpg": (b"", "it is empty"),
        "dogs/text.jpg": (b"this is no image\n", "no known format"),
    }
    for path, content in good.items():
        write(root / path, content)
    for path, (content, _) in bad.items():
        write(root / path, content)
    (root / "empty").mkdir()
    write(root / ".DS_Store", b"junk")
    write(root / "cats/.hidden.jpg", image_bytes())
    write(root / ".git/x.jpg", image_bytes())
    write(root / "stray.jpg", image_bytes())
    (root / "dogs/link.png").symlink_to("same.png")
    (root / "dogs/dangling.png").symlink_to("nowhere.png")
    (root / "dogs/circle").symlink_to("..", target_is_directory=True)
    (root / "dogs/itself").symlink_to("itself")
    outside = write(root.parent / "outside/o.png", image_bytes("PNG", seed=8))
    (root / "foxes").symlink_to(outside.parent, target_is_directory=True)
    os.mkfifo(root / "dogs/pipe.jpg")
    reasons = {path: reason for path, (_, reason) in bad.items()}
    reasons |= {
        "stray.jpg": "lies in no folder of a class",
        "dogs/dangling.png": "a link to nothing",
        "dogs/itself": "a link to nothing",
        "dogs/circle": "a link to a folder that it lies in",
        "dogs/pipe.jpg": "neither a file nor a folder",
        "class 'empty'": "has no images",
    }
    return sorted([*good, "dogs/link.png", "foxes/o.png"]), reasons


def tarred(root: Path, target: Path, mode="w") -> Path:
    """Pack what is in `root`, as `tar -C root -cf target .` would."""
    with tarfile.open(target, mode) as archive:
        for path in sorted(root.iterdir()):
            archive.add(path, path.name)
    return target


def records(path: Path) -> dict[str, Record]:
    source = LmdbSource(path)
    found = [source.read() for _ in range(len(source))]
    source.close()
    return {os.fsdecode(key): parse_record(value) for key, value in found}


def paths(found: dict[str, Record]) -> list[str]:
    """The paths in the keys, which begin with eight digits and an underscore."""
    return [key[9:] for key in found]


def left_behind(folder: Path) -> list[str]:
    """Temporary files and folders."""
    return [str(path) for path in folder.rglob("*") if path.name.startswith(".")]
