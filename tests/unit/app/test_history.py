"""Detection over history from the outside: what is refused before Spark is started, and the table of situations."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pyarrow import parquet

from situ.app.history import HistoryQuery, SituationTable, replay_history
from situ.app.replay import ReplayedSituation
from situ.archive.format import ArchiveDescription, ArchivedPart, ArchivedSegment
from situ.archive.parquet import ParquetArchive
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.model import Cause
from situ.storage.state_folder import StateFolder
from situ.testing.fixtures import load_project
from tests.guarded import FILES
from tests.project_files import write

SECOND = 1_000_000


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return load_project(write(tmp_path / "plant", FILES)).deployment


def refused(tmp_path: Path, deployment: Deployment, **query: object) -> SituError:
    asked = HistoryQuery(place=str(tmp_path / "history"), policies=deployment.policies, **query)  # type: ignore[arg-type]
    with pytest.raises(SituError) as found:
        replay_history(tmp_path / "plant", deployment, asked, lambda each: None)
    return found.value


def archive_at(tmp_path: Path, project: str, generation: int = 1) -> None:
    archive = ParquetArchive(StateFolder(str(tmp_path / "history")))
    archive.begin(ArchiveDescription(project=project, zone="main"))
    part = ArchivedPart(name="x", type="Sighting", day="2026-11-01", generation=generation, events=1, begin=0, end=1)
    segment = ArchivedSegment(number=1, first=1, last=1, begin=0, end=1, events=1, mark="", parts=())
    archive.append(segment, [])
    (tmp_path / "history" / "_log" / f"{1:020d}.json").write_bytes(msgspec.json.encode(replace(segment, parts=(part,))))


def test_a_place_without_an_archive_needs_a_map(tmp_path: Path, deployment: Deployment) -> None:
    found = refused(tmp_path, deployment).problems[0]
    assert found.code.code == "N176"
    assert "`--map`" in found.hint


def test_an_archive_of_another_project_is_not_read(tmp_path: Path, deployment: Deployment) -> None:
    archive_at(tmp_path, "other")
    assert refused(tmp_path, deployment).code == "N170"


def test_events_in_former_terms_need_the_registry_that_knows_them(tmp_path: Path, deployment: Deployment) -> None:
    archive_at(tmp_path, "guarded", generation=3)
    found = refused(tmp_path, deployment).problems[0]
    assert found.code.code == "N177"
    assert "root 3, and the registry of the project knows up to 1" in found.message


def test_all_that_is_wrong_with_maps_is_told_at_once(tmp_path: Path, deployment: Deployment) -> None:
    maps = (("a.yaml", b"type: Sighted\ntime: when\n"), ("b.yaml", b"type: Sighting\n"))
    assert {each.code.code for each in refused(tmp_path, deployment, maps=maps).problems} == {"N154", "P104"}


def situation(number: int) -> ReplayedSituation:
    return ReplayedSituation(
        id=f"s{number}",
        policy="unaccompanied-guest",
        bindings=(("A", "g1"), ("R", "lab")),
        start=number * SECOND,
        last=(number + 1) * SECOND,
        end=(number + 2) * SECOND,
        detections=2,
        causes=(Cause("gate/1", f"e{number}"),),
        positions=(65_536,),
    )


def test_situations_are_written_as_a_table_that_can_be_replaced(
    tmp_path: Path, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("situ.app.history._A_FILE", 2)
    place = tmp_path / "table"
    for count in (5, 3, 0):
        table = SituationTable(str(place), deployment.policies)
        assert not (place / "_SUCCESS").exists()
        for number in range(count):
            table.add(situation(number))
        table.finish()
        assert (place / "_SUCCESS").exists()
        found = parquet.read_table(place)
        assert found["situation"].to_pylist() == [f"s{number}" for number in range(count)]
    table = SituationTable(str(place), deployment.policies)
    table.add(situation(7))
    table.finish()
    (row,) = parquet.read_table(place).to_pylist()
    assert row["bindings"] == [("A", "g1"), ("R", "lab")]
    assert row["causes"] == [{"source": "gate/1", "id": "e7"}]
    assert row["end"].timestamp() == 9
    assert row["text"].startswith("A ")


def test_a_table_goes_nowhere_where_something_else_is(tmp_path: Path, deployment: Deployment) -> None:
    write(tmp_path / "table", {"mine.txt": "x"})
    with pytest.raises(SituError, match=r"N178.*`mine.txt`"):
        SituationTable(str(tmp_path / "table"), deployment.policies)
    assert (tmp_path / "table" / "mine.txt").exists()
