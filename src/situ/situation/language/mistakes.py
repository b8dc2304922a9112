"""What to say about a statement that is none: the usual mistakes by name, all others by what was expected.

Of what the grammar refuses, the first function that recognises it speaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from situ.catalogue import OPTION_UNFIT, POLICY_NAME, POLICY_SYNTAX
from situ.errors import Problem, nearest
from situ.situation.language import mistaken_concepts, mistaken_conditions
from situ.situation.language.lines import OPTIONS, SECTIONS
from situ.situation.language.refused import Refused, shown, syntax_problem, unexpected


def explain(refused: Refused) -> Problem:
    """The one problem of a statement that the grammar refuses."""
    for recognise in _RECOGNISED[refused.rule]:
        if (problem := recognise(refused)) is not None:
            return problem
    return unexpected(refused)


def _not_an_option(refused: Refused) -> Problem | None:
    word, place = refused.found, refused.place()
    if word.lower() in ("if", "when", "then", "rule", "select", "from"):
        remedy = "A policy has the sections `concepts`, `conditions` and `actions`."
        return POLICY_SYNTAX(place, found=f"`{word}`", expected="an option or a section", nearest=(), remedy=remedy)
    known = ("policy", *OPTIONS, *SECTIONS)
    remedy = f"Before `concepts` stand {', '.join(f'`{each}`' for each in ('policy', *OPTIONS))}."
    if not word[:1].isalpha():
        return POLICY_SYNTAX(place, found=shown(word), expected="an option or a section", nearest=(), remedy=remedy)
    return OPTION_UNFIT(place, option=word, reason="is not known", nearest=nearest(word, known), remedy=remedy)


def _bad_name(refused: Refused) -> Problem | None:
    name = refused.text.strip()
    if not name:
        return POLICY_NAME(refused.place(), found="Nothing")
    start = refused.text.index(name)
    return POLICY_NAME(refused.place(start, start + len(name)), found=shown(name))


def _sign_before_duration(refused: Refused) -> Problem | None:
    if not re.match(r"\s*[:=]", refused.text):
        return None
    return syntax_problem(refused, "a duration", "Options are written without a sign: `window 5 s`.")


def _no_mode(refused: Refused) -> Problem | None:
    modes = ("chronicle", "recent", "all")
    reason = f"cannot be {shown(refused.found)}" if refused.found else "says nothing"
    return OPTION_UNFIT(
        refused.place(),
        option="consumption",
        reason=reason,
        nearest=nearest(refused.found, modes, 1),
        remedy="It is `chronicle`, `recent` or `all`.",
    )


_RECOGNISED: Mapping[str, tuple[Callable[[Refused], Problem | None], ...]] = {
    "preamble": (_not_an_option,),
    "policy": (_bad_name,),
    "duration": (_sign_before_duration,),
    "consumption": (_no_mode,),
    "when": (),
    "concepts": mistaken_concepts.RECOGNISED,
    "condition": mistaken_conditions.RECOGNISED,
    "action": (),
}
