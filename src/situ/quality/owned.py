"""What belongs to clients: things by their ids, of which those of one client are found without going through all."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Owns(Protocol):
    @property
    def client(self) -> str:
        """Whose it is, for as long as it is there."""


T = TypeVar("T", bound=Owns)


class Owned(dict[str, T]):
    """By ids. Put by assignment and taken out by ``del`` or ``pop``; nothing else is kept in step."""

    def __init__(self) -> None:
        super().__init__()
        self._by_client: dict[str, dict[str, None]] = {}

    def __setitem__(self, id: str, thing: T) -> None:
        if id in self:
            self._forget(id)
        super().__setitem__(id, thing)
        self._by_client.setdefault(thing.client, {})[id] = None

    def __delitem__(self, id: str) -> None:
        self._forget(id)
        super().__delitem__(id)

    def pop(self, id: str) -> T:  # type: ignore[override]
        thing = self[id]
        del self[id]
        return thing

    def of(self, client: str) -> dict[str, T]:
        """Those of one client, as they are now."""
        return {id: self[id] for id in self._by_client.get(client, ())}

    def _forget(self, id: str) -> None:
        client = self[id].client
        del self._by_client[client][id]
        if not self._by_client[client]:
            del self._by_client[client]
