"""The security policy on two cores: Situ on Spark against Flink SQL, over the same recorded events."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.peers import JAVA, JavaPeer, compiled, from_wheel
from benchmarks.situation_answers import differences, same
from benchmarks.situation_recorded import Files, record, write
from benchmarks.situation_spark import PARTS, by_situ

_VERSION = "2.3.0"
NEEDS = f"apache-flink-libraries {_VERSION}"
_WHEEL = f"apache_flink_libraries-{_VERSION}-py2.py3-none-any.whl"
_DIGEST = "38ece876553286b3a285cf344c2d2038f8a7ca10da5df54d5107250386d64151"
_PACKAGES = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")
OPENED = [word for each in _PACKAGES for word in ("--add-opens", f"{each}=ALL-UNNAMED")]
SITU, FLINK, FLINK_FILES = "Situ on Spark, from files", "Flink SQL, from memory", "Flink SQL, from files"
SIMPLE = "Flink SQL, one interval outer join with other answers, from memory"
TASKS = 2


def flink_jars() -> list[Path]:
    return from_wheel("apache-flink-libraries", _VERSION, _WHEEL, _DIGEST, "pyflink/lib", leave=("log4j",))


def open_flink(bench: Bench, files: Files) -> JavaPeer:
    """A process with the recording in memory, and Flink's own cluster for one process."""
    path = compiled(("Recorded", "FlinkPeer"), flink_jars(), bench.folder("classes"))
    command = ["java", "-Xmx6g", "-XX:+UseParallelGC", *OPENED, "-cp", path, "FlinkPeer", str(files.folder)]
    return bench.open(JavaPeer(command, bench.folder("flink") / "errors"))


def run_flink(peer: JavaPeer, folder: Path, files: Files, sql: str, given: str) -> Taken:
    """One job over the whole recording, on two tasks; its answers are those expected, or explained."""
    told = peer.ask(JAVA / f"{sql}.sql", given, TASKS, folder / "answers")
    lines = (folder / "answers").read_text().splitlines()
    found = [(event, room) for event, room in (line.split("\t") for line in lines)]
    assert len(found) == len(set(found)), "a detection was reported twice"
    figures = {"events a second of processor time": told["events"] / told["cpu"]}
    if sql == "simple":
        figures |= differences(files.recording, frozenset(found))
    else:
        same(files.recording.answers, frozenset(found))
    return Taken(value=told["events"] / told["seconds"], figures=figures)


def _variants(bench: Bench) -> list[Variant]:
    people, batches, skipped = bench.some(20_000, 300), bench.some(10, 6), bench.some(4, 3)
    files = write(record(batches * 5 * people, people), bench.folder("recorded"), batches * PARTS, json=True)
    peer, folder = open_flink(bench, files), bench.folder("answers")
    flink = partial(run_flink, peer, folder, files)
    return [
        Variant(name=SITU, work=partial(by_situ, bench, files, skipped)),
        Variant(name=FLINK, work=partial(flink, "answers", "memory")),
        Variant(name=FLINK_FILES, work=partial(flink, "answers", "files")),
        Variant(name=SIMPLE, work=partial(flink, "simple", "memory")),
    ]


def _judge(medians: dict[str, float]) -> list[Verdict]:
    """The goal is on the same answers; how much others are worth has none."""
    found = []
    for theirs in (FLINK_FILES, FLINK, SIMPLE):
        ratio = medians[SITU] / medians[theirs]
        goal, met = ("", None) if theirs is SIMPLE else ("≥ 1.5×", ratio >= 1.5)
        found.append(Verdict(what=f"Situ on Spark over {theirs}", value=ratio, goal=goal, met=met))
    return found


SCENARIOS = [
    Scenario(
        name="situation-flink",
        title="The security policy on two cores: Situ on Spark and Flink SQL",
        unit="events/s",
        about=(
            "Recorded positions of 20,000 people, each seen once a second, a window of 5 s, windows full. Situ: as "
            "above, micro-batches of 100,000 events read from Parquet, states kept in files. Flink 2.3: two tasks in "
            "one process that stays, so that its code is compiled; state in memory, no checkpoints, the two tables in "
            "memory as functions. From files Flink reads the same events as lines of JSON; from memory it reads "
            "nothing, which is more than Situ is given. What is counted begins when windows are full and ends with the "
            "last answer. *Flink SQL* has the same answers, which every run is held to: an interval outer join of "
            "guests in restricted rooms to employees in the same room and near finds the few who may be alone; these "
            "are joined to all events of the two, and once more outer joined to what refutes them. *One interval outer "
            "join* is the first of these only, and has more answers: it looks at one event of the employee, which has "
            "to be in the room and near at once. Each of those is explained in the run, by other events of the two."
        ),
        variants=_variants,
        judge=_judge,
        repetitions=3,
        spark=True,
        needs=NEEDS,
    ),
]
