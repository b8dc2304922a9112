"""The case studies of ``examples/``: their folders, also as patches change them, and their sample events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.count_declarations import apply
from situ.contexts.model import Context, Direction
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.problems import Problems
from situ.lang.types.json_codec import decoder
from situ.model.deployment import Deployment
from situ.project.check import check_folder

EXAMPLES = Path(__file__).parents[1] / "examples"
CONTEXTS = {
    "supply-chain": "us",
    "trading": "zurich",
    "highway-traffic": "ohio",
    "distributed-modelling": "windows",
    "emergency-response": "crews",
}
"""In whose terms others speak there."""
AS_IT_IS = "as it is"
VARIANTS = (AS_IT_IS, "change", "add")


@dataclass(frozen=True, slots=True)
class Sample:
    """An event as it is sent, and as it arrives on the other side."""

    sent: dict[str, Any]
    expected: dict[str, Any]
    way: Transformation

    @property
    def value(self) -> Any:
        """The data as the values that they stand for."""
        decoded = decoder(self.way.source, self.way.types, "reject")(self.sent["data"])
        assert decoded.problems == ()
        return decoded.value


def folder_of(study: str, variant: str, scratch: Path) -> Path:
    """The project, or a copy of it that a patch has changed."""
    project = EXAMPLES / study
    if variant == AS_IT_IS:
        return project
    return apply(project, project / "changes" / f"{variant}.patch", scratch / study)


def deployed(folder: Path) -> Deployment:
    checked = check_folder(folder, {})
    assert checked.deployment is not None, checked.errors
    return checked.deployment


def context_of(study: str, deployment: Deployment) -> Context:
    found = deployment.contexts.get(CONTEXTS[study])
    assert found is not None
    return found


def samples(folder: Path, context: Context, direction: Direction) -> Iterator[Sample]:
    ways = transformations(context, direction, Problems())
    name = direction.value
    sent, expected = (read(folder / "samples" / file) for file in (f"{name}.jsonl", f"{name}.expected.jsonl"))
    for one, other in zip(sent, expected, strict=True):
        yield Sample(one, other, ways[one["type"]])


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
