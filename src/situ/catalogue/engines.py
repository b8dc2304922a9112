"""``N``: what executes a deployment."""

from __future__ import annotations

from situ.catalogue.defining import define

CHECKPOINT_DAMAGED = define(
    "N101",
    "checkpoint damaged",
    "What the engine wrote down of its progress cannot be read: {reason}.",
    "Put the folder back from a back-up, or move it away: the engine then goes on behind the last event of the log.",
    reason=str,
)
ENGINE_FAILED = define(
    "N102",
    "engine failed",
    "The {engine} engine stopped: {reason}.",
    "{remedy}",
    engine=str,
    reason=str,
    remedy=str,
)
NO_SPARK = define(
    "N103",
    "no Spark",
    "The Spark engine cannot start: {reason}.",
    "Install `situ[spark]`, and `situ[java]` on a machine without Java, or set `engine: edge`.",
    reason=str,
)
