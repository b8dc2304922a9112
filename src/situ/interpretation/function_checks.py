"""What is asked of functions of a context besides that their expressions work: times, units, inverses, overriding."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from situ.catalogue import (
    BAD_PYTHON,
    FUNCTION_INVALID,
    OTHER_SIGNATURE,
    TIME_IS_NOW,
    TIME_MISSING,
    UNITS_TWICE,
    UNKNOWN_FUNCTION,
    UNKNOWN_PYTHON,
    WRONG_TYPE,
)
from situ.errors import Problems, nearest
from situ.expr.scope import Variable
from situ.interpretation.code import fault_in
from situ.interpretation.conversion_text import ConversionText
from situ.interpretation.model import IDENTITY, Context, Conversion
from situ.types.table import Types, spell_type
from situ.units import NO_UNIT


def check_time(conversion: Conversion, text: ConversionText, problems: Problems) -> None:
    """A rate between currencies is one of some time."""
    source, target = conversion.parameter.unit, conversion.result.unit
    between = "currency" in source.labels and "currency" in target.labels and source != target
    if between and not conversion.time:
        problems.add(TIME_MISSING(text.location, name=text.name, source=str(source), target=str(target)))
    if conversion.time == "now":
        problems.add(TIME_IS_NOW(text.time_location, name=text.name))


def check_overrides(found: Mapping[str, Conversion], context: Context, problems: Problems) -> None:
    """Names are bound late, so rules above use the function that overrides: it must take and give the same."""
    for each in found.values():
        above = context.parent.conversion(each.name) if context.parent is not None else None
        if above is None or (above.parameter, above.result) == (each.parameter, each.result):
            continue
        problems.add(
            OTHER_SIGNATURE(
                each.location,
                name=each.name,
                found=print_conversion(each, context.types),
                expected=print_conversion(above, context.types),
                context=above.context,
            )
        )


def check_inverses(
    found: Mapping[str, Conversion], faulty: Collection[str], context: Context, problems: Problems
) -> None:
    known = {name: each for above in reversed(tuple(context.chain)) for name, each in above.functions.items()}
    known |= found
    for each in found.values():
        name = each.inverse
        if not name or name in faulty or name == IDENTITY:
            continue
        other = known.get(name)
        if other is None:
            near = nearest(name, known)
            problems.add(UNKNOWN_FUNCTION(each.location, name=name, context=context.id, nearest=near))
        elif (other.parameter.type, other.result.type) != (each.result.type, each.parameter.type):
            cause = WRONG_TYPE(
                each.location,
                what=f"The inverse `{name}`",
                found=print_conversion(other, context.types),
                expected=f"{each.result.type} -> {each.parameter.type}",
                remedy="An inverse leads back: name a function from the result to the parameter.",
            )
            problems.add(FUNCTION_INVALID(each.location, cause=cause, name=each.name))


def check_python(conversion: Conversion, problems: Problems) -> None:
    """Whether the code that a function names is there."""
    if not conversion.python:
        return
    if conversion.lookups or conversion.states or conversion.key is not None:
        reason = "a function of Python is given values alone, it looks nothing up and remembers nothing"
        remedy = "Do that in an expression, or leave `lookup`, `state` and `key` out."
        problems.add(BAD_PYTHON(conversion.location, name=conversion.name, reason=reason, remedy=remedy))
    file, _, function = conversion.python.rpartition(".")
    reason = fault_in(conversion.code, function) if conversion.code else f"there is no `functions/{file or '…'}.py`"
    if reason:
        problems.add(
            UNKNOWN_PYTHON(
                conversion.location, name=conversion.name, python=conversion.python, reason=reason, file=file or "…"
            )
        )


def check_units(found: Mapping[str, Conversion], problems: Problems) -> None:
    """Where units decide which function converts, two of one context compete."""
    firsts: dict[object, Conversion] = {}
    for each in found.values():
        source, target = each.parameter.unit, each.result.unit
        if NO_UNIT in (source, target) or source == target:
            continue
        pair = (each.parameter.type, source, target)
        if (other := firsts.get(pair)) is not None:
            problems.add(
                UNITS_TWICE(
                    each.location,
                    name=each.name,
                    other=other.name,
                    type=str(each.parameter.type),
                    source=str(source),
                    target=str(target),
                )
            )
        firsts[pair] = each


def print_conversion(conversion: Conversion, types: Types) -> str:
    """The signature of a function, as it is written where these types are visible."""
    return f"{_typed(conversion.parameter, types)} -> {_typed(conversion.result, types)}"


def _typed(variable: Variable, types: Types) -> str:
    words = ["optional"] if variable.optional else []
    words.append(spell_type(variable.type, types))
    if variable.unit != NO_UNIT:
        words.append(str(variable.unit))
    return " ".join(words)
