"""Decisions of visibility as Spark SQL: what holds between two sets of tags, with the filters of scopes put in.

`pair_text` is :class:`situ.scopes.visibility_plan.TagSetPair` as an expression, `FilterTexts` the filters that stand in
it. It is text and no Spark: DataFrames and real-time deliveries are decided by the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from situ.lang.expr.tree import Node
from situ.lang.types.model import Struct
from situ.scopes.filter_sets import WORD, Family, NestedFilterSets, Step, numbers_in, to_words
from situ.scopes.visibility_plan import TagSetPair, Verdict
from situ.stages.visibility import EventVisibility

ConditionText = Callable[[Node, str], str]
"""True where a condition on root events holds, false everywhere else, never null; with what the filter says."""


class FilterTexts:
    """The filters of scopes by their numbers, as conditions on events of one type; each is written once."""

    def __init__(self, seeing: EventVisibility, event: Struct, condition: ConditionText) -> None:
        self._seeing, self._event, self._condition = seeing, event, condition
        self._names = seeing.numbers.filters.texts()
        self._texts: dict[int, str] = {}

    def __call__(self, number: int) -> str:
        if number not in self._texts:
            said = self._names[number]
            self._texts[number] = self._condition(self._seeing.filters.node(said, self._event.name), said)
        return self._texts[number]


FilterText = Callable[[int], str]


def pair_text(pair: TagSetPair, filters: FilterText) -> str:
    """The decision between two sets of tags: every family of filters must hold."""
    if pair.verdict is Verdict.NEVER:
        return "FALSE"
    texts = [_family(each, filters) for each in pair.families]
    if "FALSE" in texts:
        return "FALSE"
    left = [text for text in texts if text != "TRUE"]
    return f"({' AND '.join(left)})" if left else "TRUE"


def _family(family: Family, filters: FilterText) -> str:
    if isinstance(family, NestedFilterSets):
        return _nested(family, filters)
    sets = list(_sets(family.sets, filters))
    if "TRUE" in sets:
        return "TRUE"
    return f"({' OR '.join(sets)})" if sets else "FALSE"


def _sets(sets: Iterable[int], filters: FilterText) -> Iterator[str]:
    for needed in sets:
        texts = [filters(number) for number in numbers_in(needed)]
        if "FALSE" not in texts:
            left = [text for text in texts if text != "TRUE"]
            yield f"({' AND '.join(left)})" if left else "TRUE"


def _nested(family: NestedFilterSets, filters: FilterText) -> str:
    """Too many sets to be written out: bits of filters, and steps that are worked out one after the other."""
    numbers = list(numbers_in(family.filters))
    words: dict[int, list[str]] = {}
    for number in numbers:
        at, place = divmod(number, WORD)
        words.setdefault(at, []).append(f"IF({filters(number)}, {1 << place}L, 0L)")
    length = 1 + max(words, default=0)
    bits = ", ".join(" | ".join(words.get(at, ["0L"])) for at in range(length))
    steps = ", ".join(f"array({', '.join(_way(*way) for way in step)})" for step in _filled(family.program))
    contained = "forall(way.needed, w -> coalesce((get(bits, w.at) & w.mask) = w.mask, FALSE))"
    known = (
        f"aggregate(array({steps}), CAST(array() AS ARRAY<BOOLEAN>), (known, step) -> array_append(known, "
        f"exists(step, way -> {contained} AND forall(way.parts, part -> get(known, part)))))"
    )
    return f"element_at(transform(array(array({bits})), bits -> element_at({known}, -1)), 1)"


_IMPOSSIBLE = ((1 << (WORD << 20), ()),)


def _filled(program: Iterable[Step]) -> Iterator[Step]:
    """Steps without a way never hold; Spark does not know the type of an empty array."""
    for step in program:
        yield step or _IMPOSSIBLE


def _way(needed: int, parts: Iterable[int]) -> str:
    words = ", ".join(f"named_struct('at', {at}, 'mask', {mask}L)" for at, mask in enumerate(to_words(needed)) if mask)
    none = "CAST(array() AS ARRAY<STRUCT<at: INT, mask: BIGINT>>)"
    earlier = ", ".join(map(str, parts))
    return (
        f"named_struct('needed', {f'array({words})' if words else none}, "
        f"'parts', {f'array({earlier})' if earlier else 'CAST(array() AS ARRAY<INT>)'})"
    )
