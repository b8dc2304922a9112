"""Whether two filters contradict each other: no event is true of both.

Said only where it follows from what each of them compares single attributes with. What is not understood contradicts
nothing, so "no" means "perhaps".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from situ.expr.tree import Node
from situ.subscription.normal_form import Absent, Atom, Bound, Conjunction, OneOf, Opaque, Path, Prefix, normal_form


def contradict(one: Node, other: Node) -> bool:
    """Whether no event can be true of both of these simplified filters."""
    return not any(_is_possible((*left, *right)) for left in normal_form(one) for right in normal_form(other))


def _is_possible(conjunction: Conjunction) -> bool:
    by_path: dict[Path, list[Atom]] = {}
    for atom in conjunction:
        if not isinstance(atom, Opaque):
            by_path.setdefault(atom.path, []).append(atom)
    return all(_some_value(atoms) for atoms in by_path.values())


def _some_value(atoms: Iterable[Atom]) -> bool:
    """Whether an attribute can have a value, or have none, that all of these are true of."""
    atoms = tuple(atoms)
    absent = [isinstance(atom, Absent) for atom in atoms]
    if any(absent):
        return all(absent)
    listed = [atom for atom in atoms if isinstance(atom, OneOf)]
    others = [atom for atom in atoms if not isinstance(atom, OneOf)]
    if listed:
        return any(
            all(_is_among(value, atom) for atom in listed) and all(_holds(atom, value) for atom in others)
            for value in listed[0].values
        )
    bounds = [atom for atom in atoms if isinstance(atom, Bound)]
    texts = [atom.text for atom in atoms if isinstance(atom, Prefix)]
    return _is_wide(bounds) and all(a.startswith(b) or b.startswith(a) for a in texts for b in texts)


def _is_among(value: Any, atom: OneOf) -> bool:
    return any(value == each for each in atom.values)


def _holds(atom: Atom, value: Any) -> bool:
    if isinstance(atom, Prefix):
        return not isinstance(value, str) or value.startswith(atom.text)
    if not isinstance(atom, Bound):
        return True
    try:
        beyond = value > atom.value if atom.upper else value < atom.value
        return not beyond and not (atom.open and value == atom.value)
    except TypeError:
        return True


def _is_wide(bounds: Iterable[Bound]) -> bool:
    """Whether anything lies between the bounds; what lies between whole numbers counts, too."""
    bounds = tuple(bounds)
    return all(
        _holds(low, high.value) and _holds(high, low.value)
        for low in bounds
        for high in bounds
        if not low.upper and high.upper
    )
