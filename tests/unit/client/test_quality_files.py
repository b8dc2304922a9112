"""Expectations and profiles of clients in files: what is written is read back, and what is no draft is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.client.quality_files import ExpectationDraft, ProfileDraft, read_expectations, read_profiles, write_file
from situ.lang.problems import SituError

ALTERNATIVES = """
expectations:
  - subscription: desk/warm
    any_of:
      - {id: M1, utility: 10, need: {rate: {lb: 5, ub: 10}}, sources: selected}
      - {id: M2, need: {}}
  - {subscription: other, need: {confidence: {lb: 75 %}}}
profiles:
  - {type: Warm, capabilities: {rate: {lb: 1, ub: 60, cv: 2, cost: 0.1 * x}}}
  - {type: Cold, mode: eco, modes: [{name: eco, values: {rate: 2}, cost: 1}]}
"""


def test_alternatives_come_in_the_order_of_their_ranks(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(ALTERNATIVES)
    assert read_expectations(file, "desk") == [
        ExpectationDraft(
            subscription="warm",
            id="M1",
            utility=10,
            need={"rate": {"lb": 5, "ub": 10}},
            options={"sources": "selected"},
        ),
        ExpectationDraft(subscription="warm", id="M2", need={}),
        ExpectationDraft(subscription="other", need={"confidence": {"lb": "75 %"}}),
    ]
    assert read_profiles(file) == [
        ProfileDraft(type="Warm", capabilities={"rate": {"lb": 1, "ub": 60, "cv": 2, "cost": "0.1 * x"}}),
        ProfileDraft(type="Cold", mode="eco", modes=({"name": "eco", "values": {"rate": 2}, "cost": 1},)),
    ]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    need = {"rate": {"lb": 5}, "imprecision of power": {"ub": "5 kW", "per_key": {"node7": 1}}}
    write_file(file, {"expectations": [{"subscription": "desk/warm", "id": "M1", "need": need, "utility": 2.5}]})
    assert read_expectations(file, "desk") == [ExpectationDraft(subscription="warm", id="M1", need=need, utility=2.5)]


@pytest.mark.parametrize(
    "text",
    [
        "expectations: 5\n",
        "- 1\n",
        "expectations: [{need: {}}]\n",
        "expectations: [{subscription: a, need: 3}]\n",
        "expectations: [{subscription: a, any_of: 3}]\n",
    ],
)
def test_what_is_no_draft_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(SituError) as refused:
        read_expectations(file, "desk")
    assert refused.value.code == "Q131"


@pytest.mark.parametrize("text", ["profiles: [{type: Warm, modes: 3}]\n", "profiles: [{type: Warm, modes: null}]\n"])
def test_what_is_no_draft_of_a_profile_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(SituError) as refused:
        read_profiles(file)
    assert refused.value.code == "Q131"


def test_what_is_no_yaml_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("profiles: [{type: Warm\n")
    with pytest.raises(SituError) as refused:
        read_profiles(file)
    assert refused.value.problems[0].location is not None
