"""The plan of a deployment: what the stages of every engine need of it, compiled once.

The same plan for all engines: they differ in where it runs, not in what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from situ.deployment.detecting import Detecting
from situ.deployment.interpreting import Interpretation
from situ.deployment.meeting import Meeting
from situ.deployment.numbering import NO_NUMBERING
from situ.deployment.promises import Promises
from situ.deployment.reading import Reading
from situ.deployment.seeing import Seeing
from situ.deployment.shapes import Shapes
from situ.deployment.showing import Showing
from situ.deployment.snapshot import Deployment
from situ.deployment.veiling import veil
from situ.event.row import Bad, Row
from situ.quality.whom import Whom
from situ.subscription.routing import Routing, compile_routing
from situ.subscription.stamp import Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One version of the deployment, ready to run."""

    deployment: Deployment
    stamp: Stamp
    routing: Routing
    interpretation: Interpretation
    detecting: Detecting
    promises: Promises
    shapes: Shapes
    """What is done to the events of single subscriptions."""
    seeing: Seeing | None = None
    """Who may see what; None: there are no scopes, and never were."""
    reading: Reading | None = None
    """What policies see, if there are scopes."""
    meeting: Meeting | None = None
    """Who may see situations, if there are scopes."""

    showing: Showing | None = None
    """Which types clients are shown; None: nothing is hidden from anybody."""

    @property
    def measured(self) -> Whom:
        """The publishers that the deployment has profiles of."""
        return Whom.of(self.deployment.quality.profiles.values())

    def stamped(self, rows: Iterable[Row | Bad]) -> list[Row | Bad]:
        """The rows with their advertisements, or why they have none, as their clients may know it."""
        stamped = self.stamp.each(rows)
        return stamped if self.showing is None else veil(stamped, self.showing, self.stamp.advertises)

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
    detecting = Detecting.of(deployment, previous.detecting if previous is not None else None)
    promises = Promises(deployment, interpretation, previous.promises if previous is not None else None)
    seeing = Seeing.of(deployment, previous.seeing if previous is not None else None)
    return Plan(
        deployment=deployment,
        interpretation=interpretation,
        detecting=detecting,
        promises=promises,
        seeing=seeing,
        showing=Showing.of(deployment, previous.showing if previous is not None else None),
        reading=Reading.of(detecting, seeing),
        meeting=Meeting.of(deployment, detecting, seeing),
        shapes=Shapes(deployment),
        stamp=Stamp(
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
