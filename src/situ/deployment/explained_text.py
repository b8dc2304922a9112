"""Why something is visible to a subscription or not, in words and as JSON: both epochs, every dimension, every part."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent
from typing import Any

from situ.deployment.explaining import Decided, Why
from situ.event.row import Row
from situ.tags import ANY, TagSet
from situ.visibility.explain_json import explained_as_json
from situ.visibility.explain_text import dimension_lines, explain_text, summary

_MOST_PARTS = 20


def tell_why(what: str, why: Why) -> str:
    """The answer as lines of text; ``what`` says what is asked about."""
    if why.side is not None:
        assert why.own.now is not None
        return "\n".join((what, explain_text(why.own.now)))
    return "\n".join(
        (f"{what}{_epochs(why.own, why.epoch)}", *_lines(why.own), *_parts(why), _verdict(why), *_release(why))
    )


def why_as_json(what: dict[str, Any], why: Why) -> dict[str, Any]:
    found = {**what, "visible": why.visible, "side": why.side}
    if why.side is not None:
        assert why.own.now is not None
        return {**found, "dimensions": explained_as_json(why.own.now)["dimensions"]}
    return {
        **found,
        "epoch": why.epoch,
        "itself": _as_json(why.own),
        "parts": [_as_json(each) for each in why.parts],
        "release": {"policy": why.policy, "dimensions": list(why.held_back_in)} if why.held_back_in else None,
    }


def _as_json(each: Decided) -> dict[str, Any]:
    return {
        "visible": each.visible,
        "tags": None if each.tags is None else each.tags.as_json(),
        "stamped": each.epoch,
        "released": sorted(each.released),
        "then": None if each.then is None else explained_as_json(each.then),
        "now": None if each.now is None else explained_as_json(each.now),
    }


def _epochs(own: Decided, epoch: int) -> str:
    if own.epoch is None:
        return f"  in epoch {epoch}" if epoch > 0 else ""
    if own.then is None or own.now is None:
        return f"  stamped in epoch {own.epoch}" + (f", now {epoch}" if own.epoch != epoch else "")
    agree = {
        (True, False): "visible then, not now",
        (False, True): "not visible then: what is opened later does not reach back",
    }.get((own.then.visible, own.now.visible), "same answer in both")
    return f"  stamped in epoch {own.epoch}, now {epoch} ({agree})"


def _lines(each: Decided) -> Iterator[str]:
    if each.tags is None:
        yield "it came under no known advertisement: only operators see it, and whoever sent it"
    elif each.epoch is not None and each.then is None:
        yield f"what the scopes of epoch {each.epoch} were is not known any more: nobody sees it"
    elif each.shown is not None:
        yield from dimension_lines(each.shown) or ["there are no scopes"]


def _parts(why: Why) -> Iterator[str]:
    if not why.parts:
        return
    yield f"it was made of what has {'this stamp' if len(why.parts) == 1 else f'these {len(why.parts)} stamps'}:"
    # What keeps it from being seen comes first.
    for each in sorted(why.parts, key=lambda part: part.visible)[:_MOST_PARTS]:
        released = f", released in {', '.join(sorted(each.released))}" if each.released else ""
        verdict = "visible" if each.visible else "NOT VISIBLE"
        yield f"   {_tags(each.tags)}{_epochs(each, why.epoch)}{released}  {verdict}"
        if not each.visible:
            yield from (indent(line, "      ") for line in _lines(each))
    if len(why.parts) > _MOST_PARTS:
        yield f"   … {len(why.parts) - _MOST_PARTS} more"


def _release(why: Why) -> Iterator[str]:
    if dimensions := why.held_back_in:
        form = f"{{ policy: {why.policy}, dimensions: [{', '.join(dimensions)}], keep: [ … ], by: … }}"
        yield f"an administrator of {' and '.join(dimensions)} can release what comes of {why.policy}, from then on:"
        yield f"   in scopes.yaml, under releases:  - {form}"


def about_event(row: Row) -> tuple[str, dict[str, Any]]:
    """What is asked about, for people and for programs."""
    came = row.ad or row.client
    about = {"event": row.id, "key": row.key, "type": row.type, "from": came, "advertisement": row.ad or None}
    return f"event {row.id}  {row.type}  from {came}", about


def about_sample(advertisement: str, type: str) -> tuple[str, dict[str, Any]]:
    about = {"event": None, "key": None, "type": type, "from": advertisement, "advertisement": advertisement}
    return f"an event as in the sample  {type}  from {advertisement}", about


def _verdict(why: Why) -> str:
    hidden = sum(not each.visible for each in why.parts)
    if why.own.visible and hidden:
        some = f"{hidden} of these {len(why.parts)} {'is' if hidden == 1 else 'are'} not"
        return f"not visible: {'what it was made of is not' if len(why.parts) == 1 else some}"
    if why.own.shown is None:
        return "visible" if why.visible else "not visible"
    return summary(why.own.shown)


def _tags(tags: TagSet | None) -> str:
    if tags is None:
        return "no known tags"
    named = ", ".join(f"{dimension} {tag}" for dimension, tag in tags.named)
    rest = f"rest {ANY}" if tags.rest else ""
    return ", ".join(filter(None, (named, rest))) or "nothing said"
