"""Epochs and situations: nothing is seen that was not visible both then and now, nor more than what caused it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from situ.lang.tags import TagSet
from situ.scopes.epochs import Epochs, Evaluate, Meet, VisibilityStamp, absent, meet, merge, reaches, release
from situ.scopes.filter_sets import NO_NUMBERS, FilterNumbers, bits_of, numbers_in
from situ.scopes.graph import ScopeGraph
from situ.scopes.stamp import RootEvent, Stamper
from situ.scopes.visibility_plan import compile_visibility, number_filters
from tests.oracles.visibility import visible
from tests.scopes import FILTERS, changed, make_event, make_graph, make_tags


@dataclass(frozen=True, slots=True)
class History:
    """The graphs of some epochs, 1 and on, with their plans; tag sets named in each of them, and some that are not."""

    graphs: dict[int, ScopeGraph]
    epochs: Epochs
    tags: list[TagSet]
    numbers: FilterNumbers

    def stamp(self, event: RootEvent, tags: TagSet, epoch: int) -> VisibilityStamp:
        plan = self.epochs.plans[epoch]
        return VisibilityStamp(tags=tags, epoch=epoch, bits=Stamper(FILTERS, plan.numbers, plan.stamped).bits(event))

    def evaluate(self, event: RootEvent) -> Evaluate:
        texts = self.numbers.texts()
        return lambda filters: bits_of(number for number in numbers_in(filters) if event.passes(texts[number]))

    def sees(self, event: RootEvent, ad: TagSet, then: int, now: int, sub: TagSet) -> bool:
        """By the rules, in both epochs."""
        return all(visible(self.graphs[epoch], event, ad, sub) for epoch in (then, now))


def make_history(dice: random.Random, count: int = 4) -> History:
    graph = make_graph(dice, most_dimensions=3)
    numbers = NO_NUMBERS
    graphs, plans, tags = {}, {}, []
    for epoch in range(1, count + 1):
        numbers = number_filters(graph, numbers)
        tags += [make_tags(dice, graph) for _ in range(3)]
        graphs[epoch] = graph
        known = tags[: dice.randrange(len(tags))]  # the others are asked for though nobody compiled them
        plans[epoch] = compile_visibility(graph, known, known, numbers, before=plans.get(epoch - 1))
        graph = changed(dice, graph)
    return History(graphs, Epochs(plans), tags, numbers)


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(1_000, 2_500), marks=pytest.mark.soak)])
def test_handed_over_is_what_was_visible_when_stamped_and_is_now(seeds: range) -> None:
    verdicts = []
    reached_back = 0
    for seed in seeds:
        dice = random.Random(seed)
        history = make_history(dice)
        for _ in range(30):
            event, ad, sub = make_event(dice), dice.choice(history.tags), dice.choice(history.tags)
            then = dice.randint(1, 3)
            now = dice.randint(then, 4)
            stamp = history.stamp(event, ad, then)
            found = history.epochs.visible(stamp, now, sub, history.evaluate(event))
            assert found == history.sees(event, ad, then, now, sub), (seed, then, now)
            if history.epochs.visible(stamp, now, sub):
                assert found, "without the event at hand never more"
            verdicts.append(found)
            reached_back += visible(history.graphs[now], event, ad, sub) and not found
    assert 0.05 < sum(verdicts) / len(verdicts) < 0.95
    assert reached_back > 0, "something was opened, and old events stayed where they were"


def test_an_epoch_that_is_not_kept_shows_nothing() -> None:
    history = make_history(random.Random(1))
    everything = TagSet.of(rest=True)
    assert not history.epochs.visible(VisibilityStamp(tags=everything, epoch=99), 4, everything)
    assert history.epochs.visible(VisibilityStamp(tags=everything, epoch=1), 4, everything)
    assert not history.epochs.visible(VisibilityStamp(tags=everything, epoch=1), 99, everything)


def make_situation(
    dice: random.Random, history: History, depth: int
) -> tuple[Meet, list[tuple[RootEvent, VisibilityStamp]]]:
    """A situation with all its leaves, its own content and that of situations inside it among them."""
    leaves = [
        (event, history.stamp(event, dice.choice(history.tags), dice.randint(1, 3)))
        for event in (make_event(dice) for _ in range(dice.randint(1, 3)))
    ]
    inner = [make_situation(dice, history, depth - 1) for _ in range(dice.randint(0, 2) if depth else 0)]
    content = make_event(dice)
    own = history.stamp(content, dice.choice(history.tags), 3)
    found = meet(own, (stamp for _, stamp in leaves), (each for each, _ in inner))
    return found, [(content, own), *leaves, *(leaf for _, below in inner for leaf in below)]


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(1_000, 2_500), marks=pytest.mark.soak)])
def test_who_sees_a_situation_sees_everything_in_it(seeds: range) -> None:
    seen = 0
    for seed in seeds:
        dice = random.Random(seed)
        history = make_history(dice)
        everything = TagSet.of(rest=True)
        for _ in range(8):
            found, leaves = make_situation(dice, history, 2)
            assert found.stamps == {stamp for _, stamp in leaves}
            for sub in (*dice.sample(history.tags, 4), everything):
                if reaches(history.epochs, 4, found, sub):
                    seen += sub != everything
                    for event, stamp in leaves:
                        assert history.sees(event, stamp.tags, stamp.epoch, 4, sub), seed
                else:
                    assert not all(history.epochs.visible(stamp, 4, sub) for _, stamp in leaves), "nor is it lost"
    assert seen > 0


def test_merging_parts_never_widens() -> None:
    hidden = 0
    for seed in range(200):
        dice = random.Random(seed)
        history = make_history(dice, 2)
        ads = dice.sample(history.tags, 2)
        parts = [history.stamp(make_event(dice), dice.choice(ads), 2) for _ in range(dice.choice((2, 3, 12)))]
        kept, merged = merge(parts, 1)
        assert len(kept) == len(set(parts)) - merged
        assert len(kept) <= 2, "two tag sets"
        for sub in history.tags:
            before, after = (all(history.epochs.visible(part, 2, sub) for part in each) for each in (parts, kept))
            assert before or not after, seed
            hidden += not before
    assert hidden > 100


def test_few_parts_are_not_merged_and_many_are_counted() -> None:
    tags = TagSet.of({"d": "a"})
    few, many = ([VisibilityStamp(tags=tags, epoch=1, bits=bits) for bits in range(count)] for count in (64, 65))
    own = VisibilityStamp(tags=tags, epoch=1)
    assert meet(own, few).parts == frozenset(few)
    found = meet(own, many)
    assert found.parts == {VisibilityStamp(tags=tags, epoch=1, bits=0)}
    assert found.merged == 64
    assert meet(own, [], [found, found]).merged == 128


def test_what_is_released_counts_no_longer_and_the_rest_does() -> None:
    checked = 0
    for seed in range(80):
        dice = random.Random(seed)
        history = make_history(dice)
        found, _ = make_situation(dice, history, 1)
        dimensions = frozenset(dice.sample(list(history.graphs[1].dimensions), 1))
        let_go = release(found, dimensions)
        outer = meet(found.own, [], [let_go])
        for sub in history.tags:
            if reaches(history.epochs, 4, found, sub):
                assert reaches(history.epochs, 4, let_go, sub), "a release never narrows"
            if reaches(history.epochs, 4, let_go, sub):
                checked += 1
                assert history.epochs.visible(found.own, 4, sub), "what it is itself counts as before"
            assert reaches(history.epochs, 4, outer, sub) == reaches(history.epochs, 4, let_go, sub)
    assert checked > 20


def test_absence_is_seen_only_where_every_event_would_always_be() -> None:
    seen = 0
    for seed in range(80):
        dice = random.Random(seed)
        history = make_history(dice, 1)
        reads, ads = history.tags[0], history.tags
        found = meet(
            VisibilityStamp(tags=TagSet.of(rest=True), epoch=1), [], absent=absent(history.epochs, 1, reads, ads)
        )
        for sub in history.tags:
            if reaches(history.epochs, 1, found, sub):
                seen += bool(found.parts)
                for _ in range(10):
                    event, ad = make_event(dice), dice.choice(ads)
                    if visible(history.graphs[1], event, ad, reads):
                        assert visible(history.graphs[1], event, ad, sub), seed
    assert seen > 5
