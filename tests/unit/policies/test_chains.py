"""Who feeds whom among policies, what that adds, and how far a policy may go by those who feed it."""

from __future__ import annotations

from pathlib import Path

from situ.cli.project import open_project
from situ.cli.render import policy_tests as show_test
from situ.lang.records import replace
from situ.policies.watermark import SourceTimes
from situ.project.check import check_folder
from situ.project.policy_tests import find_tests, run_tests
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress, PublicationMark
from tests.policy_chains import FILES, SECOND, START, generate
from tests.project_files import write

POLICY = "policy {}\nwindow 5 s\n{}concepts\n  thing A\n  place R (id = 'low')\nconditions\n  {}\nactions\n  {}\n"
READ = {
    "first": ("lateness 3 s\n", "A is warmer R", "say hot"),
    "second": ("", "A is hotter R", "say fire"),
    "third": ("", "A is smoky R followed-by A is not burning R", "say out"),
}


def project(folder: Path, **policies: tuple[str, str, str]) -> Path:
    sources = generate(0).files["sources/all.yaml"]
    texts = {f"policies/{name}.dpl": POLICY.format(name, *each) for name, each in {**READ, **policies}.items()}
    write(folder, {**FILES, "situ.yaml": "name: chain\n", "sources/all.yaml": sources, **texts})
    return folder


def detecting(folder: Path, **policies: tuple[str, str, str]) -> DetectionPlan:
    checked = check_folder(project(folder, **policies))
    assert checked.deployment is not None, checked.problems
    return DetectionPlan.of(checked.deployment)


def test_a_check_says_what_a_chain_adds(tmp_path: Path) -> None:
    found = [each.message for each in check_folder(project(tmp_path)).problems if each.code.code == "S235"]
    assert found == [
        (
            "`second` reads events of `first`, and waits for them: it decides up to 3 s behind its sources, "
            "which alone would be 0 s, and one step of the engine later."
        ),
        (
            "`third` reads events of `second`, and waits for them: it decides up to 3 s behind its sources, "
            "which alone would be 2 s, and 2 steps of the engine later."
        ),
    ]


def test_tests_say_what_a_chain_adds(tmp_path: Path) -> None:
    (project(tmp_path) / "policies" / "third.test.yaml").write_text("given: {}\nexpect: []\n")
    opened = open_project(tmp_path)
    tested = run_tests(opened, find_tests(opened, []))
    shown = "\n".join(str(each) for each in show_test.show_tests(tested, tmp_path, verbose=False, summary=False))
    assert "third reads events of second: in a run it decides 1 s and 2 steps of the engine later" in shown
    delays = {"third": {"reads": ["second"], "own": "2 s", "total": "3 s", "steps": 2}}
    assert show_test.tests_as_json(tested)["tests"][0]["delays"] == delays


def test_who_reads_the_situations_of_one_policy_is_fed_by_that_one(tmp_path: Path) -> None:
    alarmed = detecting(
        tmp_path, second=("", "A.alarm = 'first'", "say fire"), third=("", "A.alarm = 'second'", "say out")
    )
    assert {name: set(watch.fed) for name, watch in alarmed.watches.items()} == {
        "first": set(),
        "second": {"first"},
        "third": {"second"},
    }
    assert not any(watch.circular for watch in alarmed.watches.values())


def test_policies_in_a_circle_do_not_wait_for_each_other(tmp_path: Path) -> None:
    circle = detecting(tmp_path, first=("", "A is warmer R or A is burning R", "say hot"))
    assert {name: (set(watch.fed), watch.circular) for name, watch in circle.watches.items()} == {
        "first": (set(), True),
        "second": (set(), True),
        "third": ({"second"}, False),
    }


def progressed(chain: DetectionPlan, **reached: int) -> DetectionProgress:
    found, _ = DetectionProgress().adopted(chain, None, START)
    kept = {name: replace(each, reached=reached.get(name)) for name, each in found.policies.items()}
    heard = {name: SourceTimes(START + 90 * SECOND, *[START + 90 * SECOND] * 2, START) for name in ("read", "smoked")}
    return replace(found, policies=kept, seen=heard, numbers={"first": 7})


