"""Generated types, contexts and events: what is compiled does what the reference does, and what comes out is right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from situ.contexts.model import Context, Conversion, Rule
from situ.contexts.resolve_rules import RuleSet, converted_places, resolve_event_type
from situ.contexts.transform.columns import in_columns
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation, transformations
from situ.event.data_reader import data_plan_of, shape_of
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from situ.lang.types.json_codec import decode, encode
from situ.lang.types.scalars import Unfit
from tests.oracles.transformation import transform
from tests.transformations import ENVELOPE, Case, generated_case, laid_out, make_attributes, make_struct
from tests.volume import seeds


def compiled(seeds: range) -> Iterator[tuple[int, Case, Transformation]]:
    for seed in seeds:
        case = generated_case(seed)
        if case is None:
            continue
        names = {event.name for event in case.events}
        for name, made in transformations(case.context, case.direction, Problems()).items():
            if name in names:
                yield seed, case, made


def events(seed: int, case: Case, made: Transformation, number: int) -> Iterator[dict[str, Any]]:
    """Data of events of the type; of some the data says that it is of a subtype."""
    dice = random.Random(seed)
    for _ in range(number):
        make = make_struct if dice.random() < 0.2 else make_attributes
        yield make(dice, made.source, case.types)


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except FAILURES:
        return None


def hold_equal(seeds: range, number: int) -> None:
    seen = failed = 0
    for seed, case, made in compiled(seeds):
        converter = Converter(made)
        for data in events(seed, case, made, number):
            expected = transform(case.context, case.direction, made.source, ENVELOPE, data, made.target)
            found = outcome(converter.data, ENVELOPE, data)
            faults = tuple((each.values["path"], each.code.code) for each in converter.faults(ENVELOPE, data))
            about = (seed, made.source.name, data, converter.function.source)
            assert found == expected.data, about
            assert faults == expected.faults, about
            seen, failed = seen + 1, failed + (found is None)
            text = msgspec.json.encode(encode(made.source, data, made.types))
            written = outcome(converter.text, ENVELOPE, text)
            if found is None:
                assert made.can_fail, about
                assert faults, about
                assert written is None, about
                assert [each.values["path"] for each in converter.text_faults(ENVELOPE, text)] == [
                    path for path, _ in faults
                ]
                continue
            json = encode(made.target, found, made.targets)
            assert decode(made.target, json, made.targets) == found, about
            assert written == msgspec.json.encode(json), about
    assert seen > len(seeds)
    assert 0 < failed < seen / 4


@seeds(range(60), range(10_000, 22_000))
def test_compiled_transformations_equal_the_reference_and_give_what_is_declared(seeds: range) -> None:
    hold_equal(seeds, 6)


@pytest.mark.parametrize("seed", [13106, 13697])
def test_a_function_of_a_supertype_keeps_what_a_subtype_declares_narrower(seed: int) -> None:
    for _, case, made in compiled(range(seed, seed + 1)):
        for data in events(seed, case, made, 6):
            expected = transform(case.context, case.direction, made.source, ENVELOPE, data, made.target)
            assert outcome(Converter(made).data, ENVELOPE, data) == expected.data


def read_struct(made: Transformation, text: bytes) -> Any:
    """The struct that such an event is read into; None if that way is not for it."""
    plan = data_plan_of(made.source)
    if plan is None:
        return None
    try:
        value = plan.decode(text)
        return value if plan.mended(value, msgspec.json.encode(value)) == text else None
    except (msgspec.MsgspecError, Unfit):
        return None


@seeds(range(60), range(400))
def test_from_struct_to_struct_they_give_the_same(seeds: range) -> None:
    seen = failed = onward = 0
    for seed, case, made in compiled(seeds):
        converter = Converter(made)
        plan = converter.structs
        for data in events(seed, case, made, 5) if plan is not None else ():
            text = msgspec.json.encode(encode(made.source, data, made.types))
            value = read_struct(made, text)
            if value is None:
                continue
            assert plan is not None
            about = (seed, made.source.name, text, plan.function.source)
            assert type(value) is plan.takes, about
            expected, found = outcome(converter.text, ENVELOPE, text), outcome(plan.call, ENVELOPE, value)
            assert (None if found is None else msgspec.json.encode(found)) == expected, about
            assert msgspec.json.encode(value) == text, "what was read stays as it is"
            seen, failed = seen + 1, failed + (found is None)
            if found is not None and type(found) is shape_of(made.target):
                again = data_plan_of(made.target)
                assert again is not None
                onward += _same(found, again.decode(expected), about)
    assert seen > 0.75 * len(seeds)
    assert failed > len(seeds) / 80
    assert onward > len(seeds) / 2


def _same(one: Any, other: Any, about: object) -> bool:
    """Whoever goes on from the struct finds what is in its text, in the same fields and of the same types."""
    if isinstance(one, msgspec.Struct):
        assert one.__struct_fields__ == other.__struct_fields__, about
        for field in one.__struct_fields__:
            _same(getattr(one, field), getattr(other, field), about)
    elif isinstance(one, list):
        for each, another in zip(one, other, strict=True):
            _same(each, another, about)
    else:
        assert (type(one), one) == (type(other), other), about
    return True


@seeds(range(60), range(250))
def test_over_columns_they_give_the_same(seeds: range) -> None:
    written = 0
    for seed, case, made in compiled(seeds):
        node, converter = in_columns(made), Converter(made)
        with suppress(SituError):  # what Spark cannot compute exactly it is not asked to
            written += bool(emit_spark(node).value)
        for data in events(seed, case, made, 4):
            values = {"event": ENVELOPE, "data": laid_out(data, made.source, made.types)}
            expected = laid_out(outcome(converter.data, ENVELOPE, data), made.target, made.targets)
            assert outcome(interpret, node, values) == expected, (seed, made.source.name, data)
    assert written > 0.8 * len(seeds)


@pytest.mark.parametrize("seed", [13106, 14101])
def test_over_columns_narrower_attributes_and_shortened_lists_give_the_same(seed: int) -> None:
    for _, case, made in compiled(range(seed, seed + 1)):
        for data in events(seed, case, made, 6):
            values = {"event": ENVELOPE, "data": laid_out(data, made.source, made.types)}
            expected = laid_out(outcome(Converter(made).data, ENVELOPE, data), made.target, made.targets)
            assert outcome(interpret, in_columns(made), values) == expected


def flat(context: Context) -> Context:
    """All that is visible in a context, declared in one right below root."""
    chain = [each for each in reversed(list(context.chain)) if each.parent is not None]
    rules: list[Rule] = []
    functions: dict[str, Conversion] = {}
    for each in chain:
        for rule in sorted(each.rules, key=lambda rule: rule.order):
            rules.append(replace(rule, context=context.id, order=len(rules)))
        for name, function in each.functions.items():
            functions.pop(name, None)  # the nearer one comes later
            functions[name] = function
    return replace(
        context,
        parent=context.root,
        rules=tuple(rules),
        functions=functions,
        mappings=tuple(mapping for each in chain for mapping in each.mappings),
    )


@seeds(range(60), range(400))
def test_a_context_compiled_directly_equals_its_definitions_copied_flat_under_root(seeds: range) -> None:
    deep = 0
    for seed in seeds:
        case = generated_case(seed)
        if case is None or len(list(case.context.chain)) < 3:
            continue
        found = transformations(case.context, case.direction, Problems())
        again = transformations(flat(case.context), case.direction, Problems())
        assert found.keys() == again.keys(), seed
        for name, made in found.items():
            assert made.node == again[name].node, (seed, name)
            assert made.plan == again[name].plan, (seed, name)
        deep += bool(found)
    assert deep > 0.15 * len(seeds)


@seeds(range(45), range(300))
def test_no_place_that_is_converted_lies_below_another(seeds: range) -> None:
    for seed in seeds:
        case = generated_case(seed)
        if case is None:
            continue
        rules = RuleSet.of(case.context, case.direction)
        for event in case.events:
            found = [place.path for place in converted_places(resolve_event_type(event, rules, case.types))]
            for path in found:
                above = [
                    other
                    for other in found
                    if other is not path and other.steps == path.steps[: len(other.steps)] and other.steps != path.steps
                ]
                assert not above, (seed, str(path))


@seeds(range(45), range(300))
def test_plans_tell_transformations_apart(seeds: range) -> None:
    by_plan: dict[str, tuple[int, Transformation]] = {}
    for seed, _, made in compiled(seeds):
        before = by_plan.setdefault(made.plan, (seed, made))
        assert before[1].node == made.node, (seed, before[0])
