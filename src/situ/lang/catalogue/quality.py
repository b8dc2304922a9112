"""``Q``: quality. Properties, expectations, capability profiles, costs, actions, strategies, and calls about them."""

from situ.lang.problems import Severity, define

UNKNOWN_PROPERTY = define(
    "Q101",
    "unknown property",
    "There is no property `{name}`.",
    "Did you mean {nearest}?",
    "There are {known}; others are declared under `properties:` in a file of `quality/`.",
    name=str,
    nearest=tuple,
    known=tuple,
)
OUTSIDE_DOMAIN = define(
    "Q102",
    "value outside of the domain",
    "`{value}` is no value of `{name}`, which goes from {lo} to {hi}.",
    "Did you mean {nearest}?",
    "Write a value of this range.",
    value=str,
    name=str,
    lo=str,
    hi=str,
    nearest=tuple,
)
BOUNDS_SWAPPED = define(
    "Q103",
    "bounds the wrong way round",
    "`lb` of `{name}` is {lb}, which is above `ub`, {ub}.",
    "`lb` is the smaller number, or the lower level, also where less is better. Exchange the two.",
    name=str,
    lb=str,
    ub=str,
)
UNIT_NOT_CONVERTIBLE = define(
    "Q104",
    "unit that does not convert",
    "`{value}` does not convert to the unit of `{name}`, {unit}.",
    "Write it in {unit}, or in a unit that converts to it.",
    value=str,
    name=str,
    unit=str,
)
CURRENT_OUTSIDE = define(
    "Q105",
    "current value outside of the range",
    "`{name}` is at {cv}, which is not from {lb} to {ub}.",
    "The range has to contain the value that the publisher operates at now. Values that only go together with others "
    "are `modes:`.",
    name=str,
    cv=str,
    lb=str,
    ub=str,
)
BAD_COST = define(
    "Q106",
    "bad cost",
    "This is no cost. {what}.",
    "{remedy}",
    what=str,
    remedy=str,
)
BAD_MODES = define(
    "Q107",
    "modes that do not go together",
    "{what}.",
    "{remedy}",
    what=str,
    remedy=str,
)
NOT_PUBLISHERS = define(
    "Q108",
    "not the publisher's to declare",
    "`{name}` is determined by the middleware, not by a publisher.",
    "Leave it out: the middleware measures it.",
    name=str,
)
UNKNOWN_ADAPTATION = define(
    "Q109",
    "unknown action",
    "There is no action `{name}`{direction}.",
    "Did you mean {nearest}?",
    "There are {known}.",
    name=str,
    direction=str,
    nearest=tuple,
    known=tuple,
)
HOP_UNFIT = define(
    "Q110",
    "hop rule that does not fit",
    "`{name}` cannot have `hop: {hop}`: {reason}.",
    "`add` needs numbers where less is better, `multiply` numbers from 0 where more is better; `same` and `worst` fit "
    "everything.",
    name=str,
    hop=str,
    reason=str,
)
CALL_NOT_ALLOWED = define(
    "Q111",
    "call that is not allowed now",
    "`{id}` cannot be {done}: it {state}.",
    "{remedy}",
    id=str,
    done=str,
    state=str,
    remedy=str,
)
STALE_VERSION = define(
    "Q112",
    "stale version",
    "This would make version {given} of `{id}`, which is at version {current} already.",
    "Look at what has changed since, and make the call again with the version behind that, or without one.",
    id=str,
    given=int,
    current=int,
)
UNSUPPORTED_COMPOSITE = define(
    "Q113",
    "composite that is not supported",
    "`{id}` asks for {what}.",
    "`from:` is a whole number from 1 to {most}: so many publishers of one zone, each for itself, have to satisfy it.",
    id=str,
    what=str,
    most=int,
)
BUILT_IN_CHANGED = define(
    "Q114",
    "built-in property with another scale",
    "`{name}` is built in, and measured, as {scale}: it cannot be anything else.",
    "Leave range, levels, unit and `improve` as they are, or give the property another name.",
    name=str,
    scale=str,
)
UNKNOWN_STRATEGY = define(
    "Q115",
    "unknown strategy",
    "There is no strategy `{name}`.",
    "Did you mean {nearest}?",
    "There are {known}.",
    name=str,
    nearest=tuple,
    known=tuple,
)
ABOUT_NOTHING = define(
    "Q116",
    "declaration about nothing there is",
    "There is no {what} `{name}`.",
    "Did you mean {nearest}?",
    "{remedy}",
    what=str,
    name=str,
    nearest=tuple,
    remedy=str,
)
BAD_ATTRIBUTE = define(
    "Q117",
    "property of an attribute",
    "{what}.",
    "{remedy}",
    what=str,
    remedy=str,
)
NEED_OPTION_UNFIT = define(
    "Q118",
    "option that does not fit",
    "`{option}` means nothing for `{name}`.",
    "It goes with {fits}.",
    option=str,
    name=str,
    fits=str,
)
BAD_SCALE = define(
    "Q119",
    "property without a scale",
    "`{name}` {what}.",
    "Give it `range: [lo, hi]`, the smaller number first, or `levels:`, at least two, in ascending order.",
    name=str,
    what=str,
)
TOO_MANY = define(
    "Q120",
    "too many at once",
    "There are {count} {what} here, and at most {most} are possible.",
    "Leave out what nobody needs.",
    count=int,
    what=str,
    most=int,
)
NOT_A_DRAFT = define(
    "Q131",
    "file without drafts",
    "`{file}` cannot be read as expectations or profiles: {reason}.",
    "Write it like a file of `quality/` in a project, or have `store` write it.",
    file=str,
    reason=str,
)
NOT_NEGOTIATED = define(
    "Q132",
    "nothing of this name is negotiated",
    "There is no {what} `{name}`.",
    "Did you mean {nearest}?",
    "`situ quality` lists what there is.",
    what=str,
    name=str,
    nearest=tuple,
)
INTERNAL = define(
    "Q133",
    "unexpected failure of the router",
    "The router failed unexpectedly; its log has the failure as `{id}`: {what}.",
    "This is a bug in Situ: report it with that entry of the log. Nothing else is affected; the same call may fail "
    "again.",
    id=str,
    what=str,
)
EMPTY_NEED = define(
    "Q201",
    "empty need",
    "`{id}` needs nothing: it is satisfied as soon as anybody publishes.",
    "Say what is needed under `need:`, or take the expectation out.",
    severity=Severity.WARNING,
    id=str,
)
NOBODY_COVERS = define(
    "Q202",
    "need that no declared profile covers",
    "No declared profile covers what `{id}` needs: {reasons}.",
    "It stays unsatisfied unless a publisher that can do more comes while events flow.",
    severity=Severity.WARNING,
    id=str,
    reasons=str,
)
NOT_THERE_YET = define(
    "Q203",
    "declaration about something that does not exist yet",
    "The project has no {what} `{name}`.",
    "Did you mean {nearest}? If not, this takes effect as soon as there is one.",
    "This takes effect as soon as there is one.",
    severity=Severity.WARNING,
    what=str,
    name=str,
    nearest=tuple,
)
