"""Contexts in XML are those of the equal YAML, and what is not understood is said, all at once, with its place."""

from __future__ import annotations

import random
from pathlib import Path
from textwrap import dedent

import pytest

from situ.contexts.load import load_contexts
from situ.contexts.model import Direction
from situ.contexts.table import Contexts
from situ.contexts.transform.transformation import transformations
from situ.contexts.xml_form import as_yaml, check_references, parse_context_xml
from situ.lang.documents import Document, DocumentLimits, parse_yaml, to_data
from situ.lang.problems import Problem, Problems
from situ.lang.types.resolve import load_types
from situ.project.check import check_folder
from situ.project.format import format_folder
from tests.context_files import LOGISTICS, SOURCES
from tests.project_files import MINIMAL, write

US = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- in the words of those who know classes -->
<context id="us" extends="root">
  <types>
    <type>com.acme.Coordinates</type>
    <type name="com.acme.us.LatLonPosition">
      <attribute name="lat" type="double" unit="deg"/>
      <attribute name="lon" type="double" unit="deg"/>
    </type>
    <type name="USAddress">
      <attribute name="firstName" type="string"/>
      <attribute name="lastName" type="string"/>
      <attribute name="street" type="string" optional="true"/>
      <attribute name="number" type="string" optional="true"/>
      <attribute name="zip" type="string" optional="true"/>
    </type>
  </types>
  <events>
    <event name="CustomerProductStatusEvent">
      <attribute name="productId" type="string"/>
      <attribute name="pos" type="com.acme.us.LatLonPosition"/>
      <attribute name="price" type="Money" unit="USD"/>
      <attribute name="dynamicCost" type="Money" unit="EUR"/>
    </event>
    <event name="com.acme.us.PositionUpdate">
      <attribute name="coordinates" type="com.acme.Coordinates"/>
      <attribute name="distanceRemaining" type="double" unit="yd"/>
      <attribute name="destAddress" type="USAddress"/>
    </event>
  </events>
  <mappings>
    <mapping from="com.acme.eu.ProductStatusEvent" to="CustomerProductStatusEvent" dir="outgoing">
      <attribute name="price" from="dynamicPrice"/>
    </mapping>
    <mapping from="com.acme.eu.PositionUpdate" to="com.acme.us.PositionUpdate" dir="outgoing"/>
  </mappings>
  <rules>
    <rule pattern="Position" function="to_latlon"/>
    <rule pattern="DangerCheck.Position" function="identity"/>
    <rule pattern="Money" function="to_dollars"/>
    <rule pattern="com.acme.eu.ProductStatusEvent.dynamicCost" function="identity"/>
    <rule pattern="UniversalAddress" function="com.acme.us.conversion.to_us_address"/>
    <rule pattern="LogInfo.UniversalAddress" function="identity"/>
  </rules>
  <functions>
    <function name="to_us_address" signature="UniversalAddress -> USAddress">
      struct(value.firstName AS firstName, value.lastName AS lastName,
        kv(value.specifics, 'street') AS street, kv(value.specifics, 'number') AS number,
        kv(value.specifics, 'zip') AS zip)
    </function>
    <function name="to_dollars" signature="Money EUR -> Money USD" time="event">
      <lookup name="fx" source="fx_rates" as_of="valid_from">
        <key column="base">value.currency</key>
        <key column="quote">'USD'</key>
      </lookup>
      struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)
    </function>
    <function name="to_latlon" signature="Position -> com.acme.us.LatLonPosition" key="event.source" missing="hold 5 s"
        expr="struct(ref.lat + value.y / 111320 AS lat,
          ref.lon + value.x / (111320 * cos(radians(ref.lat))) AS lon)">
      <state name="ref" event="com.acme.eu.TruckPosition" key="truck" history="10 min" ttl="24 h" max_keys="50000">
        <keep name="lat">lat</keep>
        <keep name="lon">lon</keep>
      </state>
    </function>
  </functions>
</context>
"""

TYPES = """\
types:
  Address: {city: string, zip: string}
  Short: {zip: string}
  Height: {z: double m}
events:
  Sent: {at: Address, far: double m, n: long}
  Other: {at: Address}
