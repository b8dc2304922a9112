"""How far apart two points may be for a relation to hold: what a grid needs to know.

Found where a test says it plainly, ``distance(left.p, right.p) <= c`` in the plane, alone or joined with more by AND,
or in every part of an OR. Where nothing is found, nothing is promised.
"""

from __future__ import annotations

from dataclasses import replace

from situ.expr.tree import And, Apply, Compare, Literal, Node, Or, Read
from situ.situation.policies.policy import LEFT, RIGHT, Reach


def reach_of(test: Node) -> Reach | None:
    """The reach of a simplified test, if it is surely bounded."""
    match test:
        case Compare(op="<" | "<=", left=Apply(overload=overload, args=args), right=Literal(value=float() as most)):
            return _between(args, most) if overload.name == "distance" and most > 0 else None
        case And(args=args):
            found = [reach for arg in args if (reach := reach_of(arg)) is not None]
            return min(found, key=lambda each: each.distance, default=None)
        case Or(args=args):
            each_of = [reach_of(arg) for arg in args]
            known = [reach for reach in each_of if reach is not None]
            same = len({(reach.left, reach.right) for reach in known}) == 1
            return max(known, key=lambda each: each.distance) if same and len(known) == len(each_of) else None
        case _:
            return None


def _between(args: tuple[Node, ...], most: float) -> Reach | None:
    """Of coordinates as they are read: one that is converted is in another unit than the column it comes from."""
    match args:
        case (Read() as x1, Read() as y1, Read() as x2, Read() as y2):
            first, second = (x1.path, y1.path), (x2.path, y2.path)
            variables = x1.variable, y1.variable, x2.variable, y2.variable
            reach = Reach(left=first, right=second, distance=most)
            if variables == (LEFT, LEFT, RIGHT, RIGHT):
                return reach
            return replace(reach, left=second, right=first) if variables == (RIGHT, RIGHT, LEFT, LEFT) else None
        case _:
            return None
