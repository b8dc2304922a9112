"""The case studies: they check clean, convert their samples as written down, and take as few lines as they say.

`samples/out.jsonl` are events in root's terms, `samples/in.jsonl` in those of the other context, `*.expected.jsonl`
what becomes of each. `changes/*.patch` change one format and add one event type: the same
holds for the project afterwards.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.count_declarations import changed, count, declarations
from situ.contexts.model import ROOT, Direction
from situ.contexts.transform.converter import Converter
from situ.event.row import Origin, Row
from situ.lang.problems import Severity
from situ.lang.types.json_codec import encode
from situ.project.check import check_folder
from situ.stages.plan import compile_plan
from tests.case_studies import CONTEXTS, EXAMPLES, VARIANTS, context_of, deployed, folder_of, samples
from tests.oracles import transformation as reference
from tests.transformations import ENVELOPE, out_of_root

# Specify the transformations, change the format of one type, add an event type.
AT_MOST = {
    "supply-chain": (22, 2, 1),
    "trading": (16, 2, 1),
    "highway-traffic": (21, 2, 1),
    "distributed-modelling": (30, 3, 2),
    "emergency-response": (21, 3, 2),
}
EACH = [(study, variant) for study in CONTEXTS for variant in VARIANTS]
PAGE = EXAMPLES.parent / "docs" / "examples.md"


def same(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of what cosines are computed with."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize(("study", "variant"), EACH)
def test_checks_clean(study: str, variant: str, tmp_path: Path) -> None:
    checked = check_folder(folder_of(study, variant, tmp_path), {})
    assert [str(each) for each in checked.problems if each.severity is not Severity.OBSERVATION] == []


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("study", "variant"), EACH)
def test_samples_convert_as_expected(study: str, variant: str, direction: Direction, tmp_path: Path) -> None:
    """By the generated functions, over values and over text, and by the reference."""
    folder = folder_of(study, variant, tmp_path)
    context = context_of(study, deployed(folder))
    found = list(samples(folder, context, direction))
    assert found
    for each in found:
        wanted, way = each.expected["data"], each.way
        assert way.target.name == each.expected["type"]
        converter, value = Converter(way), each.value
        assert same(encode(way.target, converter.data(ENVELOPE, value), way.targets), wanted)
        assert same(json.loads(converter.text(ENVELOPE, json.dumps(each.sent["data"]).encode())), wanted)
        slow = reference.transform(context, direction, way.source, ENVELOPE, value, way.target)
        assert slow.faults == ()
        assert same(encode(way.target, slow.data, way.targets), wanted)


@pytest.mark.parametrize(("study", "variant"), EACH)
def test_a_deployment_takes_the_samples_in_and_out(study: str, variant: str, tmp_path: Path) -> None:
    folder = folder_of(study, variant, tmp_path)
    deployment = deployed(folder)
    interpretation = compile_plan(deployment).interpretation
    context = context_of(study, deployment)
    for each in samples(folder, context, Direction.IN):
        [row] = interpretation.into_root(interpretation.decode(_body(each.sent), _origin(context.id)))
        assert isinstance(row, Row), row
        assert (row.type, same(json.loads(row.data), each.expected["data"])) == (each.expected["type"], True)
    for each in samples(folder, context, Direction.OUT):
        [sent] = interpretation.decode(_body(each.sent), _origin(ROOT))
        assert isinstance(sent, Row), sent
        row = out_of_root(interpretation, sent, context.id)
        assert isinstance(row, Row), row
        assert (row.type, same(json.loads(row.data), each.expected["data"])) == (each.expected["type"], True)


def _body(event: dict[str, Any]) -> bytes:
    return json.dumps([event]).encode()


def _origin(context: str) -> Origin:
    return Origin(client="a", incarnation=1, seq=1, received=1_798_761_600_000_000, pos=65536, context=context)


# ── how much it takes ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("study", CONTEXTS)
def test_takes_no_more_lines_than_it_may(study: str) -> None:
    specified, patches = count(EXAMPLES / study)
    found = (specified, patches["change"], patches["add"])
    assert all(lines <= most for lines, most in zip(found, AT_MOST[study], strict=True)), found
    row = re.search(rf"^\| \[`{study}`\].*\| (\d+) / (\d+) / (\d+) \| [\d /]+ \|$", PAGE.read_text(), re.MULTILINE)
    assert row is not None
    assert tuple(map(int, row.groups())) == found
    said = re.search(r"(\d+) lines.* (\d+) lines? .*(\d+) lines?\b", _effort(study))
    assert said is not None
    assert tuple(map(int, said.groups())) == found


def _effort(study: str) -> str:
    text = (EXAMPLES / study / "README.md").read_text()
    return " ".join(text.partition("## What it takes\n")[2].partition("\n## ")[0].split())


@pytest.mark.parametrize("file", [path for study in CONTEXTS for path in (EXAMPLES / study).glob("*/*.yaml")], ids=str)
def test_lines_are_not_made_few_by_making_them_long(file: Path) -> None:
    assert max(map(len, file.read_text().splitlines())) <= 120


def test_what_stands_in_one_line_is_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "contexts").mkdir()
    file = tmp_path / "contexts" / "a.yaml"
    file.write_text(
        "# a comment\ncontext: a\n\ntypes:\n  A: {x: int}\n  # another\nunits: {EUR: currency}\n"
        "maps:\n  - {out: A -> B, attributes: {x: y, z: w}}\n  - out: C -> D\n    attributes: {q: r}\n"
        "rules: {out: [A -> f, B -> g], in: [C -> h]}\n"
        "functions:\n  f: A -> B = struct(value.x AS x,\n    1 AS y)\n  g: {signature: A -> B, expr: 'value'}\n"
    )
    lines = declarations(tmp_path)
    #   context, maps, three in a line, out, attributes, three rules, functions, f in two lines, g
    assert len(lines) == 1 + 1 + 3 + 1 + 1 + 3 + 1 + 2 + 1
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "f.yaml").write_text("functions:\n  h: int -> int = value\n")
    assert len(declarations(tmp_path)) == len(lines) + 2
    assert changed(lines, declarations(tmp_path)) == 2


def test_changes_are_counted_as_what_is_new_or_gone() -> None:
    assert changed("abc", "abc") == 0
    assert changed("abc", "axc") == 1
    assert changed("abc", "axyc") == 2
    assert changed("abc", "ac") == 1
    assert changed("abc", "abcd") == 1
