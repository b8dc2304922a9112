"""Declarations that are not in force because their clients have no right to them, for those who look at a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from situ.cli.output import visible
from situ.errors import SituError

if TYPE_CHECKING:
    from rich.text import Text

    from situ.cli.in_force import Place
    from situ.registry import Key

_PATIENCE = 2.0


def suspended_in(place: Place) -> tuple[Key, ...]:
    """What the registry of a run has suspended; nothing if it does not answer, which other commands say."""
    from situ.registry import open_registry

    try:
        with open_registry(place.path, place.settings, patience=_PATIENCE) as registry:
            return tuple(each.key for each in registry.suspended())
    except SituError:
        return ()


def show_suspended(keys: Sequence[Key]) -> Iterator[Text]:
    if keys:
        from rich.text import Text

        yield Text()
        yield Text("Suspended, for their clients have no right to them any more:", "yellow")
        for key in keys:
            yield Text(f"  {key.kind} {visible(key.name)}")
