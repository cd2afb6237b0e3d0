"""Photographs for benchmarks, and batches of random crops of them.

    python benchmarks/photographs.py -out out/photographs     # fetches two dozen; 60 MB to download

They come from Debian's package mate-backgrounds and from the PyPI package scikit-image, which are
unpacked, not installed. Where they are missing, crops() takes Fashion-MNIST enlarged, and says so.
"""

from __future__ import annotations

import argparse
import functools
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from caffe.data import fashion_mnist
from caffe.data.idx import find_idx, read_idx
from common import ROOT

FOLDER = ROOT / "out" / "photographs"
MEAN = np.array([104, 117, 123], np.float32).reshape(1, 3, 1, 1)  # blue, green, red

_DEBIAN = ("Aqua", "Blinds", "Dune", "FreshFlower", "Garden", "GreenMeadow", "LadyBird",
           "RainDrops", "Storm", "TwoWings", "Wood", "YellowFlower")  # fmt: skip
_SKIMAGE = ("astronaut.png", "brick.png", "camera.png", "chelsea.png", "coffee.png", "coins.png",
            "grass.png", "gravel.png", "motorcycle_left.png", "rocket.jpg")  # fmt: skip
_MOST_SCALE = 3  # a crop is the part of a photograph of up to so many times its side


def fetch(folder: Path) -> int:
    """Download the photographs into `folder`; returns their number.

    Raises RuntimeError where a download fails; what came before it stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        _run(["apt-get", "download", "mate-backgrounds"], temporary)
        package = next(Path(temporary).glob("*.deb"))
        _run(["dpkg-deb", "-x", str(package), "unpacked"], temporary)
        for name in _DEBIAN:
            path = f"unpacked/usr/share/backgrounds/mate/nature/{name}.jpg"
            shutil.copy(Path(temporary, path), folder)
        _run([sys.executable, "-m", "pip", "download", "--no-deps", "scikit-image"], temporary)
        with zipfile.ZipFile(next(Path(temporary).glob("*.whl"))) as wheel:
            for name in _SKIMAGE:
                (folder / name).write_bytes(wheel.read(f"skimage/data/{name}"))
    return len(list(folder.iterdir()))


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:2])} failed: {done.stderr.strip()[-300:]}")


def write_crops(path: Path, folder: Path, side: int, count: int, seed: int = 1) -> str:
    """Write `count` random crops, side x side, with labels to an .npz file.

    Returns:
        What they are crops of. The label is the number of the photograph.
    """
    files = sorted(folder.glob("*.*")) if folder.is_dir() else []
    rng = np.random.default_rng(seed)
    images = np.empty((count, 3, side, side), np.uint8)
    labels = np.empty(count, np.int64)
    photographs: list[Image.Image] = []
    for file in files:
        with Image.open(file) as image:
            photographs.append(image.convert("RGB"))
    if photographs:
        what = f"random crops of {len(photographs)} photographs ({folder.name})"
    else:
        source = fashion_mnist.find_source()
        classes = read_idx(find_idx(source, "train-labels-idx1-ubyte"))[:count]
        small = read_idx(find_idx(source, "train-images-idx3-ubyte"))[:count]
        what = "Fashion-MNIST enlarged, as there are no photographs"
    for i in range(count):
        if photographs:
            labels[i] = rng.integers(len(photographs))
            crop = _crop(photographs[labels[i]], side, rng)
        else:
            labels[i] = classes[i]
            size = (side, side)
            crop = Image.fromarray(small[i]).convert("RGB").resize(size, Image.Resampling.BILINEAR)
        images[i] = np.asarray(crop)[:, :, ::-1].transpose(2, 0, 1)
    np.savez(path, images=images, labels=labels)
    return what


def _crop(image: Image.Image, side: int, rng: np.random.Generator) -> Image.Image:
    shortest = min(image.size)
    part = int(rng.integers(min(side, shortest), min(_MOST_SCALE * side, shortest) + 1))
    left = int(rng.integers(image.width - part + 1))
    upper = int(rng.integers(image.height - part + 1))
    box = (left, upper, left + part, upper + part)
    return image.resize((side, side), Image.Resampling.BILINEAR, box=box)


@functools.lru_cache(maxsize=1)
def load_crops(path: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return images and labels of a file that write_crops() wrote, which stay in memory."""
    with np.load(path) as content:
        return content["images"], content["labels"]


class Batches:
    """The crops of a file, batch after batch, over and over."""

    def __init__(self, path: str) -> None:
        """Read the file, or share what was read before."""
        self.images, self.labels = load_crops(path)
        self._next = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image."""
        return tuple(self.images.shape[1:])

    def next(self, count: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Return `count` images, less the mean, with their labels."""
        chosen = np.arange(self._next, self._next + count) % len(self.images)
        self._next += count
        return self.images[chosen] - MEAN, self.labels[chosen]


def main() -> None:
    """Fetch the photographs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-out", type=Path, default=FOLDER)
    out = parser.parse_args().out
    print(f"{fetch(out)} photographs are in {out}")


if __name__ == "__main__":
    main()
