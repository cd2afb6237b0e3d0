"""In which order records are visited: as they lie, or shuffled anew for each pass.

A shuffle follows from seed, name and number of the pass alone, so that the position in the data is
all that a solver state has to keep.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from caffe.data.transform import random_key


def permutation(count: int, seed: int, name: str, turn: int) -> npt.NDArray[np.int64]:
    """Return 0 to count - 1 in the order that belongs to (seed, name, turn)."""
    rng = np.random.Generator(np.random.Philox(key=random_key(seed, f"{name}/order/{turn}")))
    return rng.permutation(count)


class Order:
    """Position -> record; position p belongs to pass p // count.

    Args:
        count: records, 1 or more.
        name: of the layer; layers of different names shuffle differently.
        shuffle: whether to shuffle at all.
    """

    def __init__(self, count: int, name: str, shuffle: bool) -> None:
        """Have no shuffle ready yet; see the class."""
        self.count = count
        self._name = name
        self._shuffle = shuffle
        self._made_for: tuple[int, int] | None = None  # seed and pass of the shuffle at hand
        self._shuffled = np.zeros(0, dtype=np.int64)

    def record(self, position: int, seed: int) -> int:
        """Return the number of the record at `position`, counted over all passes."""
        turn, at = divmod(position, self.count)
        if not self._shuffle:
            return at
        if self._made_for != (seed, turn):
            self._shuffled = permutation(self.count, seed, self._name, turn)
            self._made_for = (seed, turn)
        return int(self._shuffled[at])
