"""The security policy in one process: Situ against Esper, over the same recorded events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.peers import JAVA, JavaPeer, compiled, from_maven
from benchmarks.situation_answers import Answers, differences, same
from benchmarks.situation_one_process import Detected, detect_in_one_process, in_memory, read_json
from benchmarks.situation_recorded import Files, record, write

JARS = (
    (
        "com/espertech/esper-common/9.0.0/esper-common-9.0.0.jar",
        "4824cdef5d9519933c3f0025edfa243f878b8930b112de030d9c6aabb40a4bf6",
    ),
    (
        "com/espertech/esper-compiler/9.0.0/esper-compiler-9.0.0.jar",
        "8a863a285229b20c01886b05fd34846eb9ff04c9005c17e05b4a8763150b833d",
    ),
    (
        "com/espertech/esper-runtime/9.0.0/esper-runtime-9.0.0.jar",
        "101d6dbd88c9e3f1f23587c2acff49b24894a24d8dd697a08023d9774d90704a",
    ),
    (
        "org/antlr/antlr4-runtime/4.13.1/antlr4-runtime-4.13.1.jar",
        "54665d2838cc66458343468efc539e454fc95b46a8a04b13c6ac43fc9be63505",
    ),
    (
        "org/codehaus/janino/janino/3.1.12/janino-3.1.12.jar",
        "5699878c31e71c9a94cf472f95a2dad52ca7b0449c099276b8bd7e992a43595b",
    ),
    (
        "org/codehaus/janino/commons-compiler/3.1.12/commons-compiler-3.1.12.jar",
        "17ea25d860225f4b59d0a512b4995f2e4711bdae5e15736cbcd5f6ce4dda8f7c",
    ),
    (
        "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar",
        "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
    ),
    (
        "org/slf4j/slf4j-nop/1.7.36/slf4j-nop-1.7.36.jar",
        "c214958b07816cb4412b30c7bdbd4308ffdc6ba2a83767b8f3a9229cbd9274d6",
    ),
)
NEEDS = "Esper 9.0.0"
SITU, SITU_FILES = "Situ, from memory", "Situ, from files"
ESPER, ESPER_TWO, ESPER_FILES = "Esper, from memory", "Esper, from memory, two engines", "Esper, from files"
THESIS = "Esper, the queries of the thesis, from memory"


def open_esper(bench: Bench, files: Files) -> JavaPeer:
    """A process with the recording in memory."""
    path = compiled(("Recorded", "EsperPeer"), from_maven(NEEDS, JARS), bench.folder("classes"))
    command = ["java", "-Xmx4g", "-XX:+UseParallelGC", "-cp", path, "EsperPeer", str(files.folder)]
    return bench.open(JavaPeer(command, bench.folder("esper") / "errors"))


def run_esper(peer: JavaPeer, folder: Path, epl: str, given: str, engines: int) -> tuple[dict[str, Any], Answers]:
    """One run of new engines over the whole recording."""
    told = peer.ask(JAVA / f"{epl}.epl", given, engines, folder / "answers")
    lines = (folder / "answers").read_text().splitlines()
    found = [(event, room) for event, room in (line.split("\t") for line in lines)]
    assert len(found) == len(set(found)), "a detection was reported twice"
    return told, frozenset(found)


def _esper(peer: JavaPeer, folder: Path, files: Files, epl: str, given: str, engines: int) -> Taken:
    told, found = run_esper(peer, folder, epl, given, engines)
    figures = {"events a second of processor time": told["events"] / told["cpu"]}
    if epl == "thesis":
        figures |= differences(files.recording, found)
    else:
        same(files.recording.answers, found)
    return Taken(value=told["events"] / told["seconds"], figures=figures)


def _situ(files: Files, given: Callable[[], Any]) -> Taken:
    done: Detected = detect_in_one_process(files, given())
    same(files.recording.answers, done.answers)
    return done.taken


# ── the measurement ───────────────────────────────────────────────────────────────────────────────


def _variants(bench: Bench) -> list[Variant]:
    people, seconds = bench.some(10_000, 300), bench.some(60, 30)
    files = write(record(seconds * people, people), bench.folder("recorded"), bench.some(12, 6), json=True)
    tables = in_memory(files)
    peer, folder = open_esper(bench, files), bench.folder("answers")
    esper = partial(_esper, peer, folder, files)
    return [
        Variant(name=SITU, work=partial(_situ, files, lambda: tables)),
        Variant(name=ESPER, work=partial(esper, "answers", "memory", 1)),
        Variant(name=ESPER_TWO, work=partial(esper, "answers", "memory", 2)),
        Variant(name=THESIS, work=partial(esper, "thesis", "memory", 1)),
        Variant(name=SITU_FILES, work=partial(_situ, files, partial(read_json, files))),
        Variant(name=ESPER_FILES, work=partial(esper, "answers", "files", 1)),
    ]


def _judge(medians: dict[str, float]) -> list[Verdict]:
    compared = ((SITU, ESPER), (SITU_FILES, ESPER_FILES), (SITU, ESPER_TWO), (SITU, THESIS))
    found = []
    for ours, theirs in compared:
        ratio = medians[ours] / medians[theirs]
        found.append(Verdict(what=f"{ours}, over {theirs}", value=ratio, goal="≥ 1×", met=ratio >= 1))
    return found


SCENARIOS = [
    Scenario(
        name="situation-esper",
        title="The security policy in one process: Situ and Esper",
        unit="events/s",
        about=(
            "Recorded positions of 10,000 people, each seen once a second, a window of 5 s, windows full. Situ: "
            "enrichment and the kernel, 50,000 events at a time, one thread. Esper 9: one event at a time, one thread, "
            "or two engines with half of the restricted rooms each; its process stays, so that its code is compiled. "
            "From memory both have what they like best: columns in the order of arrival, objects in the order of time, "
            "which Esper needs. From files both read the same lines of JSON, by one thread, and Esper's events are put "
            "in order on the way. *Esper* is the policy in EPL to the same answers, which every run is held to: what "
            "falls due is looked at when its window has passed, with tables, indexes and a tree over the rooms. "
            "Tried besides, and slower: the counterexample as one outer join of four windows; a pattern with absence "
            "and a look behind. *The queries of the thesis* are its pattern, nearly to the letter. They have more "
            "alarms: they look ahead only, and at one event of the employee. Each of those is explained in the run, by "
            "an employee who was in the room and near before, or near by other events of the two. Esper reports as "
            "time passes; Situ after a batch."
        ),
        variants=_variants,
        judge=_judge,
        repetitions=5,
        needs=NEEDS,
    ),
]
