"""What becomes of the events of two projects, by the generated functions and by the reference."""

from __future__ import annotations

import json

import pytest

from situ.contexts.transform.converter import Converter
from situ.lang.types.json_codec import encode
from tests.oracles.transformation import transform
from tests.transformations import ENVELOPE
from tests.unit.contexts.test_resolve_rules import ROWS
from tests.worked_examples import Example, at, competing, logistics


def hold(example: Example) -> None:
    made, converter = example.made, Converter(example.made)
    found = converter.data(ENVELOPE, example.data)
    for path, value in example.expected.items():
        assert at(found, path) == value, (example.name, path)
    slow = transform(example.context, made.direction, made.source, ENVELOPE, example.data, made.target)
    assert (slow.data, slow.faults) == (found, ())
    text = json.dumps(encode(made.source, example.data, made.types)).encode()
    assert json.loads(converter.text(ENVELOPE, text)) == encode(made.target, found, made.targets)


def test_logistics() -> None:
    examples = list(logistics())
    assert len(examples) == 10
    for example in examples:
        hold(example)


@pytest.mark.parametrize("number", ROWS)
def test_the_rule_that_counts_converts_the_value(number: str) -> None:
    hold(competing(number))
