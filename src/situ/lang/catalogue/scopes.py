"""``V``: visibility. Dimensions, scopes, filters at boundaries, tags, grants, and how all that is changed."""

from situ.lang.problems import Severity, define

UNKNOWN_DIMENSION = define(
    "V001",
    "unknown dimension",
    "There is no dimension `{name}`.",
    "Did you mean {nearest}?",
    "Declare it under `dimensions:` in scopes.yaml.",
    name=str,
    nearest=tuple,
)
UNKNOWN_SCOPE = define(
    "V002",
    "unknown scope",
    "The dimension `{dimension}` has no scope `{name}`{elsewhere}.",
    "Did you mean {nearest}?",
    "Declare it under `dimensions: {dimension}: scopes:` in scopes.yaml.",
    name=str,
    dimension=str,
    elsewhere=str,
    nearest=tuple,
)
SCOPE_NAME_TAKEN = define(
    "V003",
    "name that is taken",
    "`{name}` cannot be a scope of the dimension `{dimension}`: it is {taken} already.",
    "Dimensions share no scopes, and no client is called like a scope: give one of them another name.",
    name=str,
    dimension=str,
    taken=str,
)
SCOPE_CYCLE = define(
    "V004",
    "scope inside itself",
    "With `{member}` in `{container}` a scope would be inside itself: {cycle}.",
    "Take one of these memberships out.",
    member=str,
    container=str,
    cycle=str,
)
MEMBER_OF_CLIENT = define(
    "V005",
    "member of a client",
    "`{member}` cannot be in `{client}`, which is a client.",
    "Only scopes have members. Put both into one scope.",
    member=str,
    client=str,
)
NOT_A_MEMBER = define(
    "V006",
    "tag without membership",
    "`{who}` names the scope `{scope}` of the dimension `{dimension}`, and is no direct member of such a scope.",
    "Name {memberships}, or have an administrator of the scope let `{who}` join it.",
    "Have an administrator of the scope let `{who}` join it.",
    who=str,
    scope=str,
    dimension=str,
    memberships=tuple,
)
NO_SCOPE = define(
    "V007",
    "any as a scope",
    "`{name}` stands for any scope, and cannot {what}.",
    "{remedy}",
    name=str,
    what=str,
    remedy=str,
)
BOUNDARY_UNKNOWN_NAME = define(
    "V008",
    "unknown name in a filter",
    "The filter of `{scope}` uses `{name}`, which no event type of root has.",
    "Did you mean {nearest}?",
    "Filters see `event.type`, `event.source`, `event.id`, `event.time`, `event.confidence` and the attributes of "
    "event types.",
    scope=str,
    name=str,
    nearest=tuple,
)
BOUNDARY_NOT_ALLOWED = define(
    "V009",
    "not allowed in a filter",
    "The filter of `{scope}` uses {found}, which is not allowed there.",
    "{reason}",
    scope=str,
    found=str,
    reason=str,
)
BOUNDARY_NO_CONDITION = define(
    "V010",
    "filter that is no condition",
    "The filter of `{scope}` is not a condition that is true or false of an event.",
    "{remedy}",
    scope=str,
    remedy=str,
)
OBSERVE_MISSING = define(
    "V011",
    "no grant to observe",
    "`{who}` wants events of any scope of the dimension `{dimension}`, which is closed, and may not observe it.",
    "Name one of your scopes there, {or_rest}, or have an administrator grant `observe` to `{who}`.",
    "Name one of your scopes there, or have an administrator grant `observe` to `{who}`.",
    who=str,
    dimension=str,
    or_rest=str,
)
BROADCAST_MISSING = define(
    "V012",
    "no grant to broadcast",
    "`{who}` publishes to any scope of the dimension `{dimension}`, which is closed, and may not broadcast there.",
    "Name one of your scopes there, {or_rest}, or have an administrator grant `broadcast` to `{who}`.",
    "Name one of your scopes there, or have an administrator grant `broadcast` to `{who}`.",
    who=str,
    dimension=str,
    or_rest=str,
)
SCOPE_IN_USE = define(
    "V013",
    "scope in use",
    "The scope `{scope}` of the dimension `{dimension}` still has members: {members}.",
    "Let them leave it first.",
    scope=str,
    dimension=str,
    members=str,
)
NO_RIGHT_TO_SCOPE = define(
    "V014",
    "no right",
    "`{who}` may not {what}.",
    "An administrator can grant `admin` there.",
    who=str,
    what=str,
)
OLD_EPOCH = define(
    "V015",
    "old epoch",
    "This change was made for epoch {given} of the scopes, which are at epoch {current}.",
    "Look at what has changed since, and make the change again.",
    given=int,
    current=int,
)
TWO_TAGS = define(
    "V016",
    "two tags in one dimension",
    "Two scopes of the dimension `{dimension}` are named: {scopes}.",
    "Name one. Whoever is in both declares two advertisements or subscriptions.",
    dimension=str,
    scopes=str,
)
CARRIERS_APART = define(
    "V017",
    "carriers that do not overlap",
    "`{member}` is in `{container}`, and no zone carries both: {carried_member} and {carried_container}.",
    "Give both a zone in common under `carriers:`.",
    member=str,
    container=str,
    carried_member=str,
    carried_container=str,
)
NOT_CARRIED = define(
    "V018",
    "tag in a zone that does not carry it",
    "The zone `{zone}` does not carry the scope `{scope}` of the dimension `{dimension}`.",
    "It is carried by {carriers}.",
    "No zone carries it.",
    zone=str,
    scope=str,
    dimension=str,
    carriers=tuple,
)
NOTHING_SAID = define(
    "V107",
    "nothing said in a closed dimension",
    "`{id}` says nothing in the dimension `{dimension}`, which is closed: {outcome}.",
    "Name a scope there under `scopes:`.",
    severity=Severity.WARNING,
    id=str,
    dimension=str,
    outcome=str,
)
BLOCKED_TYPES = define(
    "V108",
    "filter that blocks types",
    "The filter of `{scope}` uses {names}, which events of {types} do not have: it lets none of them pass.",
    "Write `type IS … AND …` if that is meant, or `type IS … OR …` to let them pass.",
    severity=Severity.WARNING,
    scope=str,
    names=str,
    types=str,
)
LARGE_FAMILY = define(
    "V109",
    "many ways between two tags",
    "From `{producer}` to `{consumer}` in the dimension `{dimension}` there are more than {most} smallest sets of "
    "filters.",
    "They are kept as they are nested, which costs more for each event. Give scopes that lie side by side the same "
    "filters.",
    severity=Severity.WARNING,
    dimension=str,
    producer=str,
    consumer=str,
    most=int,
)
UNREACHED_SITUATIONS = define(
    "V110",
    "situations that reach nobody",
    "Situations of the policy `{policy}` can reach none of the subscriptions to them: {subscriptions}.",
    "A situation is visible to those who may see all of its causes: check `reads:` and `publishes:` of the policy, "
    "or have an administrator release it.",
    severity=Severity.WARNING,
    policy=str,
    subscriptions=str,
)
UNKNOWN_KEPT = define(
    "V020",
    "unknown attribute in a release",
    "The release of `{policy}` keeps `{name}`, and nothing that the policy publishes has an attribute of this name.",
    "Did you mean {nearest}?",
    "It can keep {known}.",
    policy=str,
    name=str,
    nearest=tuple,
    known=tuple,
)
REQUIRED_NOT_KEPT = define(
    "V021",
    "release without what a type requires",
    "The release of `{policy}` keeps no `{name}`, which an event of type `{type}` that it publishes cannot be without.",
    "Keep it, or make the attribute optional.",
    policy=str,
    name=str,
    type=str,
)
UNSEEN_SOURCE = define(
    "V111",
    "table that a policy does not see",
    "The policy `{policy}` needs the table `{source}`, which is not visible to it: it detects nothing.",
    "{remedy}",
    severity=Severity.WARNING,
    policy=str,
    source=str,
    remedy=str,
)
CHANGED_ELSEWHERE = define(
    "V022",
    "changed in the folder and while events flow",
    "scopes.yaml declares {what} as {folder}, and a change while events flow made it {in_force}.",
    "Write into scopes.yaml what is in force, which `situ get scopes scopes.yaml` shows, or change it back with "
    "`situ scopes`.",
    what=str,
    folder=str,
    in_force=str,
)
DECLARATION_SUSPENDED = define(
    "V112",
    "suspended",
    "The {kind} `{name}` is suspended: {reason}.",
    "Declare it again when the client has the right again.",
    severity=Severity.WARNING,
    kind=str,
    name=str,
    reason=str,
)
