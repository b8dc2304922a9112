"""``INT3xx`` and ``INT4xx``: rules between contexts, where a transformation is made of them."""

from __future__ import annotations

from situ.catalogue.defining import define
from situ.errors import Severity

RESULT_UNFIT = define(
    "INT303",
    "what a mapping gives does not fit the mapped type",
    "`{target}` of `{type}` would be {found}, expected `{expected}`.",
    "{remedy}",
    target=str,
    type=str,
    found=str,
    expected=str,
    remedy=str,
)
NOT_SUPPLIED = define(
    "INT304",
    "attribute that nothing supplies",
    "Nothing supplies `{target}` of `{type}`: `{source}` has no attribute of that name.",
    "Name its source under `attributes:` of the mapping, or declare it `optional` or with a default.",
    target=str,
    type=str,
    source=str,
)
ATTRIBUTE_DROPPED = define(
    "INT305",
    "attribute that is dropped",
    "`{path}` of `{source}` has no place in `{target}` and is dropped.",
    "Declare it there, or name the attribute that takes it under `attributes:` of the mapping, if it is wanted.",
    severity=Severity.OBSERVATION,
    path=str,
    source=str,
    target=str,
)
PASSES_UNMAPPED = define(
    "INT306",
    "event type without mapping that passes",
    "`{type}` has no mapping in `{context}` ({direction}) and passes under its own type.",
    "Add a mapping if it should become something else.",
    severity=Severity.OBSERVATION,
    type=str,
    context=str,
    direction=str,
)
NO_WAY = define(
    "INT307",
    "event type without mapping that is not available",
    "`{type}` is not available in `{context}` ({direction}): {reason}.",
    "Add a mapping for it, or `derive: true` to the context.",
    severity=Severity.OBSERVATION,
    type=str,
    context=str,
    direction=str,
    reason=str,
)
READS_UNCONVERTED = define(
    "INT309",
    "expression that reads what a rule would convert",
    "The expression for `{target}` reads `{path}` as it came; the rule `{rule}` does not apply to it.",
    "Map `{target}` to the path alone if the converted value is wanted.",
    severity=Severity.WARNING,
    target=str,
    path=str,
    rule=str,
)
OPTIONAL_FEEDS_REQUIRED = define(
    "INT310",
    "optional attribute that feeds a required one",
    "`{target}` of `{type}` is required, but its source may be missing: such events become dead letters.",
    "Declare it `optional`, or with a default.",
    severity=Severity.WARNING,
    target=str,
    type=str,
)
EVENT_LACKS_ATTRIBUTE = define(
    "INT402",
    "function reads what the event does not have",
    "`{function}` reads `event.{attribute}`, which `{type}` does not have; it converts `{path}` there.",
    "Except these places by a rule of their own, or read an attribute that all these events have.",
    function=str,
    attribute=str,
    type=str,
    path=str,
)
INCOMPATIBLE_DIMENSIONS = define(
    "INT403",
    "units of different dimensions",
    "`{target}` of `{type}` is in {expected}, its source in {found}: they measure different things.",
    "Correct one of the units, or write a rule with a function that makes one of the other.",
    target=str,
    type=str,
    found=str,
    expected=str,
)
NO_FUNCTION_BETWEEN = define(
    "INT404",
    "no function between units",
    "No function converts `{path}` from {found} to {expected}.",
    "Units that are not physical convert by a function only: declare one, as in `{form}`.",
    path=str,
    found=str,
    expected=str,
    form=str,
)
LEFT_IN_UNIT = define(
    "INT407",
    "rule that leaves another unit",
    "The rule `{rule}` leaves `{target}` of `{type}` in {found}, declared is {expected}.",
    "Use a function that gives {expected}, or take the rule out where units convert by themselves.",
    severity=Severity.WARNING,
    rule=str,
    target=str,
    type=str,
    found=str,
    expected=str,
)
FRACTIONAL_RESULT = define(
    "INT409",
    "whole number from a fractional conversion",
    "`{target}` of `{type}` is a whole number in {expected}; a value in {found} does not stay whole.",
    "Declare it `double` or `decimal`, or write a rule with a function that rounds.",
    target=str,
    type=str,
    found=str,
    expected=str,
)
LOSSY = define(
    "INT413",
    "conversion that loses something",
    "`{target}` of `{type}` loses something on the way: {reason}.",
    "Nothing to do if that is meant; it cannot be undone.",
    severity=Severity.OBSERVATION,
    target=str,
    type=str,
    reason=str,
)
UNIT_ON_ONE_SIDE = define(
    "INT415",
    "unit on one side only",
    "`{target}` of `{type}` is copied: {reason}.",
    "Declare the unit on both sides, or on none.",
    severity=Severity.WARNING,
    target=str,
    type=str,
    reason=str,
)
WILL_NOT_BE_EXECUTED = define(
    "INT418",
    "function that will not be executed",
    "Events of type `{type}` will be dead letters in the context `{context}`: `{function}` {what}.",
    "Only deliveries can wait for what is not remembered yet: say `missing: error` or `missing: null`.",
    severity=Severity.WARNING,
    type=str,
    context=str,
    function=str,
    what=str,
)
