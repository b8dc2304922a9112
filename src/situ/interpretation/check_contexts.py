"""What is to say about contexts once all of them are there: rules without effect, mappings that do not work out.

Only faults of their own: what follows from one that is reported already is left out. A context whose types are not all
there is not looked at, since nobody could say what is missing because of that.
"""

from __future__ import annotations

from situ.errors import Problem, Problems
from situ.interpretation.check_rules import check_rules
from situ.interpretation.contexts import Contexts
from situ.interpretation.model import Context, Direction
from situ.interpretation.rules import STANDS_IN
from situ.interpretation.transformation import transformations


def check_contexts(contexts: Contexts, problems: Problems) -> None:
    """Note what is wrong, doubtful or worth knowing about what events become in each context, in both directions."""
    for context in contexts.by_id.values():
        if context.id in contexts.faulty:
            continue
        for direction in Direction:
            found = Problems()
            if not _has_stand_ins(context, direction):
                check_rules(context, direction, found)
            transformations(context, direction, found)
            problems.extend(problem for problem in found if not _follows(problem, contexts))


def _has_stand_ins(context: Context, direction: Direction) -> bool:
    rules = (rule for each in context.chain for rule in each.rules)
    return any(rule.order == STANDS_IN and rule.direction is direction for rule in rules)


def _follows(problem: Problem, contexts: Contexts) -> bool:
    """Whether it is about a place whose own mapping was refused."""
    type, path = problem.values.get("type"), problem.values.get("target")
    return any(
        type == lost and isinstance(path, str) and (f"{path}.".startswith(f"{at}.") or f"{at}.".startswith(f"{path}."))
        for lost, at in contexts.lost
    )
