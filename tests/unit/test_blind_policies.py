"""That nothing was detected is not said of a policy that had nothing to look at, or could see none of it."""

from __future__ import annotations

import pytest
from rich.console import Console

from situ.cli.replayed_policies import Detected
from situ.cli.show_replayed import show_replayed
from situ.host.replaying_policies import Looked, Outcome


def shown(**looked: Looked) -> str:
    console = Console(width=1000)
    with console.capture() as captured:
        found = Detected(policies={}, outcome=Outcome(looked=looked))
        for each in show_replayed(found, verbose=False, summary=True):
            console.print(each)
    return captured.get()


@pytest.mark.parametrize(
    ("looked", "said"),
    [
        (Looked(sources=("seen",), seen=3), "Nothing matched: 3 events looked at, nothing was detected."),
        (Looked(sources=("seen",), seen=3, hidden=9), "Nothing matched: 3 events looked at, nothing was detected."),
        (
            Looked(sources=("seen",)),
            "watch had nothing to look at: in this time the log has no event of its push source",
        ),
        (
            Looked(sources=("seen",), hidden=9),
            "watch could see nothing: 9 events of its push source seen, none visible",
        ),
        (Looked(sources=()), "watch could detect nothing: no push source tells what it asks for."),
    ],
)
def test_what_a_policy_had_to_look_at_is_told(looked: Looked, said: str) -> None:
    text = shown(watch=looked)
    assert said in text
    assert ("nothing was detected" in text) == bool(looked.seen)


def test_of_several_policies_each_is_told_for_itself() -> None:
    text = shown(first=Looked(sources=("seen",), seen=2), second=Looked(sources=("seen",), hidden=2))
    assert "Nothing matched: 2 events looked at" in text
    assert "second could see nothing" in text
    assert "first" not in text