def test_a_reader_goes_no_further_than_what_has_come_of_its_feeder(tmp_path: Path) -> None:
    chain, clock = detecting(tmp_path), START + 91 * SECOND
    progress = progressed(chain, first=START + 60 * SECOND, second=START + 10 * SECOND)
    assert progress.watermarks(chain, clock)["second"] == START + 60 * SECOND
    marks = (PublicationMark(1, 5, START + 20 * SECOND, 11), PublicationMark(1, 7, START + 40 * SECOND, 12))
    waiting = replace(progress, marks={"first": marks})
    assert waiting.watermarks(chain, clock)["second"] == START + 20 * SECOND
    assert waiting.waits_for(chain, chain.watches["second"], clock) == "policy first"
    assert waiting.arrived({"first": (1, 4)}) is waiting
    assert waiting.arrived({"first": (1, 6)}).watermarks(chain, clock)["second"] == START + 40 * SECOND
    assert waiting.arrived({"first": (1, 7)}).marks == {}
    assert waiting.arrived({"first": (2, 1)}).marks == {}, "another incarnation is a later one"
    assert waiting.given_up(11) is waiting, "what came in before message 11 says nothing of it"
    assert waiting.given_up(12).marks == {"first": marks[1:]}
    assert progress.given_up(12) is progress
    assert DetectionProgress.from_json(waiting.as_json()) == waiting
    assert progress.changed(waiting.changes(progress)) == waiting
    stored = waiting.as_json()
    stored["marks"] = {name: [[*mark[:3], clock] for mark in each] for name, each in stored.pop("published").items()}
    before = DetectionProgress.from_json(stored)
    assert [mark.ingress for mark in before.marks["first"]] == [0, 0], "a clock is no place in the ingress stream"


def test_a_mark_says_where_what_it_is_of_came_in_at_the_latest(tmp_path: Path) -> None:
    chain = detecting(tmp_path)
    before = progressed(chain, first=START + 60 * SECOND)
    once = before.marked(["first"], chain.feeders, before).stored_at(5, before)
    assert [mark.ingress for mark in once.marks["first"]] == [5]
    twice = replace(once, numbers={"first": 9}).marked(["first"], chain.feeders, once).stored_at(8, once)
    assert [mark.ingress for mark in twice.marks["first"]] == [5, 8]
    assert [mark.number for mark in twice.given_up(6).marks["first"]] == [9]


def test_one_that_is_gone_is_waited_for_until_its_last_words_have_come(tmp_path: Path) -> None:
    clock = START + 91 * SECOND
    chain = detecting(tmp_path / "all")
    before = progressed(chain, first=START + 60 * SECOND, second=START + 10 * SECOND)
    said = {"*hot": SourceTimes(START, START, START, START)}
    last = {"first": (PublicationMark(1, 7, START + 60 * SECOND),)}
    folder = project(tmp_path / "rest")
    (folder / "policies" / "first.dpl").unlink()
    checked = check_folder(folder)
    assert checked.deployment is not None
    rest = DetectionPlan.of(checked.deployment)
    after, _ = replace(before, seen={**before.seen, **said}, marks=last).adopted(rest, chain, clock)
    assert after.watermarks(rest, clock)["second"] == START + 60 * SECOND
    gone = after.arrived({"first": (1, 7)})
    assert gone.watermarks(rest, clock)["second"] > START + 60 * SECOND


def test_a_feeder_that_has_heard_of_nothing_is_waited_for_until_its_sources_are_idle(tmp_path: Path) -> None:
    chain = detecting(tmp_path)
    progress, _ = DetectionProgress().adopted(chain, None, START)
    assert "second" not in progress.watermarks(chain, START + 10 * SECOND)
    assert progress.watermarks(chain, START + 11 * SECOND)["second"] == START + 8 * SECOND, "by the lateness of `first`"
