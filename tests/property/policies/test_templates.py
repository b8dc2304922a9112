"""Templates: what is written reads back, and renders whatever is known."""

from __future__ import annotations

import datetime as dt
import json

from hypothesis import given
from hypothesis import strategies as st

from situ.lang.problems import Location, SituError
from situ.policies.actions.templates import (
    Template,
    TemplateFacts,
    TemplateReference,
    parse_template,
    render_template,
    render_text,
)

names = st.sampled_from(("A", "B", "room-1", "policy", "situation", "detection", "time", "x_1"))
references = st.one_of(
    st.builds(TemplateReference, names),
    st.builds(
        TemplateReference, names.filter(lambda name: name in ("A", "B")), st.sampled_from(("id", "name", "at", "since"))
    ),
    st.sampled_from((TemplateReference("1"), TemplateReference("2"), TemplateReference("$TOKEN"))),
)
texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda text: "$" not in text)


@st.composite
def templates(draw: st.DrawFn) -> Template:
    parts: list[str | TemplateReference] = []
    for part in draw(st.lists(texts | references, max_size=6)):
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return Template(tuple(parts))


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.binary(),
    st.dictionaries(st.sampled_from(("x", "y")), st.integers()),
    st.lists(st.integers(), max_size=3),
)


@given(templates())
def test_what_is_written_reads_back(template: Template) -> None:
    assert parse_template(str(template), _nowhere) == template


@given(
    templates(),
    st.dictionaries(st.sampled_from(("A", "B")), st.text()),
    st.dictionaries(st.sampled_from(("A", "B")), st.dictionaries(st.sampled_from(("name", "at", "since")), values)),
    st.lists(st.text(), max_size=2),
)
def test_a_template_renders_whatever_is_known(
    template: Template, bindings: dict[str, str], attributes: dict[str, dict[str, object]], arguments: list[str]
) -> None:
    facts = TemplateFacts(policy="p", bindings=bindings, attributes=attributes, arguments=arguments)
    value = render_template(template, facts)
    json.dumps(value, allow_nan=False)
    if template.alone is None:
        assert value == render_text(template, facts)
    assert render_template(template, facts) == value


@given(st.text())
def test_any_text_is_a_template_or_refused_with_a_remedy(text: str) -> None:
    try:
        template = parse_template(text, _nowhere)
    except SituError as error:
        problems = error.problems
    else:
        problems = ()
        assert parse_template(str(template), _nowhere) == template
    assert all(problem.hint for problem in problems)


def _nowhere(offset: int, length: int) -> Location | None:
    return None
