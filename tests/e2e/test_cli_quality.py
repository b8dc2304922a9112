"""``situ quality`` and ``situ explain quality`` beside a run, as its operator and with the file of a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import situ as library
from tests.e2e.conftest import Situ
from tests.e2e.runs import make_plant, running

QUALITY = """
version: 1
expectations:
  - {id: hot, subscription: board/hot, utility: 4, need: {rate: {lb: 5, ub: 10}, confidence: {lb: 75, ub: 95}}}
profiles:
  - publisher: sensor
    type: Reading
    capabilities: {rate: {lb: 1, ub: 60, cv: 2, cost: 0.1 * x}, confidence: {lb: 40, ub: 70, cv: 55}}
"""


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_plant(tmp_path_factory.mktemp("plant"))
    (folder / "quality").mkdir()
    (folder / "quality" / "hot.yaml").write_text(QUALITY)
    with running(folder):
        yield folder


@pytest.fixture(scope="module")
def sensor(plant: Path) -> Iterator[None]:
    """What is declared for the sensor counts while it is connected."""
    with library.connect_blocking(plant, client="sensor"):
        yield


def test_who_is_not_connected_only_could(situ: Situ, plant: Path) -> None:
    out = situ("quality", "--project", plant).out
    assert "unsatisfied   no-publisher: 1 profile declared, not connected" in out
    assert "declared, not connected" in next(line for line in out.splitlines() if line.startswith("sensor/Reading "))
    assert "declared, not connected: sensor\n" in situ("explain", "quality", "hot", "--project", plant).out


@pytest.mark.usefixtures("sensor")
def test_the_table_says_who_expects_who_can_and_why_not(situ: Situ, plant: Path) -> None:
    ran = situ("quality", "--project", plant)
    assert ran.code == 0
    hot = next(line for line in ran.out.splitlines() if line.startswith("hot "))
    assert "board/hot" in hot
    assert "confidence 75..95 %" in hot
    assert "unsatisfied   out-of-reach: confidence is 55, 70 at best; rate is 2, 60 at best" in hot
    assert "sensor/Reading   confidence 55 of 40..70 %" in ran.out
    assert ran.out.endswith("1 expectation, 0 satisfied · 1 profile\n")


@pytest.mark.usefixtures("sensor")
def test_the_table_as_json(situ: Situ, plant: Path) -> None:
    found = situ("quality", "--project", plant, "--json").data
    (expectation,), (profile,) = found["expectations"], found["profiles"]
    assert (expectation["id"], expectation["state"], expectation["why"]) == ("hot", "unsatisfied", "out-of-reach")
    assert expectation["need"]["rate"] == {"unit": "1/min", "lb": 5, "ub": 10}
    assert (profile["id"], profile["expectations"], profile["advice"]) == ("sensor/Reading", 0, None)
    assert profile["values"]["rate"] == {
        "unit": "1/min",
        "lb": 1,
        "ub": 60,
        "declared": 2,
        "measured": None,
        "effective": 2,
    }


@pytest.mark.usefixtures("sensor")
def test_why_with_names_for_the_operator(situ: Situ, plant: Path) -> None:
    ran = situ("explain", "quality", "hot", "--project", plant)
    assert ran.code == 0
    assert ran.out.startswith("hot (board/hot, utility 4): unsatisfied")
    assert "sensor" in ran.out
    data = situ("explain", "quality", "hot", "--project", plant, "--json").data
    assert (data["expectation"], [each["profile"] for each in data["profiles"]]) == ("hot", ["sensor"])


@pytest.mark.usefixtures("sensor")
def test_why_without_names_for_a_client(situ: Situ, plant: Path, tmp_path: Path) -> None:
    file = tmp_path / "board.creds"
    assert situ("client", "add", "board", "--project", plant, "--out", file).code == 0
    asked = ("explain", "quality", "hot", "--project", plant, "--credentials", file)
    ran = situ(*asked)
    assert ran.code == 0
    assert "publisher 1" in ran.out
    assert "sensor" not in ran.out
    states = situ("quality", "--project", plant, "--credentials", file)
    assert "hot" in states.out
    assert "1 expectation, 0 satisfied\n" in states.out


@pytest.mark.usefixtures("sensor")
def test_a_publisher_with_what_is_claimed_of_it(situ: Situ, plant: Path) -> None:
    with library.connect_blocking(plant, client="panel") as panel:
        wanted = panel.register_for_events("Reading")
        panel.expectations.register(wanted, {"rate": {"lb": 4}}, id="some")
        ran = situ("explain", "quality", "--publisher", "sensor", "--project", plant)
        data = situ("explain", "quality", "--publisher", "sensor", "--project", plant, "--json").data
    assert ran.code == 0
    assert "panel/some" in ran.out
    assert [each["expectation"] for each in data["profiles"][0]["claims"]] == ["panel/some"]


def test_credentials_that_are_not_there(situ: Situ, plant: Path, tmp_path: Path) -> None:
    ran = situ("quality", "--project", plant, "--credentials", tmp_path / "none.creds")
    assert ran.code == 4
    assert "error B111" in ran.err
    assert "after `--credentials`" in " ".join(ran.err.split()), "nothing in situ.yaml is wrong"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("hott",), "Q132"), (("--publisher", "nobody"), "Q132")],
)
def test_what_is_not_negotiated_is_told(situ: Situ, plant: Path, arguments: tuple[str, ...], code: str) -> None:
    ran = situ("explain", "quality", *arguments, "--project", plant)
    assert ran.code == 1
    assert code in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "name an expectation, or a publisher with --publisher"), (("hot", "--publisher", "sensor"), "not both")],
)
def test_one_thing_is_asked_for(situ: Situ, plant: Path, arguments: tuple[str, ...], said: str) -> None:
    ran = situ("explain", "quality", *arguments, "--project", plant)
    assert ran.code == 2
    assert said in ran.err
