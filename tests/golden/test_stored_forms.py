"""What is stored and what goes over the wire, byte for byte: another release must read what this one wrote.

A difference here is a change of format. Who means it says in the changelog how what is stored comes along.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situ.project.check import check_folder
from situ.protocol import wire
from situ.registry.objects import bodies_of, content_of, digest_of

EXAMPLES = Path(__file__).parents[2] / "examples"
Golden = Callable[[str, str], None]


def stored(folder: Path) -> str:
    """Each object of a project as the registry stores it, and the digest of all."""
    checked = check_folder(folder, {})
    assert checked.deployment is not None, checked.problems
    bodies = bodies_of(checked.deployment)
    lines = [f"{key}\t{body}" for key, body in sorted(bodies.items(), key=lambda each: str(each[0]))]
    return "\n".join([*lines, f"digest\t{digest_of(content_of(bodies))}", ""])


@pytest.mark.parametrize("name", sorted(each.parent.name for each in EXAMPLES.glob("*/situ.yaml")))
def test_an_example_is_stored_as_ever(name: str, golden: Golden) -> None:
    golden(f"stored-forms/{name}.txt", stored(EXAMPLES / name))


def test_messages_have_the_fields_they_had(golden: Golden) -> None:
    """A field that may be missing is one that older clients need not send."""
    kinds = {**wire._CLIENT_KINDS, **wire._ROUTER_KINDS}
    fields = {name: _fields(each.type) for name, each in sorted(kinds.items())}
    golden("stored-forms/messages.json", json.dumps(fields, indent=1) + "\n")


def _fields(kind: Any) -> dict[str, str]:
    return {each.name: "must be there" if each.required else "may be missing" for each in msgspec.structs.fields(kind)}
