"""Sources of data in small nets: all modes see the same data, and a resumed run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from nets import make_solver, parameters
from PIL import Image

from caffe.data.datum import array_to_datum
from caffe.data.lmdb_writer import LmdbWriter
from caffe.prototxt import parse_net
from caffe.solver import Solver

COUNT, BATCH, SIDE, CLASSES = 10, 4, 12, 3
CROP = "transform_param { crop_size: 8 mirror: true scale: 0.01 mean_value: 120 }"
LAYERS = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "x"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "x" top: "x" }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" }
"""


def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (COUNT, 3, SIDE, SIDE), np.uint8)


def lmdb(folder: Path) -> str:
    with LmdbWriter(folder / "db", overwrite=True) as writer:
        for i, image in enumerate(pixels()):
            writer.put(f"{i:04}", array_to_datum(image, i % CLASSES).SerializeToString())
    return (
        f'type: "Data" data_param {{ source: "{folder / "db"}" batch_size: {BATCH} backend: LMDB '
        f"rand_skip: 5 }} {CROP}"
    )


def leveldb(folder: Path) -> str:
    plyvel = pytest.importorskip("plyvel", reason="plyvel, which LevelDB needs, is not installed")
    database = plyvel.DB(str(folder / "db"), create_if_missing=True)
    for i, image in enumerate(pixels()):
        record = array_to_datum(image, i % CLASSES).SerializeToString()
        database.put(f"{i:04}".encode(), record)
    database.close()
    return f'type: "Data" data_param {{ source: "{folder / "db"}" batch_size: {BATCH} }} {CROP}'


def image_files(folder: Path) -> str:
    lines = []
    for i, image in enumerate(pixels()):
        Image.fromarray(image.transpose(1, 2, 0)).save(folder / f"{i} a.png")
        lines.append(f"{i} a.png {i % CLASSES}\n")
    (folder / "list.txt").write_text("".join(lines))
    return (
        f'type: "ImageData" image_data_param {{ source: "{folder / "list.txt"}" shuffle: true '
        f'root_folder: "{folder}" batch_size: {BATCH} new_height: 10 new_width: 9 rand_skip: 4 }} '
        f"{CROP}"
    )


def hdf5(folder: Path) -> str:
    h5py = pytest.importorskip("h5py", reason="h5py, which HDF5Data needs, is not installed")
    rows = (pixels().astype(np.float32) - 120) / 100
    borders = (0, 3, COUNT)
    for begin, end in zip(borders, borders[1:]):
        with h5py.File(folder / f"{begin}.h5", "w") as file:
            file["data"], file["label"] = rows[begin:end], np.arange(begin, end) % CLASSES
    (folder / "list.txt").write_text(f"{folder}/0.h5\n{folder}/3.h5\n")
    return (
        f'type: "HDF5Data" hdf5_data_param {{ source: "{folder / "list.txt"}" shuffle: true '
        f"batch_size: {BATCH} }}"
    )


def windows(folder: Path) -> str:
    text = ""
    for i, image in enumerate(pixels()):
        Image.fromarray(image.transpose(1, 2, 0)).save(folder / f"{i} a.png")
        text += f"# {i}\n{i} a.png\n3\n{SIDE}\n{SIDE}\n3\n"
        text += f"{1 + i % 2} 0.{i} 1 2 9 11\n0 0 0 0 5 5\n2 0.9 {i} 0 {i} 7\n"
    (folder / "windows.txt").write_text(text)
    return (
        f'type: "WindowData" window_data_param {{ source: "{folder / "windows.txt"}" '
        f'root_folder: "{folder}" batch_size: 8 context_pad: 2 fg_fraction: 0.5 }} '
        f"{CROP.replace('8', '16')}"
    )


def memory(folder: Path) -> str:
    return (
        f'type: "MemoryData" memory_data_param {{ batch_size: {BATCH} channels: 3 '
        f"height: {SIDE} width: {SIDE} }}"
    )


SOURCES: dict[str, Callable[[Path], str]] = {
    "LMDB": lmdb,
    "LevelDB": leveldb,
    "ImageData": image_files,
    "HDF5Data": hdf5,
    "WindowData": windows,
    "MemoryData": memory,
}


def make(options: str, mode: str, seed: int, folder: Path) -> Solver:
    data = f'layer {{ name: "data" top: "data" top: "label" {options} }}'
    solver = make_solver(
        parse_net(data + LAYERS),
        f'random_seed: {seed} snapshot_prefix: "{folder / "s"}"',
        f"mode: {mode}",
    )
    if "MemoryData" in options:
        rows = (pixels()[:8] - np.float32(120)) / 100
        solver.net.set_input_arrays(rows, np.arange(8) % CLASSES)
    return solver


def steps(solver: Solver, count: int) -> list[float]:
    losses = []
    for _ in range(count):
        solver.step(1)
        losses.append(solver.loss_window[-1])
    return losses


@pytest.mark.parametrize("kind", SOURCES)
def test_every_mode_sees_the_same(kind: str, tmp_path: Path) -> None:
    options = SOURCES[kind](tmp_path)
    losses, weights = {}, {}
    for mode in ("NONE", "LOSSLESS", "ADAPTIVE"):
        solver = make(options, mode, 3, tmp_path)
        losses[mode], weights[mode] = steps(solver, 6), parameters(solver)
        solver.close()
    assert len(set(losses["NONE"])) == 6
    assert losses["LOSSLESS"] == losses["NONE"]
    assert losses["ADAPTIVE"][0] == losses["NONE"][0]
    for ours, theirs in zip(weights["LOSSLESS"], weights["NONE"]):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("seed", [3, -1])
@pytest.mark.parametrize("stop", [1, 4, 9])
@pytest.mark.parametrize("kind", SOURCES)
def test_a_resumed_run_goes_on_with_the_same_data(
    kind: str, stop: int, seed: int, tmp_path: Path
) -> None:
    options = SOURCES[kind](tmp_path)
    first = make(options, "LOSSLESS", seed, tmp_path)
    steps(first, stop)
    _, state = first.snapshot()
    expected = steps(first, 12 - stop)
    second = make(options, "LOSSLESS", seed, tmp_path)
    second.restore(state)
    assert steps(second, 12 - stop) == expected
    for ours, theirs in zip(parameters(second), parameters(first)):
        np.testing.assert_array_equal(ours, theirs)
    first.close()
    second.close()
