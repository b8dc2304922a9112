"""Contexts with faults planted in them: all are found, whichever come together, and nothing else is said."""

from __future__ import annotations

import json
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from situ.contexts.check import check_contexts
from situ.contexts.load import contexts_from_json
from situ.lang.problems import Problems, Severity
from tests.context_files import LOGISTICS, SOURCES, load
from tests.volume import examples


class Seed(NamedTuple):
    """One thing done wrong: in a file, this text instead of that, for which these codes are reported."""

    file: str
    old: str
    new: str
    codes: tuple[str, ...]


SEEDS = (
    Seed("contexts/root.yaml", "value * 1.09", "valve * 1.09", ("INT401",)),
    Seed("contexts/us.yaml", "context: us\n", "context: us\n        event: {}\n", ("P103",)),
    Seed("contexts/us.yaml", "attributes: {price: dynamicPrice}", "attributes: {price: dynamicPrise}", ("INT308",)),
    Seed("contexts/us.yaml", "- out: PositionUpdate ->", "- out: PositionUpdat ->", ("INT301",)),
    Seed("contexts/us.yaml", "- Position -> to_latlon", "- Positon -> to_latlon", ("INT202",)),
    Seed("contexts/us.yaml", "- DangerCheck.Position -> identity", "- DangerCheck.Position -> identiti", ("INT208",)),
    Seed("contexts/us.yaml", "- Money", "- Coordinates -> to_dollars\n            - Money", ("INT209",)),
    Seed("contexts/us.yaml", "- LogInfo.UniversalAddress", "- LogInfo.Coordinates", ("INT203",)),
    Seed("contexts/us.yaml", "            time: event\n", "", ("INT405",)),
    Seed("contexts/us.yaml", "source: fx_rates", "source: fx_rate", ("INT412",)),
    Seed("contexts/us.yaml", ", max_keys: 50000", "", ("INT410",)),
    Seed("contexts/us.yaml", "hold 5 s", "hold 5 parrots", ("INT105",)),
    Seed("contexts/us.yaml", "kv(value.specifics, 'zip') AS zip", "kv(value.specific, 'zip') AS zip", ("INT401",)),
    Seed("contexts/europe.yaml", "both: PositionUpdate <->", "both: PositionUpdate ->", ("P105",)),
    Seed("contexts/europe.yaml", "in: [EuAddress ->", "in: [EuAdress ->", ("INT202",)),
    Seed("contexts/europe.yaml", "to_eu_address: UniversalAddress", "to_eu_address: UniversalAddres", ("INT101",)),
    Seed("contexts/german.yaml", "LogInfo.UniversalAddress", "LogInf.UniversalAddress", ("INT202",)),
    Seed("contexts/german.yaml", "context: german\n", "context: German\n", ("INT503",)),
)  # fmt: skip

OTHERS = {
    "contexts/asia.yaml": ("context: asia\nextends: azia\n", "INT501"),
    "contexts/c.yaml": ("context: c\nextends: c\n", "INT502"),
    "contexts/now.yaml": (
        "context: now\nfunctions: {f: {signature: double -> double, time: now, expr: value}}\n",
        "INT406",
    ),
    "contexts/override.yaml": (
        "context: override\nfunctions: {meters_to_yards: double m -> double ft = value * 3.28}\n",
        "INT414",
    ),
    "contexts/twice.yaml": (
        "context: twice\nfunctions: {a: double m -> double ft = value, b: double m -> double ft = value}\n",
        "INT408",
    ),
    "contexts/flat.yaml": ("context: flat\nrules: [Position -> identity]\n", "INT210"),
}


def found(files: dict[str, str]) -> list[str]:
    contexts, problems = load(files)
    more = Problems(problems)
    check_contexts(contexts, more)
    return sorted(each.code.code for each in more if each.severity is not Severity.OBSERVATION)


def test_without_faults_nothing_is_said() -> None:
    assert found(LOGISTICS) == []


@given(st.sets(st.sampled_from(SEEDS)), st.sets(st.sampled_from(sorted(OTHERS))))
@examples(20, 2_000)
def test_all_faults_are_found_whichever_come_together(seeds: set[Seed], others: set[str]) -> None:
    files = dict(LOGISTICS)
    for seed in seeds:
        assert files[seed.file].count(seed.old) == 1, seed
        files[seed.file] = files[seed.file].replace(seed.old, seed.new)
    files |= {name: OTHERS[name][0] for name in others}
    expected = [code for seed in seeds for code in seed.codes] + [OTHERS[name][1] for name in others]
    assert found(files) == sorted(expected)


NAMES = st.sampled_from(["a", "b", "c.d", "e-1", "f_2"])


@given(st.lists(st.tuples(NAMES, st.integers(0, 5), st.booleans(), st.permutations(range(4))), max_size=5))
@examples(15, 2_000)
def test_the_canonical_form_reads_back(drawn: list[tuple[str, int, bool, list[int]]]) -> None:
    """Contexts below each other, with parts of all kinds in any order."""
    rules = [
        "Money -> f",
        "ProductStatusEvent.pos -> identity",
        "PositionUpdate.destAddress -> keep",
        "DangerCheck -> identity",
    ]
    files = {"types/t.yaml": LOGISTICS["types/logistics.yaml"], "contexts/root.yaml": LOGISTICS["contexts/root.yaml"]}
    ids: list[str] = []
    for id, parent, derive, order in drawn:
        if id in ids:
            continue
        above = ids[parent % len(ids)] if ids else "root"
        listed = ", ".join(rules[place] for place in order)
        files[f"contexts/{id}.yaml"] = (
            f"context: {id}\nextends: {above}\nderive: {str(derive).lower()}\n"
            f"types: {{T: {{x: double m, y: root:Money, z: {{type: long, default: {parent}}}}}}}\n"
            f"events: {{DangerCheck: {{pos: Position, t: '[T]'}}}}\n"
            f"maps: [{{in: DangerCheck -> DangerCheck, attributes: {{productId: {{default: x}}}}}}]\n"
            f"rules: {{out: [{listed}]}}\nfunctions: {{f: Money -> Money = value}}\n"
        )
        ids.append(id)
    contexts, problems = load(files)
    assert [str(problem) for problem in problems if problem.is_error] == []
    form = json.loads(json.dumps(contexts.as_json(), sort_keys=True))
    again = contexts_from_json(form, contexts.root.types, {}, sources=SOURCES)
    assert again == contexts
    for context in contexts:
        other = again.by_id[context.id]
        assert (other.types, other.rules, other.functions) == (context.types, context.rules, context.functions)
        assert (other.own, other.derive, other.mappings) == (context.own, context.derive, context.mappings)
