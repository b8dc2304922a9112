"""Interpretation without a bus: compiled against rules looked up, among the stages of an engine, and made ready."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks import interpretation_events as events
from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.interpretation_events import DEEP, FLAT, FORMS, PER_MESSAGE, Form
from benchmarks.reflective import Reflecting, reflective
from situ.contexts.model import ROOT, Context, Conversion, Direction, EventMapping, Expression, Rule
from situ.contexts.patterns import read_pattern
from situ.contexts.resolve_rules import RuleSet, resolve_event_type
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import transformations
from situ.event.lines import encode_rows
from situ.event.row import Origin, Row
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.lang.types.json_codec import decoder
from situ.lang.types.model import DOUBLE, Attribute, Struct
from situ.lang.types.table import Types
from situ.project.check import check_folder
from situ.stages.plan import Plan, compile_plan
from tests.project_files import write

COMPILED, LOOKED_UP, CONTENT = "compiled", "rules looked up", "content-based"
RATIOS = ((1, 1), (2, 1), (5, 1), (10, 1), (10, 10))
_TIME = 1_800_000_000_000_000
ENVELOPE = {"id": "1", "source": "truck", "type": "Load", "time": None}


def plan_of(bench: Bench, form: Form, consumers: int, contexts: int, *, mediated: bool) -> Plan:
    """A carrier and so many consumers, each in one of so many contexts; or all of them in root."""
    folder = bench.folder("project")
    context, type = ("carrier", "Load") if mediated else (ROOT, "Shipment")
    clients = f"  truck: {{context: {context}, advertisements: {{loads: {{type: {type}}}}}}}\n"
    write(folder, events.files(form, contexts=contexts, clients=clients))
    deployment = check_folder(folder).deployment
    assert deployment is not None
    wanted = {each.id: each for each in events.subscriptions(consumers, contexts, mediated=mediated)}
    return compile_plan(replace(deployment, subscriptions=wanted))


# ── decoded events ──


def _decoded_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    for form in FORMS:
        plan = plan_of(bench, form, 1, 1, mediated=True)
        contexts = [plan.deployment.contexts.by_id[id] for id in ("carrier", "desk0")]
        ways = [
            transformations(context, direction, Problems())[type]
            for context, direction, type in zip(contexts, Direction, ("Load", "Shipment"), strict=True)
        ]
        read, dice = decoder(ways[0].source, ways[0].types, "drop"), random.Random(7)
        sent = [read(events.data(form, dice, mediated=True)).value for _ in range(bench.some(2_000, 100))]
        converters: dict[str, list[Any]] = {
            COMPILED: [Converter(way) for way in ways],
            LOOKED_UP: [Reflecting(context, way) for context, way in zip(contexts, ways, strict=True)],
        }
        results = {
            name: [both[1].data(ENVELOPE, both[0].data(ENVELOPE, each)) for each in sent[:20]]
            for name, both in converters.items()
        }
        assert results[COMPILED] == results[LOOKED_UP], "both make the same of an event"
        variants += [Variant(name=f"{form}: {name}", work=_convert(sent, *both)) for name, both in converters.items()]
    return variants


def _convert(sent: list[Any], inbound: Any, outbound: Any) -> Callable[[], int]:
    def work() -> int:
        into, out = inbound.data, outbound.data
        for each in sent:
            out(ENVELOPE, into(ENVELOPE, each))
        return len(sent)

    return work


def _decoded_verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for form in FORMS:
        ratio = medians[f"{form}: {COMPILED}"] / medians[f"{form}: {LOOKED_UP}"]
        what = f"compiled against rules looked up per event, decoded events, {form}"
        verdicts.append(Verdict(what=what, value=ratio, goal="≥ 5", met=ratio >= 5))
    return verdicts


# ── stages ──


def _stage_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    for form in FORMS:
        ratios = RATIOS[:: bench.some(1, 4)]
        for consumers, contexts in ratios if form in (FLAT, DEEP) else RATIOS[:1]:
            about = _about(form, consumers, contexts)
            variants.append(
                Variant(name=f"{about}: {CONTENT}", work=_stages(bench, form, consumers, 1, mediated=False))
            )
            variants.append(
                Variant(name=f"{about}: mediated", work=_stages(bench, form, consumers, contexts, mediated=True))
            )
        looked_up = _stages(bench, form, 1, 1, mediated=True, change=reflective)
        variants.append(Variant(name=f"{_about(form, 1, 1)}: {LOOKED_UP}", work=looked_up))
    return variants


def _about(form: Form, consumers: int, contexts: int) -> str:
    return f"{form}, 1:{consumers}, {contexts} {'context' if contexts == 1 else 'contexts'}"


def _stages(
    bench: Bench,
    form: Form,
    consumers: int,
    contexts: int,
    *,
    mediated: bool,
    change: Callable[[Plan], Plan] = lambda plan: plan,
) -> Callable[[], int]:
    plan = change(plan_of(bench, form, consumers, contexts, mediated=mediated))
    number = bench.some(PER_MESSAGE, 50)
    body = events.body(form, "truck", mediated=mediated, number=number)
    context = "carrier" if mediated else ROOT
    origin = Origin(client="truck", incarnation=1, seq=1, received=_TIME, pos=65_536, context=context)
    messages = bench.some(20, 1) if change is not reflective else bench.some(2, 1)

    def work() -> int:
        interpretation, routing = plan.interpretation, plan.routing
        for _ in range(messages):
            rows = [
                plan.stamp.stamp(row)
                for row in interpretation.into_root(interpretation.decode(body, origin))
                if isinstance(row, Row)
            ]
            good = [row for row in rows if isinstance(row, Row)]
            worded = interpretation.worded(good, encode_rows(good), routing.route(good), routing)
            assert not worded.bad
            assert len(worded.durable) >= len(good) == number
        return messages * number

    return work


def _stage_verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for form in FORMS:
        about = _about(form, 1, 1)
        content, looked_up = (
            medians[f"{about}: mediated"] / medians[f"{about}: {name}"] for name in (CONTENT, LOOKED_UP)
        )
        verdicts.append(Verdict(what=f"stages of an engine, mediated against content-based, {form}", value=content))
        verdicts.append(Verdict(what=f"stages of an engine, mediated against rules looked up, {form}", value=looked_up))
    return verdicts


# ── rules ──

RULES = (10, 100, 250, 500, 1_000)
SELECTIVITY = (0.25, 0.5, 0.75, 1.0)
SHARES = tuple(tenth / 10 for tenth in range(1, 11))
RESOLVE, GENERATE = "resolution", "resolution and generation"


def context_of(rules: int, selectivity: float) -> tuple[Context, Struct]:
    """A context with so many rules, a share of which is about attributes of the event type."""
    attributes = tuple(Attribute(name=f"a{number}", type=DOUBLE) for number in range(max(rules, 1)))
    event, other = Struct("Event", attributes), Struct("Other", attributes)
    types = Types(types={"Event": event, "Other": other}, events=frozenset({"Event", "Other"}))
    function = Conversion(
        name="twice",
        parameter=Variable(type=DOUBLE),
        result=Variable(type=DOUBLE),
        expression=Expression(text="value * 2"),
        scope=NameScope(types=types, units=types.units),
    )
    affected = round(rules * selectivity)
    made: list[Rule] = []
    for number in range(rules):
        pattern = read_pattern(f"{'Event' if number < affected else 'Other'}.a{number}", types, Problems())
        assert pattern is not None
        made.append(Rule(direction=Direction.OUT, pattern=pattern, function="twice", context="c", order=number))
    root = Context(id=ROOT, types=types)
    mapping = EventMapping(direction=Direction.OUT, source=event, target=event, context="c")
    own = Context(
        id="c", parent=root, types=types, rules=tuple(made), functions={"twice": function}, mappings=(mapping,)
    )
    return own, event


def _rule_variants(bench: Bench) -> list[Variant]:
    variants: list[Variant] = []
    for selectivity in SELECTIVITY[-1:] if bench.quick else SELECTIVITY:
        for rules in RULES[:2] if bench.quick else RULES:
            context, event = context_of(rules, selectivity)
            rounds = max(3, bench.some(1_000, 3) // max(1, rules // 100))
            for what, work in ((RESOLVE, _resolve(context, event)), (GENERATE, _generate(context, event))):
                series = f"{what}, {selectivity:.0%} selected"
                number = rounds if what == RESOLVE else max(3, rounds // 10)
                variants.append(
                    Variant(name=f"{series}, {rules}", work=_timed(work, number), point=float(rules), series=series)
                )
    most = RULES[0] if bench.quick else RULES[-1]
    made = {share: context_of(most, share) for share in SHARES}
    for what, make, number in ((RESOLVE, _resolve, 300), (GENERATE, _generate, 20)):
        works = {share: make(*context) for share, context in made.items()}
        variants.append(Variant(name=_by_share(what), work=_timed_in_turns(works, bench.some(number, 3))))
    return variants


def _by_share(what: str) -> str:
    return f"{what}, by selectivity"


def _resolve(context: Context, event: Struct) -> Callable[[], object]:
    def work() -> object:
        return resolve_event_type(event, RuleSet.of(context, Direction.OUT), context.root.types)

    return work


def _generate(context: Context, event: Struct) -> Callable[[], object]:
    """Of the event type alone that rules are about; the other takes part in the search for its rules only."""
    types = replace_events(context, frozenset({event.name}))

    def work() -> object:
        return Converter(transformations(types, Direction.OUT, Problems())[event.name])

    return work


def replace_events(context: Context, names: frozenset[str]) -> Context:
    assert context.parent is not None
    types = Types(types=dict(context.types.types), events=names, units=context.types.units)
    return replace(context, types=types, parent=replace(context.parent, types=types))


def _timed(work: Callable[[], object], rounds: int) -> Callable[[], Taken]:
    """Milliseconds of one, the median of so many; the fastest shows what grows with what, without what came between."""

    def run() -> Taken:
        with _collecting_nothing():
            taken = [_once(work) for _ in range(rounds)]
        return Taken(value=statistics.median(taken), figures={"fastest": min(taken)})

    return run


def _timed_in_turns(works: Mapping[float, Callable[[], object]], rounds: int) -> Callable[[], Taken]:
    """The fastest of each, by share: measured in turns, since what they differ by is less than a machine's moods."""

    def run() -> Taken:
        taken: dict[float, list[float]] = {share: [] for share in works}
        with _collecting_nothing():
            for _ in range(rounds):
                for share, work in works.items():
                    taken[share].append(_once(work))
        fastest = {share: min(each) for share, each in taken.items()}
        return Taken(value=fastest[max(works)], figures={f"{share:.0%}": each for share, each in fastest.items()})

    return run


