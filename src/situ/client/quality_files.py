"""Expectations and profiles of a client in files of its own, in the words of a project's ``quality/*.yaml``.

Reading such a file declares nothing: it gives drafts, which an application registers when it wants to. Whether what
they say makes sense is the router's to tell, then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from situ.lang.catalogue import NOT_A_DRAFT
from situ.lang.documents import parse_yaml, to_data
from situ.lang.problems import Problem, SituError

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationDraft:
    """An expectation as it was written; ``options`` are all keys that have no field here."""

    subscription: str
    """Its name, without the client."""
    need: Body
    utility: float = 1.0
    id: str | None = None
    options: Body = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDraft:
    """A profile as it was written."""

    type: str
    capabilities: Body = field(default_factory=dict)
    modes: tuple[Body, ...] = ()
    mode: str | None = None


def write_file(path: str | os.PathLike[str], content: Body) -> None:
    import yaml

    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=112)
    Path(path).write_text(text, encoding="utf-8")


def read_expectations(path: str | os.PathLike[str], client: str) -> list[ExpectationDraft]:
    """The expectations in a file, those of one subscription in the order of their ranks."""
    found = []
    for entry in _entries(path, "expectations"):
        subscription = _text(path, entry, "subscription").removeprefix(f"{client}/")
        for each in _list(path, entry, "any_of") or [entry]:
            known = {key: value for key, value in _mapping(path, each).items() if key != "subscription"}
            found.append(
                ExpectationDraft(
                    subscription=subscription,
                    need=_mapping(path, known.pop("need", {})),
                    utility=known.pop("utility", 1.0),
                    id=known.pop("id", None),
                    options=known,
                )
            )
    return found


def read_profiles(path: str | os.PathLike[str]) -> list[ProfileDraft]:
    return [
        ProfileDraft(
            type=_text(path, entry, "type"),
            capabilities=_mapping(path, entry.get("capabilities", {})),
            modes=tuple(_mapping(path, each) for each in _list(path, entry, "modes")),
            mode=entry.get("mode"),
        )
        for entry in _entries(path, "profiles")
    ]


def _entries(path: str | os.PathLike[str], key: str) -> Iterable[Body]:
    document = parse_yaml(Path(path).read_bytes(), str(path))
    if document.problems:
        raise SituError(*document.problems)
    found = {} if document.root is None else to_data(document.root)
    return [_mapping(path, each) for each in _list(path, _mapping(path, found), key)]


def _list(path: str | os.PathLike[str], entry: Body, key: str) -> list[Any]:
    """What stands under a key; nothing, if it is not there."""
    found = entry.get(key, [])
    if not isinstance(found, list):
        raise SituError(_no_draft(path, f"`{key}` is no list"))
    return found


def _mapping(path: str | os.PathLike[str], value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SituError(_no_draft(path, f"`{value!r:.60}` stands where names and values are expected"))
    return value


def _text(path: str | os.PathLike[str], entry: Body, key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise SituError(_no_draft(path, f"an entry has no `{key}`"))
    return value


def _no_draft(path: str | os.PathLike[str], reason: str) -> Problem:
    return NOT_A_DRAFT(file=str(path), reason=reason)
