"""The JSON Schemas of explanations, as the reference documents them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
_ROW = re.compile(r"^\| `(situ explain [^`]*)` \| (a list of )?(\[.*) \|$", re.MULTILINE)


@cache
def documented() -> dict[str, dict[str, Any]]:
    """Command → the schema of what it answers with ``--json``."""
    found = {}
    for command, several, names in _ROW.findall((_REFERENCE / "explanations.md").read_text()):
        one = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in re.findall(r"\[(\w+)\]", names)]}
        found[command] = {"type": "array", "items": one} if several else one
    return found


def misfits(command: str, answer: Any) -> list[str]:
    """All in which an answer is not as the reference says of the command."""
    definitions = json.loads((_REFERENCE / "explanations.schema.json").read_text())["$defs"]
    checked = Draft202012Validator({**documented()[command], "$defs": definitions})
    return [f"{each.json_path}: {each.message}" for each in checked.iter_errors(answer)]