def _once(work: Callable[[], object]) -> float:
    began = time.thread_time()  # nothing is waited for: whoever else is busy on the machine does not count
    work()
    return (time.thread_time() - began) * 1000


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """As `timeit` does it: a collection goes through all that this process ever made, whoever happens to cause it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _rule_verdicts(medians: dict[str, float]) -> list[Verdict]:
    full = f"{RESOLVE}, 100% selected, 100"
    verdicts = [
        Verdict(
            what="resolution of 100 rules, all selected, ms", value=medians[full], goal="< 1", met=medians[full] < 1
        )
    ]
    for what in (RESOLVE, GENERATE):
        for selectivity in SELECTIVITY:
            sizes = [rules for rules in RULES if f"{what}, {selectivity:.0%} selected, {rules}" in medians]
            points = [(float(size), medians[f"{what}, {selectivity:.0%} selected, {size}: fastest"]) for size in sizes]
            fit = fit_of(points)
            about = f"{what} is linear in rules, {selectivity:.0%} selected, R²"
            verdicts.append(Verdict(what=about, value=fit, goal="≥ 0.98", met=fit >= 0.98))
        fit = fit_of([(share, medians[f"{_by_share(what)}: {share:.0%}"]) for share in SHARES])
        about = f"{what} is linear in selectivity, {sizes[-1]:,} rules, R²"
        verdicts.append(Verdict(what=about, value=fit, goal="≥ 0.98", met=fit >= 0.98))
    return verdicts


def fit_of(points: Sequence[tuple[float, float]]) -> float:
    """How well a straight line fits: the square of the correlation."""
    if len(points) < 2:
        return 1.0
    return statistics.correlation([x for x, _ in points], [y for _, y in points]) ** 2


BEFORE = (
    "For comparison, from the evaluation of ACTrESS in Java on ActiveMQ "
    "([dissertation](https://tuprints.ulb.tu-darmstadt.de/5131), section 4.4.1): "
)

SCENARIOS = [
    Scenario(
        name="interpretation-decoded",
        title="Interpretation of decoded events",
        unit="events/s",
        about="Events of five or fifteen attributes, side by side or each a level below the one before, from the "
        "context of a carrier (feet, pounds, an address in one text) into root and out to that of a consumer (yards, "
        "grams, an address in parts): values in, values out, in one process. *Compiled* is what engines run; *rules "
        "looked up* is the reference interpreter, which finds the rules about every place of every event. "
        + BEFORE
        + "by reflection, a broker reached less than half of the events a second, and about ten times the latency.",
        variants=_decoded_variants,
        judge=_decoded_verdicts,
        repetitions=5,
    ),
    Scenario(
        name="interpretation-stages",
        title="Interpretation among the stages of an engine",
        unit="events/s",
        about="The same events as text, 500 a message, through the stages of an engine in one process, without a bus: "
        "decode, into root, match, out of root, the lines of root log and deliveries. *Content-based*: the same "
        "events, sent and wanted in the terms of root. 1:n is one producer and n consumers, all of whom get "
        "everything. What engines do besides, receiving, storing and sending, is left out, so that the cost of "
        "interpretation shows undiluted; the goals are about whole engines. "
        + BEFORE
        + "no difference to content-based could be measured at the broker, with 15 attributes, flat or deep, and 1:1 "
        "to 1:10; deep events cost more than flat ones; reflection reached less than half.",
        variants=_stage_variants,
        judge=_stage_verdicts,
        repetitions=5,
    ),
    Scenario(
        name="interpretation-rules",
        title="Resolving rules and generating transformations",
        unit="ms",
        about="An event type with as many attributes as the context has rules; of these, a quarter, half, three "
        "quarters or all are about it, the others about another event type. *Resolution* finds which rule counts at "
        "each place, median of up to 1,000; *and generation* also checks it and compiles it to a function. *By "
        "selectivity*: 1,000 rules, a tenth to all of which are about the event type, the fastest of each, measured in "
        "turns. All times are of the processor; the garbage collector rests meanwhile. "
        + BEFORE
        + "linear in rules and in selectivity, less than 1 ms for 100 rules that all apply.",
        variants=_rule_variants,
        judge=_rule_verdicts,
        repetitions=3,
        plot=Plot(x="rules", y="ms", log_y=True),
    ),
]
