"""What is kept loaded between jobs, within a budget of memory: the least recently used goes first."""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
import torch

from faceplate.models.sessions import Net


@dataclasses.dataclass(slots=True)
class _Kept:
    value: Any
    size: int
    let_go: Callable[[], bool] | None


class WarmCache:
    """Values by key. May be used from several threads; what is evicted lives on while somebody holds it.

    Args:
        budget: bytes, as `size_of` counts them. The newest value is kept even where it is larger.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._values: OrderedDict[Any, _Kept] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        """Bytes that are kept."""
        return self._total

    def get(self, key: Any) -> Any:
        """The value, now the most recently used; None when it is not there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key].value

    def put(self, key: Any, value: Any, size: int | None = None, let_go: Callable[[], bool] | None = None) -> None:
        """Keep a value, now the most recently used; others go when the budget asks for it.

        Args:
            key: of the value.
            value: to keep.
            size: bytes; None to count them.
            let_go: called when it shall go, with the cache's lock held; False means that it is in use and stays.
        """
        kept = _Kept(value, size_of(value) if size is None else size, let_go)
        with self._lock:
            before = self._values.pop(key, None)
            self._values[key] = kept
            self._total += kept.size - (0 if before is None else before.size)
            self._shrink(self.budget, spare=key)

    def shrink(self, budget: int) -> None:
        """Let the least recently used go until at most `budget` bytes are kept; what is in use stays."""
        with self._lock:
            self._shrink(budget)

    def _shrink(self, budget: int, spare: Any = None) -> None:
        for key in list(self._values):
            if self._total <= budget:
                return
            kept = self._values[key]
            if key == spare or (kept.let_go is not None and not kept.let_go()):
                continue
            del self._values[key]
            self._total -= kept.size

    def make(self, key: Any, make: Callable[[], Any]) -> Any:
        """The value, made if it is not there. Two threads may both make it; one of the two is kept."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def drop(self, key: Any) -> None:
        """Let go of a value; harmless when it is not there."""
        with self._lock:
            kept = self._values.pop(key, None)
            self._total -= 0 if kept is None else kept.size

    def keys(self) -> list[Any]:
        """What is kept, the least recently used first."""
        with self._lock:
            return list(self._values)


class WarmNets:
    """Counts nets among the warm values: what a `SessionPool` tells it as `used`.

    Args:
        cache: whose budget they share.
    """

    def __init__(self, cache: WarmCache) -> None:
        self._cache = cache

    def __call__(self, net: Net) -> None:
        """A net was loaded or has run."""
        self._cache.put(("net", net.card.id, id(net)), net, net.size, net.unload)


class WarmMapping(MutableMapping[str, Any]):
    """A part of a `WarmCache` as a mapping: what `FacePipeline` keeps its prepared identities in."""

    def __init__(self, cache: WarmCache, name: str) -> None:
        self._cache = cache
        self._name = name

    def __getitem__(self, key: str) -> Any:
        found = self._cache.get((self._name, key))
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        self._cache.put((self._name, key), value)

    def __delitem__(self, key: str) -> None:
        self._cache.drop((self._name, key))

    def __iter__(self) -> Iterator[str]:
        return (key for name, key in self._cache.keys() if name == self._name)  # noqa: SIM118 - not a mapping

    def __len__(self) -> int:
        return sum(1 for _ in self)


def size_of(value: Any) -> int:
    """Bytes of the arrays, tensors, weights and blobs that a value of dataclasses and collections holds."""
    if isinstance(value, torch.nn.Module):
        return sum(size_of(tensor) for tensor in (*value.parameters(), *value.buffers()))
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (bytes, str)):
        return len(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sum(size_of(getattr(value, spec.name)) for spec in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return sum(size_of(item) for item in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sum(size_of(item) for item in value)
    return 64
