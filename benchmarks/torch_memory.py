"""What a training step of PyTorch holds in memory, counted by storage. Needs torch.

Scratch memory inside an operator is not seen: a kernel's own copies are PyTorch's advantage here,
where COMET's tracker counts workspaces. The resident peak has them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class LiveStorages(TorchDispatchMode):
    """Counts the bytes of storages that are alive, but parameters, gradients and momentum.

    Use it around one step of training.
    """

    def __init__(self, net: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Watch a step of this net."""
        super().__init__()
        self._sizes: dict[int, int] = {}  # by the storage's id, while it lives
        self._live = 0
        self._learned = 0  # parameters, buffers, gradients and momentum
        self.peak = 0
        self.peak_with_parameters = 0
        self.most_at_turn = 0  # when forward is over
        self.timeline: list[dict[str, Any]] = []
        self._pass = "forward"
        self._ids: set[int] = set()
        state = [value for entry in optimizer.state.values() for value in entry.values()]
        for value in [*net.parameters(), *net.buffers(), *state]:
            if isinstance(value, torch.Tensor):
                self._learn(value)
        for parameter in net.parameters():
            if parameter.grad is not None:
                self._learn(parameter.grad)
            parameter.register_post_accumulate_grad_hook(lambda p: self._learn(p.grad))

    def turn(self) -> None:
        """Say that forward is over and backward begins."""
        self._note()
        self._pass = "backward"
        self.most_at_turn = max(self.most_at_turn, self._live)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operator, and note what it made."""
        result = func(*args, **(kwargs or {}))
        for value in tree_iter((args, kwargs, result)):
            if isinstance(value, torch.Tensor):
                self._see(value)
        self._note()
        return result

    def _see(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._sizes or key in self._ids:
            return
        self._sizes[key] = storage.nbytes()
        self._live += storage.nbytes()
        weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self._live -= self._sizes.pop(key, 0)
        if key in self._ids:
            self._ids.discard(key)

    def _learn(self, tensor: torch.Tensor | None) -> None:
        """Count this tensor as one of what learns."""
        assert tensor is not None
        storage = tensor.untyped_storage()
        if storage._cdata in self._ids:
            return
        self._live -= self._sizes.pop(storage._cdata, 0)
        self._ids.add(storage._cdata)
        self._learned += storage.nbytes()
        weakref.finalize(storage, self._forget, storage._cdata, storage.nbytes())

    def _forget(self, key: int, size: int) -> None:
        self._ids.discard(key)
        self._learned -= size

    def _note(self) -> None:
        self.peak = max(self.peak, self._live)
        self.peak_with_parameters = max(self.peak_with_parameters, self._live + self._learned)
        self.timeline.append({"pass": self._pass, "live": self._live})


def saved_bytes(net: torch.nn.Module, forward: Callable[[], Any]) -> int:
    """Run `forward`; return the bytes of storages that autograd saved, parameters excluded."""
    own = {value.untyped_storage().data_ptr() for value in [*net.parameters(), *net.buffers()]}
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    assert result is not None  # what was saved lives as long
    return sum(sizes.values())
