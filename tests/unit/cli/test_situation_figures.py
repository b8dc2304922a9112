"""How policies are: what a run says of them every second, and how people see it."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, RenderableType

from situ.cli.render.run import show_line, show_live, show_summary
from situ.cli.render.status import show_policy_metrics
from situ.lang.catalogue import UNKNOWN_POLICY
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.lifecycle import OpenSituation, SituationPhase, SituationTransition
from situ.policies.load import StoppedPolicy
from situ.policies.model import Cause
from situ.policies.watermark import SourceTimeouts, SourceTimes, waits_for
from situ.project.check import check_folder
from situ.registry.run_metrics import (
    DetectionMetrics,
    FailedTest,
    PolicyMetrics,
    PushSourceMetrics,
    RunMetrics,
    decode_metrics,
    detection_metrics,
)
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.situation_events import Anomaly, DetectionCounts, DetectionStatus
from tests.guarded import FILES
from tests.project_files import write

NAME = "unaccompanied-guest"
S = 1_000_000


def guarded(folder: Path) -> Deployment:
    write(folder, FILES)
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.problems
    return checked.deployment


def transition(stage: SituationPhase, detection: str = "d") -> SituationTransition:
    situation = OpenSituation(
        id="s", policy=NAME, bindings=(("A", "g1"),), start=0, last=0, detections=1, causes=(Cause("reader", "e1"),)
    )
    return SituationTransition(id=f"s.{stage}", stage=stage, situation=situation, time=0, detection=detection)


def text_of(shown: Iterable[RenderableType]) -> str:
    console = Console(file=io.StringIO(), width=200, markup=False, highlight=False)
    for each in shown:
        console.print(each)
    found: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in found.splitlines())


def test_the_source_that_is_least_far_is_waited_for_unless_it_is_silent() -> None:
    patience = {
        "a": SourceTimeouts(lateness=1, idle=10),
        "b": SourceTimeouts(lateness=5, idle=10),
        "c": SourceTimeouts(lateness=0, idle=1),
    }
    seen = {"a": SourceTimes(100, 100, 100), "b": SourceTimes(102, 102, 102)}
    assert waits_for(seen, patience, 105) == "b"
    assert waits_for(seen, patience, 111) == "b"
    assert waits_for({**seen, "b": SourceTimes(90, 90, 90)}, patience, 105) == "a"
    assert waits_for(seen, patience, 200) is None
    assert waits_for({}, patience, 0) is None


def test_tallies_add_up() -> None:
    tally, other = DetectionCounts(), DetectionCounts()
    for each in (tally, other):
        each.take_told(
            [
                transition(SituationPhase.OPENED),
                transition(SituationPhase.CONTINUED),
                transition(SituationPhase.CLOSED, ""),
            ]
        )
        each.take_late({7: ["p", "q"], 9: ["p"]})
        each.unknown["seen"] = Anomaly(2, "person x9")
    tally.add(other)
    assert (tally.opened, tally.detections) == ({NAME: 2}, {NAME: 4})
    assert (tally.late, tally.late_events) == ({"p": 4, "q": 2}, 4)
    assert tally.unknown == {"seen": Anomaly(4, "person x9")}


def test_figures_of_policies_that_run_are_stopped_and_have_heard_nothing(tmp_path: Path) -> None:
    deployment = guarded(tmp_path)
    reason = UNKNOWN_POLICY(name="it", nearest=())
    deployment = replace(deployment, stopped={"old": StoppedPolicy(text="policy old", reasons=(reason,))})
    detecting = DetectionPlan.of(deployment)
    progress, _ = DetectionProgress().adopted(detecting, None)
    silent = detection_metrics(deployment, DetectionStatus(progress=progress, detecting=detecting), 50 * S)
    assert silent.policies[NAME] == PolicyMetrics()
    assert (silent.running, silent.stopped) == (1, 1)
    assert silent.policies["old"].state == "stopped"
    assert reason.message in silent.policies["old"].reason
    assert silent.push == {"seen": PushSourceMetrics()}

    heard = progress.heard({"seen": SourceTimes(40 * S, 40 * S, 41 * S)})
    tally = DetectionCounts(opened={NAME: 3}, detections={NAME: 5}, late={NAME: 1}, late_events=1, events={"seen": 9})
    tally.unknown["seen"] = Anomaly(4, "person x9")
    watched = DetectionStatus(progress=heard, detecting=detecting, tally=tally)
    awake = detection_metrics(deployment, watched, 42 * S)
    expected = PolicyMetrics(settled=39 * S, waits_for="seen", opened=3, detections=5, late=1)
    assert awake.policies[NAME] == expected
    assert awake.push["seen"] == PushSourceMetrics(
        events=9, heard=41 * S, latest=40 * S, idle=False, unknown=4, sample="person x9"
    )
    later = detection_metrics(deployment, watched, 60 * S)
    assert later.policies[NAME] == replace(expected, settled=59 * S, waits_for=None)
    assert later.push["seen"].idle

    asleep = replace(deployment, suspended=frozenset({NAME}))
    resting = detection_metrics(asleep, replace(watched, detecting=DetectionPlan.of(asleep)), 60 * S)
    assert (resting.running, resting.suspended) == (0, 1)
    assert resting.policies[NAME] == PolicyMetrics(state="suspended", opened=3, detections=5, late=1)

    nothing = detection_metrics(deployment, DetectionStatus(), 0)
    assert nothing.policies[NAME] == PolicyMetrics()


def test_situations_are_closed_with_what_became_of_their_policy(tmp_path: Path) -> None:
    deployment = guarded(tmp_path)
    reason = UNKNOWN_POLICY(name="it", nearest=())
    gone = replace(deployment, policies={})
    becomes = {
        "policy removed": gone,
        "policy suspended": replace(deployment, suspended=frozenset({NAME})),
        "policy stopped": replace(gone, stopped={NAME: StoppedPolicy(text="policy it", reasons=(reason,))}),
    }
    before = DetectionPlan.of(deployment)
    progress, _ = DetectionProgress().adopted(before, None)
    opened = transition(SituationPhase.OPENED).situation
    kept = replace(progress.policies[NAME], reached=5 * S, open={opened.bindings: opened})
    for said, after in becomes.items():
        _, (closed,) = replace(progress, policies={NAME: kept}).adopted(DetectionPlan.of(after, before), before)
        assert (closed.stage, closed.reason) == (SituationPhase.CLOSED, said)


FIGURES = RunMetrics(
    engine="edge",
    state="running",
    version=2,
    at=100 * S,
    started=95 * S,
    situations=DetectionMetrics(
        running=1,
        stopped=1,
        open=1,
        opened=3,
        detections=5,
        late=2,
        policies={
            "guests": PolicyMetrics(settled=98_900_000, waits_for="seen", open=1, opened=3, detections=5, late=2),
            "old": PolicyMetrics(state="stopped", reason="S150 There is no concept `lorry`."),
        },
        push={
            "seen": PushSourceMetrics(
                events=1_234, heard=99 * S, latest=99 * S, idle=False, unknown=7, sample="person x9"
            ),
            "doors": PushSourceMetrics(),
        },
        failures=(FailedTest(test="distance(A, B) < 5", count=1, sample="A = None"),),
    ),
)


def test_figures_of_situations_come_back_as_they_were() -> None:
    assert decode_metrics(FIGURES.encode()) == FIGURES
    assert decode_metrics(b'{"engine": "edge", "situations": {"policies": 5}}') is None


def test_of_very_many_policies_those_go_to_the_bus_that_most_is_to_be_said_of() -> None:
    policies = {f"p{number}": PolicyMetrics(opened=number) for number in range(1_000)}
    policies["broken"] = PolicyMetrics(state="stopped")
    figures = replace(FIGURES, situations=DetectionMetrics(running=1_000, stopped=1, opened=499_500, policies=policies))
    found = decode_metrics(figures.encode())
    assert found is not None
    assert len(found.situations.policies) == 200
    assert list(found.situations.policies)[:2] == ["broken", "p999"]
    assert found.situations.opened == 499_500
    assert "… 981 more" in text_of(show_policy_metrics(found))


def test_people_see_how_policies_are() -> None:
    shown = text_of(show_policy_metrics(FIGURES))
    rows = [line.split() for line in shown.splitlines()]
    assert ["guests", "running", "1.1", "s", "ago", "seen", "1", "3", "5", "2"] in rows
    assert "old is stopped: S150 There is no concept `lorry`." in shown
    assert ["seen", "1,234", "1.0", "s", "ago"] in rows
    assert ["doors", "0", "nothing", "heard", "yet"] in rows
    assert "seen: 7 events about somebody or something that no pull source knows, as person x9" in shown
    assert "distance(A, B) < 5 failed 1 time, as with A = None" in shown


def test_the_run_tells_of_situations_where_there_are_policies() -> None:
    assert "situations 3 (1 open)" in show_line(FIGURES)
    assert "situations" not in show_line(RunMetrics(engine="edge"))
    live = text_of([show_live("plant", FIGURES, None, (), 5)])
    assert "1 open, 1 policy, 1 stopped, 2 events too late" in live
    summary = text_of(show_summary(FIGURES))
    assert ["situations", "of", "guests", "3"] in [line.split() for line in summary.splitlines()]
    assert "3 situations of 1 policy, 2 events too late" in summary
