"""Why an event is visible or not, for programs: what was found in each dimension, with a code for each reason."""

from __future__ import annotations

from typing import Any

from situ.visibility.explain import Asked, Explained, InDimension, Step


def explained_as_json(explained: Explained) -> dict[str, Any]:
    """The answer; of one side, only what that side may know."""
    return {
        "visible": explained.visible,
        "dimensions": [
            _own(each, explained.side) if explained.side is not None else _dimension(each)
            for each in explained.dimensions
        ],
    }


def _own(each: InDimension, side: str) -> dict[str, Any]:
    own = each.advertised if side == "producer" else each.subscribed
    return {"dimension": each.dimension, "advertised" if side == "producer" else "subscribed": own}


def _dimension(each: InDimension) -> dict[str, Any]:
    blocked = each.blocked
    return {
        "dimension": each.dimension,
        "advertised": each.advertised,
        "subscribed": each.subscribed,
        "visible": each.visible,
        "code": each.cell.name.lower(),
        "way": _way(each.way),
        "also_tried": [_way(other) for other in each.others],
        "blocked": None if blocked is None else _asked(blocked),
        "lacking": [list(texts) for texts in each.lacking],
    }


def _way(way: tuple[Step, ...]) -> list[dict[str, Any]]:
    return [
        {
            "from": step.start,
            "to": step.end,
            "direction": "up" if step.up else "down",
            "asked": [_asked(each) for each in step.asked],
        }
        for step in way
    ]


def _asked(asked: Asked) -> dict[str, Any]:
    return {
        "interface": asked.interface,
        "filter": asked.filter.text,
        "value": asked.value,
        "reason": asked.reason or None,
        "place": str(asked.filter.place) if asked.filter.place is not None else None,
    }
