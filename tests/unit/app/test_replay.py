"""That nothing was detected is not said of a policy that had nothing to look at, or could see none of it."""

from __future__ import annotations

import pytest
from rich.console import Console

from situ.app.replay import PolicyInput, ReplayOutcome
from situ.cli.commands.replay import ReplayedDetections
from situ.cli.render.situations import show_replayed


def shown(**looked: PolicyInput) -> str:
    console = Console(width=1000)
    with console.capture() as captured:
        found = ReplayedDetections(policies={}, outcome=ReplayOutcome(looked=looked))
        for each in show_replayed(found, verbose=False, summary=True):
            console.print(each)
    return captured.get()


@pytest.mark.parametrize(
    ("looked", "said"),
    [
        (PolicyInput(sources=("seen",), seen=3), "Nothing matched: 3 events looked at, nothing was detected."),
        (
            PolicyInput(sources=("seen",), seen=3, hidden=9),
            "Nothing matched: 3 events looked at, nothing was detected.",
        ),
        (
            PolicyInput(sources=("seen",)),
            "watch had nothing to look at: in this time the log has no event of its push source",
        ),
        (
            PolicyInput(sources=("seen",), hidden=9),
            "watch could see nothing: 9 events of its push source seen, none visible",
        ),
        (PolicyInput(sources=()), "watch could detect nothing: no push source tells what it asks for."),
    ],
)
def test_what_a_policy_had_to_look_at_is_told(looked: PolicyInput, said: str) -> None:
    text = shown(watch=looked)
    assert said in text
    assert ("nothing was detected" in text) == bool(looked.seen)


def test_of_several_policies_each_is_told_for_itself() -> None:
    text = shown(first=PolicyInput(sources=("seen",), seen=2), second=PolicyInput(sources=("seen",), hidden=2))
    assert "Nothing matched: 2 events looked at" in text
    assert "second could see nothing" in text
    assert "first" not in text
