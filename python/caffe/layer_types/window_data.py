"""WindowData: windows cut out of images, for training detectors (R-CNN).

Tops: data (N x C x crop_size x crop_size) and label (N). `source` is a window file;
its format follows below. Of each batch, `fg_fraction` are drawn at random from
the windows that overlap an object by `fg_threshold` or more, and stand last; the others, with label
0, from those that overlap by less than `bg_threshold`. A window is resized to the square of
`crop_size`; `context_pad` and `crop_mode` (warp or square) widen it before, and what lies outside
of its image then is 0. Mean and scale are applied to the pixels in the square, of a `mean_file` the
centre; `mirror` mirrors every other window at random. `cache_images` keeps the files in memory.
Backward reads: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from caffe.data.prefetch import Prefetcher
from caffe.data.window_reader import WindowBatch, WindowReader
from caffe.layer_types.builtin import BuiltIn
from caffe.layer_types.image_source import checked_prefetch
from caffe.names import suggestion

_MODES = ("warp", "square")


class WindowData(BuiltIn):
    """The WindowData layer; see the module. Position p is the p-th window that is drawn."""

    differentiable_bottoms = 0
    backward_reads_data = False
    bottom_count = (0, 0)
    top_count = (2, 2)

    def setup(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Read the window file.

        Raises:
            FileNotFoundError: it does not exist, or the mean_file does not.
            ValueError: options that make no sense, a bad line, or too few windows.
        """
        param, transform = self.layer_param.window_data_param, self.layer_param.transform_param
        if not param.source:
            raise ValueError("window_data_param needs a source: a window file")
        if param.batch_size < 1:
            raise ValueError("window_data_param needs a batch_size of 1 or more")
        if transform.crop_size <= 2 * param.context_pad:
            raise ValueError(
                f"transform_param has crop_size {transform.crop_size}, needs more than twice "
                f"window_data_param's context_pad, {param.context_pad}"
            )
        if not 0 <= param.fg_fraction <= 1:
            raise ValueError(f"window_data_param has fg_fraction {param.fg_fraction:g}, not 0 to 1")
        if param.crop_mode not in _MODES:
            raise ValueError(
                f"window_data_param has crop_mode '{param.crop_mode}', needs warp or square"
                f"{suggestion(param.crop_mode, _MODES)}"
            )
        if transform.force_color or transform.force_gray:
            raise ValueError(
                "the window file says how many channels; leave force_color, force_gray"
            )
        self._shape = (param.batch_size, 0, transform.crop_size, transform.crop_size)
        prefetch = checked_prefetch(self.layer_param.data_param.prefetch)
        self._reader = WindowReader(self.layer_param, self.name, self.random_seed)
        self._prefetcher: Prefetcher[WindowBatch] = Prefetcher(self._reader.produce, prefetch)

    def reshape(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Set the shapes of the tops: N x C x crop_size x crop_size, and N."""
        batch, _, height, width = self._shape
        top[0].reshape(batch, self._reader.channels, height, width)
        top[1].reshape(batch)

    def forward(self, bottom: Sequence[Any], top: Sequence[Any]) -> None:
        """Write the next batch. ValueError or OSError where an image cannot be read."""
        if self._reader.seed != self.random_seed:  # a restored solver state may have changed it
            self._prefetcher.close()
            self._reader.seed = self.random_seed
        batch = self._prefetcher.get()
        top[0].data[...] = batch.data
        top[1].data[...] = batch.labels

    def backward(
        self, top: Sequence[Any], propagate_down: Sequence[bool], bottom: Sequence[Any]
    ) -> None:
        """Do nothing: there is nowhere to pass a gradient."""

    @property
    def position(self) -> int:
        """Number of the next batch's first window; for solver states."""
        return self._prefetcher.position

    @position.setter
    def position(self, value: int) -> None:
        self._prefetcher.position = value

    def close(self) -> None:
        """Stop reading. Closing twice does no harm."""
        if hasattr(self, "_prefetcher"):
            self._prefetcher.close()
            self._reader.close()

    def __del__(self) -> None:
        """Close, where nobody did."""
        self.close()
