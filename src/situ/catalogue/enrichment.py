"""``S245`` and ``S246``: what enrichment notices while it joins events to what sources know."""

from situ.catalogue.defining import define
from situ.errors import Severity

UNKNOWN_IDENTITIES = define(
    "S245",
    "identities that no source knows",
    "{count} observations through `{push}` are of instances of `{concept}` that no source knows, such as `{sample}`.",
    "Nothing is known of them but who they are, so constraints on them do not hold. Look at the key of the pull "
    "source, and at the path of the identity in the push source.",
    severity=Severity.WARNING,
    push=str,
    concept=str,
    count=int,
    sample=str,
)
TEST_FAILED = define(
    "S246",
    "relation that cannot be told",
    "`{test}` failed {count} times, as with {sample}; it does not hold there.",
    "Say in the relationship's function what it is to be for such values.",
    severity=Severity.WARNING,
    test=str,
    count=int,
    sample=str,
)
