"""The plan of a deployment, compiled once for all engines: what the stages need, each with rows and a plan.

It is the same for all engines: they differ in where it runs, not in what it says.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from situ.model.deployment import Deployment
from situ.quality.measurement.meter import MeasuredPublishers
from situ.routing.routing_table import RoutingTable, compile_routing
from situ.scopes.stamp_codec import NO_NUMBERING
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.situation_events import SituationMeet
from situ.stages.detect.step import PolicyReader
from situ.stages.interpret import Interpretation
from situ.stages.shape import ShapePlan
from situ.stages.stamp import AdvertisementCheck, AdvertisementFilters
from situ.stages.type_visibility import TypeVisibility
from situ.stages.visibility import EventVisibility


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
            promises=promises if promises.promising else None,
            previous=previous.routing if previous is not None else None,
        ),
    )
