"""``S195`` to ``S199``: tests of policies, and questions about what they detect."""

from __future__ import annotations

from situ.catalogue.defining import define

UNKNOWN_POLICY = define(
    "S195",
    "unknown policy",
    "There is no policy `{name}`.",
    "Did you mean {nearest}?",
    "Policies are the files `policies/*.dpl`.",
    name=str,
    nearest=tuple,
)
NO_TABLE_TO_FILL = define(
    "S196",
    "rows for no table",
    "There is no pull source `{name}` to give rows to.",
    "Did you mean {nearest}?",
    "Pull sources are declared under `pull` in `sources/*.yaml`.",
    name=str,
    nearest=tuple,
)
TEST_FILE_UNFIT = define(
    "S197",
    "file of a test that cannot be used",
    "`{file}` cannot stand for a list here: {reason}.",
    "{remedy}",
    file=str,
    reason=str,
    remedy=str,
)
NO_DETECTION = define(
    "S198",
    "unknown detection",
    "There is no detection or situation `{id}` {where}.",
    "{remedy}",
    id=str,
    where=str,
    remedy=str,
)
NOT_EXPLAINED = define(
    "S199",
    "detection that cannot be explained any more",
    "How `{id}` came about cannot be told: {reason}.",
    "{remedy}",
    id=str,
    reason=str,
    remedy=str,
)