"""
ROOT = """\
context: root
functions:
  shorten: Address -> Short = struct(value.zip AS zip)
"""


def documents(files: dict[str, str]) -> dict[str, Document]:
    return {
        name: parse_context_xml(text, name) if name.endswith(".xml") else parse_yaml(dedent(text), name)
        for name, text in files.items()
    }


def load(files: dict[str, str]) -> tuple[Contexts, tuple[Problem, ...]]:
    problems = Problems()
    read = documents(files)
    contexts = [each for name, each in read.items() if name.startswith("contexts/")]
    units = parse_yaml("units: {EUR: currency, USD: currency}", "types/units.yaml")
    types = load_types([units, *(each for name, each in read.items() if name.startswith("types/"))], problems)
    loaded = load_contexts(contexts, types, {}, problems, sources=SOURCES)
    check_references(contexts, loaded, problems)
    return loaded, problems.sorted()


def plans(contexts: Contexts, id: str) -> dict[tuple[str, str], str]:
    context = contexts.by_id[id]
    found = Problems()
    return {
        (direction.value, name): each.plan
        for direction in Direction
        for name, each in transformations(context, direction, found).items()
    }


def small(text: str, **more: str) -> dict[str, str]:
    return {"types/t.yaml": TYPES, "contexts/root.yaml": ROOT, "contexts/us.xml": text, **more}


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.code.code for problem in problems if problem.is_error]


# ── equal to YAML ─────────────────────────────────────────────────────────────────────────────────


def test_both_forms_load_to_equal_contexts() -> None:
    root = LOGISTICS["contexts/root.yaml"].replace("units: {EUR: currency, USD: currency}", "")
    base = {"types/logistics.yaml": LOGISTICS["types/logistics.yaml"], "contexts/root.yaml": root}
    in_yaml, said = load({**base, "contexts/us.yaml": LOGISTICS["contexts/us.yaml"]})
    assert not codes(said)
    in_xml, said = load({**base, "contexts/us.xml": US})
    assert not [str(problem) for problem in said]
    assert in_xml.as_json() == in_yaml.as_json()
    assert plans(in_xml, "us") == plans(in_yaml, "us")
    assert len(plans(in_xml, "us")) > 2


def test_as_yaml_gives_the_file_that_declares_the_same() -> None:
    document = parse_context_xml(US, "contexts/us.xml")
    text = as_yaml(document)
    again = parse_yaml(text, "contexts/us.yaml")
    assert document.root is not None
    assert again.root is not None
    assert not again.problems
    assert to_data(again.root) == to_data(document.root)
    assert text.startswith("context: us\nextends: root\ntypes:\n  LatLonPosition:\n    lat: double deg\n")
    assert "- out: PositionUpdate -> PositionUpdate\n" in text


def test_yaml_keeps_text_that_looks_like_a_number() -> None:
    text = """<events><event name="Sent">
      <attribute name="a" type="string" default='"1e3"'/><attribute name="b" type="double" default="2.5"/>
      <attribute name="c" type="[string]" default='["x", "null"]'/></event></events>"""
    document = parse_context_xml(text, "contexts/us.xml")
    again = parse_yaml(as_yaml(document), "contexts/us.yaml")
    assert again.root is not None
    event = to_data(again.root)["events"]["Sent"]
    assert [event[name]["default"] for name in "abc"] == ["1e3", 2.5, ["x", "null"]]


def test_a_document_without_meaning_has_no_yaml() -> None:
    assert as_yaml(parse_context_xml("<context", "contexts/us.xml")) == ""


# ── fragments, names, directions ──────────────────────────────────────────────────────────────────

FRAGMENT = """\
<types><type>com.acme.Address</type></types>
<events><event name="com.acme.us.Sent"><attribute name="at" type="Short"/></event></events>
<mappings><mapping from="com.acme.eu.Sent" to="com.acme.us.Sent" dir="outgoing"/></mappings>
<rules><rule pattern="com.acme.Address" function="toShort"/></rules>
<functions><function name="toShort" class="com.acme.us.conversion.shorten"/></functions>
"""
EQUAL = """\
context: us
extends: root
events:
  Sent: {at: Short}
