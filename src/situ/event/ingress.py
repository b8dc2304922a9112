"""What happens to an event where it enters: nobody speaks for another, and only Situ writes its marks.

Pure: the client's name and the time of arrival are inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from situ.event.envelope import MARK_PREFIX, MARKS, Event, Marks


@dataclass(frozen=True, slots=True)
class Accepted:
    """The event as Situ carries it on; ``dropped`` names the attributes its client had no right to send."""

    event: Event
    dropped: tuple[str, ...] = ()


def accept(event: Event, *, client: str, received: datetime) -> Accepted:
    """Take in an event that was decoded without marks.

    Its source becomes one of the client's, its time the arrival's if it had none; of Situ's own attributes only the
    advertisement counts.
    """
    dropped = tuple(sorted(name for name in event.extensions if _is_ours(name) and name != "situad"))
    marks = Marks(ad=event.extensions.get("situad"), received=received)
    foreign = {name: text for name, text in event.extensions.items() if not _is_ours(name)}
    accepted = replace(
        event,
        source=own_source(event.source, client),
        time=event.time or received,
        extensions=foreign,
        marks=marks,
    )
    return Accepted(accepted, dropped)


def own_source(source: str, client: str) -> str:
    """The source itself if it is the client or below it, else put behind the client's name."""
    if source == client or source.startswith(client + "/"):
        return source
    return f"{client}/{source}"


def _is_ours(name: str) -> bool:
    return name.startswith(MARK_PREFIX) or name in MARKS
