"""`Project`: what a project declares, for DataFrames.

It looks up what users name, refuses what is not there before Spark is asked to do anything, and puts the stages
together. It holds no state beside the compiled deployment and the tables it has read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType

from situ.contexts.model import ROOT, Direction
from situ.contexts.table import Contexts
from situ.lang.catalogue import NO_EVENT_FRAME, NOT_IN_PROJECT, NOT_ON_DATAFRAMES, TYPE_NEEDED
from situ.lang.problems import SituError, nearest
from situ.lang.types.data_column import DataColumn
from situ.lang.types.lookup import no_way_in
from situ.lang.types.model import Struct
from situ.model import Deployment
from situ.routing.model import Subscription
from situ.settings import Settings
from situ.settings.kinds import plain
from situ.sources.table import Keyed, Table
from situ.spark.dataframes.conditions import matches_text, root_types, visible_text
from situ.spark.dataframes.decode import EnvelopeColumns, decode_columns, decode_text, encode_frame
from situ.spark.dataframes.detect import DetectionTerms, blind_policies, detect_batch
from situ.spark.dataframes.frame import EventFrame, check_session, event_frame, schema_of
from situ.spark.dataframes.interpret import FrameStep, dead_letters, frame_step, interpret_frame
from situ.spark.dataframes.source import SituSource
from situ.spark.dataframes.worker import ProjectTerms
from situ.stages.plan import Plan, compile_plan
from situ.tables.cache import open_tables

_VALUE = "value"


def _register(spark: SparkSession) -> None:
    """Make ``format("situ")`` known to the session."""
    try:
        spark.dataSource.register(SituSource)
    except PySparkException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # a session made of another one knows it
            raise


class Project:
    """The declarations of a project, for DataFrames of a Spark session.

    ``folder`` is a project folder; :class:`situ.SituError` with everything that is wrong if it has errors.
    ``from_registry`` takes a version that was deployed. The session must be in UTC.

    >>> plant = Project(spark, "plant")
    >>> faces = plant.decode(spark.read.text("faces.jsonl"), "FaceSeen", context="cameras")
    >>> plant.interpret(faces).where("failure IS NULL").count()
    2
    """

    def __init__(self, spark: SparkSession, folder: str | Path) -> None:
        from situ.project.check import check_folder

        checked = check_folder(Path(folder))
        if checked.deployment is None:
            raise SituError(*checked.errors)
        self._start(spark, checked.deployment, Path(folder))

    @classmethod
    def from_registry(
        cls, spark: SparkSession, url: str, *, version: int | None = None, folder: str | Path = "."
    ) -> Project:
        """What a registry has: the version in force, or an earlier one.

        ``url`` is what ``registry:`` in situ.yaml says (``sqlite:///…``, ``postgresql://…``); ``folder`` is where the
        files of tables are.
        """
        from situ.registry import open_registry

        with open_registry(Path(folder), Settings(registry=plain(url))) as registry:
            deployment = registry.current() if version is None else registry.at(version)
        return cls.of(spark, deployment, folder)

    @classmethod
    def of(cls, spark: SparkSession, deployment: Deployment, folder: str | Path = ".") -> Project:
        """A deployment that is at hand."""
        made = cls.__new__(cls)
        made._start(spark, deployment, Path(folder))
        return made

    def _start(self, spark: SparkSession, deployment: Deployment, folder: Path) -> None:
        check_session(spark)
        self._spark, self._folder = spark, folder
        self._plan: Plan = compile_plan(deployment)
        self._tables: dict[str, Table] = {}
        _register(spark)

    @property
    def deployment(self) -> Deployment:
        """What is declared."""
        return self._plan.deployment

    # ── decode ──

    def decode(
        self,
        frame: DataFrame,
        type: str,
        *,
        context: str = ROOT,
        value: str | None = None,
        attributes: Mapping[str, str] | None = None,
        id: str | None = None,
        source: str | None = None,
        time: str | None = None,
        confidence: str | None = None,
        client: str | None = None,
        ad: str | None = None,
        received: str | None = None,
    ) -> DataFrame:
        """The events of one type in a DataFrame, in the terms of a context.

        They are CloudEvents in JSON, in the column ``value`` (a text or bytes, as Kafka has them); or else their
        attributes are columns, and ``attributes`` says which are not called as they are, in Spark SQL. So do the other
        arguments for the envelope: ``time``, ``source`` and ``id`` of columns, ``client``, ``ad`` and ``received`` of
        both. A row that is no such event keeps its place, with a ``failure``.
        """
        kind = EventFrame(type=type, context=self._context(context))
        column = DataColumn(self._event(type, kind.context), self._types_of(kind.context))
        given = EnvelopeColumns(
            id=id, source=source, time=time, confidence=confidence, client=client, ad=ad, received=received
        )
        if value is not None or (attributes is None and self._has_text(frame, column.struct)):
            return decode_text(frame, self._terms(), kind, column, value or _VALUE, given)
        return decode_columns(frame, kind, column, attributes or {}, given, self._plan.interpretation)

    def _has_text(self, frame: DataFrame, struct: Struct) -> bool:
        """Whether a DataFrame has events as text, where nobody says."""
        schema = schema_of(frame)
        if schema is None:
            return True
        found = next((each for each in schema.fields if each.name == _VALUE), None)
        is_text = found is not None and isinstance(found.dataType, StringType | BinaryType)
        return is_text and struct.attribute(_VALUE) is None

    def encode(self, frame: DataFrame) -> DataFrame:
        """The events of a DataFrame as CloudEvents in JSON, in a column ``value``; rows that failed are left out."""
        return encode_frame(frame, event_frame(frame, "encode"), self._terms())

    # ── interpret ──

    def interpret(self, frame: DataFrame, to: str = ROOT, *, of: str | None = None, context: str = ROOT) -> DataFrame:
        """The events of a DataFrame in the terms of another context; of root, if none is named.

        A DataFrame says of which type and in which terms its events are. Where it cannot be asked, in a query function
        of a pipeline that reads another dataset, ``of`` and ``context`` say it.
        """
        if of is not None:
            self._event(of, self._context(context))
            frame = EventFrame(type=of, context=context).put_on(frame)
        for step in self.steps(frame, to):
            frame = interpret_frame(frame, step, self._terms, self._table)
        return frame

    def steps(self, frame: DataFrame, to: str = ROOT) -> list[FrameStep]:
        """What :meth:`interpret` would do, each with the form it runs in: ``catalyst`` or ``arrow``."""
        kind, wanted = event_frame(frame, "interpret"), self._context(to)
        found: list[FrameStep] = []
        if kind.context not in (ROOT, wanted):
            found.append(self._step(kind, kind.context, Direction.IN))
            kind = found[-1].after
        if wanted != kind.context:
            found.append(self._step(kind, wanted, Direction.OUT))
        return found

    def _step(self, kind: EventFrame, context: str, direction: Direction) -> FrameStep:
        way = self._plan.interpretation.converter(self._context(context), direction, kind.type)
        if way is None:
            if direction is Direction.IN:
                raise SituError(no_way_in(kind.type, context))
            known = sorted({each.target.name for each in self._ways(context)})
            where = f" that context `{context}` has a way out of root for"
            remedy = f"It has these: {', '.join(known) or 'none'}."
            near = nearest(kind.type, known)
            problem = NOT_IN_PROJECT(kind="event type", name=kind.type, where=where, nearest=near, remedy=remedy)
            raise SituError(problem)
        return frame_step(way.transformation, kind, ROOT if direction is Direction.IN else context)

    def _ways(self, context: str) -> Iterable[Any]:
        interpretation = self._plan.interpretation
        for name in sorted(self.deployment.types.events):
            way = interpretation.converter(context, Direction.OUT, name)
            if way is not None:
                yield way.transformation

    # ── conditions ──

    def matches(self, subscription: str, of: DataFrame | str | None = None) -> Column:
        """Whether events, in root's terms, are what a subscription (``client/name``) asks for.

        Where it asks for several types, ``of`` says which the DataFrame has: the DataFrame itself, or the name.
        """
        declared = self._subscription(subscription)
        event = self._type_of(declared, of, "matches")
        return sf.expr(matches_text(self._plan, declared, event))

    def visible(self, to: str, of: DataFrame | str | None = None) -> Column:
        """Whether events, in root's terms, are visible to a subscription (``client/name``), as the scopes are now.

        Who published an event is its advertisement (``event.ad``), or the only one of its client for its type.
        """
        declared = self._subscription(to)
        event = self._type_of(declared, of, "visible")
        return sf.expr(visible_text(self._plan, declared.scopes, event))

    def _type_of(self, subscription: Subscription, of: DataFrame | str | None, method: str) -> Struct:
        if isinstance(of, str):
            return self._event(of, ROOT)
        if of is not None:
            return self._event(event_frame(of, method).type, ROOT)
        types = root_types(self._plan, subscription)
        if len(types) != 1:
            shown = ", ".join(f"`{each}`" for each in types)
            first = types[0] if types else ""
            problem = TYPE_NEEDED(
                name=subscription.id, types=shown, method=method, argument=subscription.id, first=first
            )
            raise SituError(problem)
        return self._event(types[0], ROOT)

    # ── detect ──

    def detect(
        self,
        frames: DataFrame | Sequence[DataFrame],
        policies: Sequence[str] | None = None,
        *,
        clock: Literal["wall", "received"] = "wall",
    ) -> DataFrame:
        """What becomes of situations, by policies of the project; all that run, if none is named.

        ``frames`` are events in root's terms, one DataFrame for each type that these policies listen to. A row tells
        that a situation was opened, continued or closed, with its bindings and causes. In a batch no event is late. In
        a stream time goes on with the clock on the wall; with ``clock="received"``, for records of the past, as
        ``event.received`` says, and nothing is decided before a later event comes.
        """
        given: list[DataFrame] = list(frames) if isinstance(frames, Sequence) else [frames]
        known = [(frame, event_frame(frame, "detect")) for frame in given]
        names = tuple(dict.fromkeys(self.deployment.running if policies is None else policies))
        for name in names:
            self._named("policy", name, self.deployment.running)
        for _, kind in known:
            if kind.context != ROOT:
                reason = f"its events are in the terms of `{kind.context}`, and policies speak root's"
                raise SituError(NO_EVENT_FRAME(method="detect", reason=reason))
        self._check_listened(names, {kind.type for _, kind in known})
        blind = blind_policies(self._plan, names)
        seeing = tuple(name for name in names if name not in blind)
        detecting = self._plan.detecting.only(seeing)
        terms = DetectionTerms(
            project=ProjectTerms.of(self.deployment, {}),
            policies=seeing,
            tables=self._read(detecting.tables.keyed),
        )
        if any(schema_of(frame) is None for frame, _ in known):
            reason = "a query function of a pipeline cannot tell whether it has a stream"
            remedy = "Call it outside of the function, and let the function return what it gives."
            raise SituError(NOT_ON_DATAFRAMES(what="`detect`", reason=reason, remedy=remedy))
        streams = {frame.isStreaming for frame, _ in known}
        if len(streams) > 1:
            reason = "some of its DataFrames are streams and some are not"
            raise SituError(NOT_ON_DATAFRAMES(what="`detect`", reason=reason, remedy="Read all of them as streams."))
        if streams == {True}:
            from situ.spark.dataframes.detect_stream import detect_stream

            return detect_stream(known, terms, wall=clock == "wall")
        return detect_batch(known, terms, self._partitions())

    def _check_listened(self, policies: Iterable[str], given: Collection[str]) -> None:
        """Without the events of one of its types a policy would take for absent what nobody has looked for."""
        types = self.deployment.types
        for name in policies:
            for push in self._plan.detecting.watches[name].patience:
                declared = types.event(self.deployment.push[push].event)
                taken = {str(each) for each in types.subtypes(declared)} if declared is not None else set[str]()
                if not taken & set(given):
                    what = f"The policy `{name}`"
                    reason = f"it listens to events of type `{declared}`, and no DataFrame has them"
                    remedy = f"Give one for each type: `detect([…, {str(declared)[:1].lower()}…], policies=…)`."
                    raise SituError(NOT_ON_DATAFRAMES(what=what, reason=reason, remedy=remedy))

    def _partitions(self) -> int:
        """In how many parts policies are worked, where they can be divided."""
        found = self._spark.conf.get("spark.sql.shuffle.partitions", "")
        return int(found) if found and found.isdecimal() and int(found) > 0 else 2

    # ── failures ──

    def dead_letters(self, frame: DataFrame) -> DataFrame:
        """The rows of a DataFrame that failed, each with everything that is wrong with it, as engines would say it."""
        if schema_of(frame) is not None:
            event_frame(frame, "dead_letters")
        return dead_letters(frame, self._terms())

    # ── names ──

    def _subscription(self, id: str) -> Subscription:
        found: Subscription = self._named("subscription", id, self.deployment.routed)
        return found

    def _context(self, name: str) -> str:
        contexts: Contexts = self._plan.interpretation.contexts
        if contexts.get(name) is None:
            raise self._unknown("context", name, contexts.by_id)
        return name

    def _types_of(self, context: str) -> Any:
        found = self._plan.interpretation.contexts.get(context)
        assert found is not None
        return found.types

    def _event(self, type: str, context: str) -> Struct:
        types = self._types_of(context)
        found: Struct | None = types.event(type)
        if found is None:
            where = "" if context == ROOT else f" in the context `{context}`"
            raise self._unknown("event type", type, types.events, where)
        return found

    def _named(self, kind: str, name: str, known: Mapping[str, Any]) -> Any:
        if name not in known:
            raise self._unknown(kind, name, known)
        return known[name]

    def _unknown(self, kind: str, name: str, known: Collection[str], where: str = "") -> SituError:
        shown = sorted(known)[:10]
        remedy = f"It has {', '.join(f'`{each}`' for each in shown)}." if shown else f"It has no {kind} at all."
        return SituError(NOT_IN_PROJECT(kind=kind, name=name, where=where, nearest=nearest(name, known), remedy=remedy))

    # ── what travels to workers ──

    def _terms(self) -> ProjectTerms:
        """The deployment with the tables that conversions look up in, as they are now."""
        return ProjectTerms.of(self.deployment, self._read(self._plan.interpretation.keyed()))

    def _table(self, source: str) -> Table:
        return self._read({source: self._plan.interpretation.keyed()[source]})[source]

    def _read(self, keyed: Mapping[str, Collection[Keyed]]) -> Mapping[str, Table]:
        """Tables, each read once."""
        missing = {name: self.deployment.sources[name] for name in keyed if name not in self._tables}
        if missing:
            with open_tables(missing, self._folder, keyed={name: keyed[name] for name in missing}) as tables:
                self._tables |= tables.snapshot
        return {name: self._tables[name] for name in keyed}