maps:
  - out: Sent -> Sent
rules: [Address -> shorten]
"""


def test_a_bare_fragment_takes_the_name_of_its_file() -> None:
    in_xml, said = load(small(FRAGMENT))
    assert not codes(said)
    in_yaml, _ = load({"types/t.yaml": TYPES, "contexts/root.yaml": ROOT, "contexts/us.yaml": EQUAL})
    assert in_xml.as_json() == in_yaml.as_json()
    assert plans(in_xml, "us") == plans(in_yaml, "us")


def test_an_alias_names_what_is_called_otherwise() -> None:
    text = FRAGMENT.replace("<type>com.acme.Address</type>", '<type alias="Address">com.acme.Anschrift</type>')
    text = text.replace('pattern="com.acme.Address"', 'pattern="com.acme.Anschrift"')
    text = text.replace("conversion.shorten", 'conversion.Kürzen" alias="shorten')
    in_xml, said = load(small(text))
    assert not codes(said)
    in_yaml, _ = load({"types/t.yaml": TYPES, "contexts/root.yaml": ROOT, "contexts/us.yaml": EQUAL})
    assert in_xml.as_json() == in_yaml.as_json()


def test_dots_of_a_pattern_are_not_taken_for_packages() -> None:
    text = FRAGMENT.replace('pattern="com.acme.Address"', 'pattern="Sent.at"')
    contexts, said = load(small(text))
    assert not codes(said)
    assert [str(rule) for rule in contexts.by_id["us"].rules] == ["Sent.at -> shorten"]


@pytest.mark.parametrize(
    ("mapping", "rules", "expected"),
    [
        ("outgoing", '<rules dir="outgoing"><rule pattern="Address" function="shorten"/></rules>', "out"),
        ("both", '<rules><rule pattern="Address" function="shorten" dir="outgoing"/></rules>', "out"),
        ("out", '<rules><rule pattern="Address" function="shorten"/></rules>', "out"),
        ("in", '<rules><rule pattern="Address" function="shorten"/></rules>', "in"),
        ("incoming", '<rules><rule pattern="Address" function="shorten" dir="in"/></rules>', "in"),
    ],
)
def test_rules_have_the_direction_of_their_own_or_of_the_mappings(mapping: str, rules: str, expected: str) -> None:
    text = f'<mappings><mapping from="Sent" to="Sent" dir="{mapping}"/></mappings>{rules}'
    contexts, said = load(small(text))
    assert not codes(said)
    assert [rule.direction.value for rule in contexts.by_id["us"].rules] == [expected]


def test_derive_units_and_long_attributes_mean_what_they_do_in_yaml() -> None:
    text = """\
    <context id="us" extends="root" derive="true">
      <units><unit name="crates" kind="label"/></units>
      <types>
        <type name="Tall" extends="Height"><attribute name="n" type="long" unit="crates" default="3"/></type>
      </types>
      <mappings>
        <mapping from="Sent" to="Other" dir="outgoing">
          <attribute name="at.city" expr="upper(data.at.city)"/><attribute name="at.zip" default='"0"'/>
        </mapping>
      </mappings>
    </context>"""
    equal = """\
    context: us
    derive: true
    units: {crates: label}
    types:
      Tall(Height): {n: {type: long, unit: crates, default: 3}}
    maps:
      - out: Sent -> Other
        attributes: {at.city: {expr: upper(data.at.city)}, at.zip: {default: "0"}}
    """
    in_xml, said = load(small(text))
    assert not codes(said)
    in_yaml, said = load({"types/t.yaml": TYPES, "contexts/root.yaml": ROOT, "contexts/us.yaml": equal})
    assert not codes(said)
    assert in_xml.as_json() == in_yaml.as_json()


# ── what is not understood ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "nothing is there"),
        ("<context>", (1, 1), "`<context>` is never closed"),
        ("<context id='us'>\n  <types></context>", (2, 12), "mismatched tag"),
        ("<context id='us' id='v'/>", (1, 18), "duplicate attribute"),
        ("<context id='us'>&other;</context>", (1, 18), "undefined entity"),
        ("<!DOCTYPE context><context id='us'/>", (1, 1), "a document type or entity"),
        ('<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY x "y">]><context id="us"/>', (2, 1), "a document type"),
        ("<context id='us'><?php run ?></context>", (1, 18), "the instruction `<?php`"),
        ('<?xml version="1.0" encoding="latin-1"?><context id="us"/>', (1, 31), "the encoding `latin-1`"),
        ("us <rules/>", (1, 1), "the text `us`"),
        ("<context/>", (1, 1), "`<context>` without `id`"),
        ("<context id='us'/><rules/>", (1, 19), "`<rules>` after the context"),
        ("<rules/><kontext/>", (1, 9), "`<kontext>` in the file"),
        ("<context id='us' parent='root'/>", (1, 18), "`<context>` has no `parent`"),
        ("<context id='us'>who</context>", (1, 1), "the text `who` in `<context>`"),
        ("<rules><rule pattern='Address'/></rules>", (1, 8), "`<rule>` without `function`"),
        ("<rules><rule pattern=' ' function='f'/></rules>", (1, 22), "the text ` `; expected a pattern"),
        ("<rules><rule pattern='A' function='f g'/></rules>", (1, 35), "the text `f g`; expected a function"),
        ("<mappings><mapping from='Sent' to='Sent' dir='outward'/></mappings>", (1, 46), "the direction `outward`"),
        ("<mappings><mapping from='a b' to='Sent' dir='out'/></mappings>", (1, 25), "the text `a b`"),
        (
            "<mappings><mapping from='Sent' to='Sent' dir='out'><attribute name='n'/></mapping></mappings>",
            (1, 52),
            "`n` with 0 of them",
        ),
        ("<types><type/></types>", (1, 8), "`<type>` without a name"),
        ("<types><type name='A'>B</type></types>", (1, 23), "a type with a name and a text"),
        ("<functions><function name='f' time='event'/></functions>", (1, 12), "`f` without `signature`"),
        ("<functions><function name='a b'/></functions>", (1, 12), "`a b` without a name of a function"),
        (
            "<functions><function name='f' class='a.F' signature='long -> long' expr='value'/></functions>",
            (1, 31),
            "a class beside a signature",
        ),
    ],
)
def test_what_is_not_understood_is_said_with_its_place(text: str, place: tuple[int, int], message: str) -> None:
    problem = parse_context_xml(text, "contexts/us.xml").problems[0]
    assert problem.code.code == "INT509"
    assert problem.location is not None
    assert (problem.location.line, problem.location.column) == place
    assert message in problem.message
    assert problem.hint


def test_rules_with_and_without_direction_do_not_mix() -> None:
    text = "<rules><rule pattern='A' function='f' dir='in'/><rule pattern='B' function='f'/></rules>"
    (problem,) = parse_context_xml(text, "contexts/us.xml").problems
    assert problem.code.code == "INT509"
    assert "beside others" in problem.message


def test_everything_is_said_at_once() -> None:
    text = """\
    <context id="us">
      <typs/>
      <rules><rule patern="Address" function="shorten"/><rule pattern="Adress" function="shorten"/></rules>
      <mappings><mapping from="com.acme.Snt" to="Sent" dir="outgoing"/></mappings>
      <functions><function name="x" class="com.acme.missing"/></functions>
      <types><type>com.acme.Nowhere</type></types>
    </context>"""
    _, said = load(small(text))
    assert codes(said) == ["INT509", "INT509", "INT509", "INT202", "INT301", "INT208", "INT101"]
    hints = [problem.hint for problem in said]
    assert hints[0] == "Did you mean `types`?"
    lines = [problem.location.line for problem in said if problem.location is not None]
    assert lines == [2, 3, 3, 3, 4, 5, 6]


def test_places_lead_into_attributes_and_names() -> None:
    text = "<mappings>\n<mapping from='com.acme.Snt' to='Sent' dir='outgoing'/>\n</mappings>"
    _, said = load(small(text))
    (location,) = [problem.location for problem in said if problem.is_error]
    assert location is not None
    assert (location.line, location.column, location.length) == (2, 25, 3)


def test_places_of_expressions_are_exact_in_text_and_attributes() -> None:
    for text, place in (
        ('<functions>\n<function name="f" signature="double -> double">\n  vaule * 2\n</function></functions>', (3, 3)),
        ('<functions><function name="f" signature="double -> double"\nexpr="1 + vaule"/></functions>', (2, 11)),
        ('<!-- é -->\n<functions><function name="f" signature="dbl -> long" expr="value"/></functions>', (2, 42)),
    ):
        _, said = load(small(text))
        locations = [problem.location for problem in said if problem.is_error and problem.location is not None]
        assert place in [(each.line, each.column) for each in locations], [str(each) for each in said]


def test_text_behind_a_tag_is_not_taken_for_its_attributes() -> None:
    document = parse_context_xml("<types><type >e='1'</type></types>", "contexts/us.xml")
    assert [problem.code.code for problem in document.problems] == ["INT509"]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_text_it_is_nodes_or_problems_and_nodes_have_their_yaml(seed: int) -> None:
    chance = random.Random(seed)
    pieces = ["", "<", ">", "/", '"', "'", "=", "é", "&lt;", "<type>", "</type>", "-->", "]]>", "\0", "\x85", "\u2028"]
    for _ in range(10):
        text = chance.choice((US, FRAGMENT))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(pieces) + text[at + chance.choice((0, 0, 1, 5)) :]
        document = parse_context_xml(text, "contexts/us.xml")
        again = parse_yaml(as_yaml(document), "contexts/us.yaml")
        assert document.root is not None or document.problems
        if document.root is not None:
            assert again.root is not None
            assert to_data(again.root) == to_data(document.root)


def test_a_name_is_declared_once() -> None:
    text = "<types><type name='A'/><type name='A'/></types>"
    (problem,) = parse_context_xml(text, "contexts/us.xml").problems
    assert problem.code.code == "P106"


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("<a>" * 200 + "</a>" * 200, DocumentLimits()),
        ("<rules>" + "<rule/>" * 50 + "</rules>", DocumentLimits(nodes=20)),
        ("<rules/>" + " " * 100, DocumentLimits(size=50)),
    ],
)
def test_what_is_read_is_bounded(text: str, limits: DocumentLimits) -> None:
    document = parse_context_xml(text, "contexts/us.xml", limits)
    assert document.root is None
    assert [problem.code.code for problem in document.problems] == ["P108"]


def test_not_more_is_said_than_anybody_reads() -> None:
    document = parse_context_xml("<rules>" + "<rule/>" * 500 + "</rules>", "contexts/us.xml")
    assert len(document.problems) == DocumentLimits().problems


# ── in a project ──────────────────────────────────────────────────────────────────────────────────


def test_a_project_reads_contexts_in_xml(tmp_path: Path) -> None:
    files = {**MINIMAL, "types/t.yaml": TYPES, "contexts/root.yaml": ROOT, "contexts/us.xml": FRAGMENT}
    write(tmp_path, files)
    checked = check_folder(tmp_path, {})
    assert not checked.errors
    assert checked.deployment is not None
    assert "contexts/us.xml" in checked.files
    assert checked.deployment.contexts.get("us") is not None


def test_a_project_says_what_an_xml_file_refers_to_in_vain(tmp_path: Path) -> None:
    text = FRAGMENT.replace("<type>com.acme.Address</type>", "<type>com.acme.Addres</type>")
    text = text.replace("conversion.shorten", "conversion.shortn").replace("com.acme.Address", "Address")
    write(tmp_path, {**MINIMAL, "types/t.yaml": TYPES, "contexts/root.yaml": ROOT, "contexts/us.xml": text})
    errors = check_folder(tmp_path, {}).errors
    assert codes(errors) == ["INT101", "INT208"]
    assert [problem.hint for problem in errors] == ["Did you mean `Address`?", "Did you mean `shorten`?"]


def test_formatting_leaves_xml_alone(tmp_path: Path) -> None:
    write(tmp_path, {**MINIMAL, "contexts/us.xml": "<rules>  \n</rules>\n"})
    assert "contexts/us.xml" not in format_folder(tmp_path, write=True)
    assert (tmp_path / "contexts/us.xml").read_text() == "<rules>  \n</rules>\n"
