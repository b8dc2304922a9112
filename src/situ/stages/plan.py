"""The plan of a deployment, compiled once for all engines, and the stages decode, interpret and route.

`compile_plan` makes a `Plan`, the functions behind it are the stages, each over rows and a plan.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from situ.event.message import EventKey
from situ.event.row import BadRow, Origin, Row
from situ.model.deployment import Deployment
from situ.quality.measurement.meter import MeasuredPublishers
from situ.routing.routing_table import RoutedRows, RoutingTable, compile_routing
from situ.scopes.stamp_codec import NO_NUMBERING
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.situation_events import SituationMeet
from situ.stages.detect.step import PolicyReader
from situ.stages.interpret import Interpretation
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.shape import ShapePlan
from situ.stages.stamp import AdvertisementCheck, AdvertisementFilters
from situ.stages.type_visibility import TypeVisibility
from situ.stages.visibility import EventVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The plan. It is the same for all engines: they differ in where it runs, not in what it says.


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One version of the deployment, ready to run."""

    deployment: Deployment
    stamp: AdvertisementCheck
    routing: RoutingTable
    interpretation: Interpretation
    detecting: DetectionPlan
    promises: AdvertisementFilters
    shapes: ShapePlan
    """What is done to the events of single subscriptions."""
    seeing: EventVisibility | None = None
    """Who may see what; None: there are no scopes, and never were."""
    reading: PolicyReader | None = None
    """What policies see, if there are scopes."""
    meeting: SituationMeet | None = None
    """Who may see situations, if there are scopes."""

    showing: TypeVisibility | None = None
    """Which types clients are shown; None: nothing is hidden from anybody."""

    @property
    def measured(self) -> MeasuredPublishers:
        """The publishers that the deployment has profiles of."""
        return MeasuredPublishers.of(self.deployment.quality.profiles.values())

    @property
    def version(self) -> int:
        return self.deployment.version

    @property
    def zone(self) -> str:
        return self.deployment.settings.zone

    def decided(self, epochs: Set[int]) -> str:
        """What a delivery of events stamped in these epochs says of how it was decided that it may be made: by which
        version, and in which epoch if that is theirs. Nothing where nothing had to be decided."""
        if self.seeing is None:
            return ""
        return f"{self.version} {self.seeing.epoch if epochs <= {self.seeing.epoch} else '-'}"

    def learn(self, offered: Deployment) -> None:
        """The advertisements of a later version hold already: their clients were told so."""
        new = sorted(offered.advertisements.keys() - self.deployment.advertisements.keys())
        if not new:
            return
        advertised = {id: offered.advertisements[id] for id in new}
        self.stamp.learn({id: self.interpretation.advertised(each) for id, each in advertised.items()})
        self.promises.learn(advertised)
        self.stamp.learn_promises(self.promises)
        if self.seeing is not None:
            self.seeing.learn(offered, new)


def compile_plan(deployment: Deployment, previous: Plan | None = None) -> Plan:
    """The plan of a deployment; what the previous one has compiled already is taken from there."""
    deployment = deployment.numbered(previous.deployment.numbers if previous is not None else NO_NUMBERING)
    interpretation = Interpretation.of(deployment, previous.interpretation if previous is not None else None)
    detecting = DetectionPlan.of(deployment, previous.detecting if previous is not None else None)
    promises = AdvertisementFilters(deployment, interpretation, previous.promises if previous is not None else None)
    seeing = EventVisibility.of(deployment, previous.seeing if previous is not None else None)
    return Plan(
        deployment=deployment,
        interpretation=interpretation,
        detecting=detecting,
        promises=promises,
        seeing=seeing,
        showing=TypeVisibility.of(deployment, previous.showing if previous is not None else None),
        reading=PolicyReader.of(detecting, seeing),
        meeting=SituationMeet.of(deployment, detecting, seeing),
        shapes=ShapePlan(deployment),
        stamp=AdvertisementCheck(
            deployment.types,
            {id: interpretation.advertised(each) for id, each in deployment.advertisements.items()},
            {name: watch.publishes for name, watch in detecting.watches.items()},
            promises,
        ),
        routing=compile_routing(
            types=deployment.types,
            functions=deployment.definitions,
            subscriptions=deployment.routed,
            limits=deployment.settings.expression_limits,
            mediator=interpretation,
            sight=seeing,
            previous=previous.routing if previous is not None else None,
        ),
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage decode: a message of a client → rows, each an event of its declared type or the reasons why it is none.


def decode(body: bytes, key: EventKey, received: int, plan: Plan) -> list[Row | BadRow]:
    """The rows of a message whose first event has this key. They have no positions before they are stored.

    Nor may they have text before they are in root's terms.
    """
    origin = Origin(
        client=key.client,
        incarnation=key.incarnation,
        seq=key.seq,
        received=received,
        pos=0,
        context=plan.interpretation.stamped(key.client),
    )
    rows = plan.interpretation.decode(body, origin, bare=True)
    for row in rows:
        row.pos = 0
    return rows


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage interpret, twice: what came in put in root's terms, and what is delivered in the terms of who gets it.


def interpret(rows: list[Row | BadRow], plan: Plan) -> list[Row | BadRow]:
    """The rows of one message in root's terms; what was bad before stays as it is."""
    return plan.interpretation.into_root(rows)


def interpret_out(rows: Sequence[Row], lines: Sequence[bytes], routed: RoutedRows, plan: Plan) -> ConvertedDeliveries:
    """What is delivered of these rows, put in the terms of each context once."""
    return plan.interpretation.worded(rows, lines, routed, plan.routing)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage route: which delivery groups and which clients want each event.


def route(rows: Sequence[Row], plan: Plan, *, queued: bool = False) -> RoutedRows:
    """The deliveries of these rows, in their order; ``queued`` if what waits is decided when it is handed over."""
    if len(rows) == 1:
        return plan.routing.route_one(rows[0], queued=queued)
    return plan.routing.route(rows, queued=queued)
