"""Contexts from the text of files, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import dedent
from types import MappingProxyType

from situ.contexts.declarations import declare_contexts
from situ.contexts.load import define_contexts, root_declarations
from situ.contexts.model import Rule
from situ.contexts.patterns import Traversal, matches
from situ.contexts.resolve_rules import precedence_key, rules_in_force
from situ.contexts.table import Contexts
from situ.contexts.transform.fusion import FusedTransformation, fuse
from situ.contexts.transform.transformation import Transformation
from situ.lang.documents import Document, parse_yaml
from situ.lang.expr.definitions import load_functions
from situ.lang.expr.faults import find_faults
from situ.lang.problems import Problem, Problems
from situ.lang.types.model import DOUBLE, STRING, TIMESTAMP, Attribute, Decimal, Struct
from situ.lang.types.resolve import load_types

FX_RATES = Struct(
    "",
    (
        Attribute(name="base", type=STRING),
        Attribute(name="quote", type=STRING),
        Attribute(name="rate", type=Decimal(18, 6)),
        Attribute(name="valid_from", type=TIMESTAMP),
    ),
)
BADGES = Struct("", tuple(Attribute(name=each, type=STRING) for each in ("tag", "id")))
DOORS = Struct(
    "", (Attribute(name="id", type=STRING), *(Attribute(name=each, type=DOUBLE) for each in ("x", "turned")))
)

LOGISTICS = {
    "types/logistics.yaml": """\
        types:
          Coordinates: {x: double deg, y: double deg}
          Position: {x: double m, y: double m}       # relative to the truck that carries the product
          PositionWithHeight(Position): {z: double m}
          Money: {currency: string, amount: "decimal(18,2)"}
          UniversalAddress: {firstName: string, lastName: string, specifics: string}
        events:
          ProductStatusEvent: {productId: string, pos: Position, dynamicPrice: Money EUR, dynamicCost: Money EUR}
          DangerCheck: {productId: string, pos: Position}
          PositionUpdate: {coordinates: Coordinates, distanceRemaining: double m, destAddress: UniversalAddress}
          LogInfo: {at: timestamp, address: UniversalAddress}
          TruckPosition: {truck: string, lat: double deg, lon: double deg}
        """,
    "contexts/root.yaml": """\
        context: root
        functions:
          meters_to_yards: double m -> double yd = value * 1.09
        units: {EUR: currency, USD: currency}
        """,
    "contexts/us.yaml": """\
        context: us
        extends: root
        types:
          LatLonPosition: {lat: double deg, lon: double deg}
          USAddress: {firstName: string, lastName: string, street: optional string, number: optional string,
            zip: optional string}
        events:
          CustomerProductStatusEvent: {productId: string, pos: LatLonPosition, price: Money USD, dynamicCost: Money EUR}
          PositionUpdate: {coordinates: Coordinates, distanceRemaining: double yd, destAddress: USAddress}
        maps:
          - out: ProductStatusEvent -> CustomerProductStatusEvent
            attributes: {price: dynamicPrice}        # a rename; all else goes by name
          - out: PositionUpdate -> PositionUpdate
        rules:
          out:
            - Position -> to_latlon
            - DangerCheck.Position -> identity
            - Money -> to_dollars
            - ProductStatusEvent.dynamicCost -> identity
            - UniversalAddress -> to_us_address
            - LogInfo.UniversalAddress -> identity
        functions:
          to_us_address: UniversalAddress -> USAddress = struct(
            value.firstName AS firstName, value.lastName AS lastName,
            kv(value.specifics, 'street') AS street, kv(value.specifics, 'number') AS number,
            kv(value.specifics, 'zip') AS zip)
          to_dollars:
            signature: Money EUR -> Money USD
            time: event
            lookup: {fx: {source: fx_rates, key: {base: value.currency, quote: "'USD'"}, as_of: valid_from}}
            expr: struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)
          to_latlon:
            signature: Position -> LatLonPosition
            key: event.source
            state: {ref: {event: TruckPosition, key: truck, keep: {lat: lat, lon: lon},
              history: 10 min, ttl: 24 h, max_keys: 50000}}
            missing: hold 5 s
            expr: struct(ref.lat + value.y / 111320 AS lat, ref.lon + value.x / (111320 * cos(radians(ref.lat))) AS lon)
        """,
    "contexts/europe.yaml": """\
        context: europe
        extends: root
        types:
          EuAddress: {firstName: string, lastName: string, street: optional string, number: optional string,
            postcode: optional string}
        events:
          PositionUpdate: {coordinates: Coordinates, distanceRemaining: double km, destAddress: EuAddress}
        maps:
          - both: PositionUpdate <-> PositionUpdate
        rules:
          out: [UniversalAddress -> to_eu_address]
          in: [EuAddress -> from_eu_address]
        functions:
          to_eu_address: UniversalAddress -> EuAddress = struct(
            value.firstName AS firstName, value.lastName AS lastName,
            kv(value.specifics, 'street') AS street, kv(value.specifics, 'number') AS number,
            kv(value.specifics, 'zip') AS postcode)
          from_eu_address: EuAddress -> UniversalAddress = struct(
            value.firstName AS firstName, value.lastName AS lastName,
            'street=' || coalesce(value.street, '') || ';number=' || coalesce(value.number, '')
            || ';zip=' || coalesce(value.postcode, '') AS specifics)
        """,
    "contexts/german.yaml": """\
        context: german
        extends: europe
        rules:
          out: [LogInfo.UniversalAddress -> identity]
        """,
}  # fmt: skip
"""A project of logistics in four contexts, the german one below europe."""

SOURCES = {"fx_rates": FX_RATES, "badges": BADGES, "doors": DOORS}


def load(files: Mapping[str, str], sources: Mapping[str, Struct] = SOURCES) -> tuple[Contexts, tuple[Problem, ...]]:
    """The contexts that these files make, as a project folder would, and the problems in order of place."""
    problems = Problems()
    documents = {name: parse_yaml(dedent(text), name) for name, text in files.items()}

    def of(folder: str) -> list[Document]:
        return [each for name, each in documents.items() if name.startswith(folder)]

    declared = declare_contexts(of("contexts/"), problems)
    types = load_types(of("types/"), problems, also=root_declarations(declared))
    faults = find_faults(of("types/"), types)
    functions = load_functions(of("functions/"), types, problems, faults=faults)
    faults = faults.with_functions(functions.faulty)
    contexts = define_contexts(declared, types, functions.defined, problems, faults=faults, sources=sources)
    return contexts, problems.sorted()


def fused_transformations(
    inbound: Mapping[str, Transformation], outbound: Mapping[str, Transformation]
) -> Mapping[str, FusedTransformation]:
    """What leads from one context to the other by expressions alone, by the producer's event type."""
    pairs = ((name, way, outbound.get(way.target.name)) for name, way in inbound.items())
    return MappingProxyType(
        {
            name: fuse(way, back)
            for name, way, back in pairs
            if back is not None and back.source == way.target and not way.externals and not back.externals
        }
    )


def rank_rules(rules: Iterable[Rule], path: Traversal, depth_of: Callable[[str], int]) -> list[Rule]:
    """The rules that match the place, the one that counts first. ``depth_of`` gives how specialised a context is."""
    matching = rules_in_force((rule for rule in rules if matches(rule.pattern, path)), depth_of)
    return [
        rule for pattern in sorted(matching, key=lambda each: precedence_key(each, path)) for rule in matching[pattern]
    ]
