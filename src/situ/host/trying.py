"""Tests of policies on Spark, for whoever has a project and no run: a session of their own, gone when they are done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from situ.bus.folder_lock import private_folder
from situ.catalogue import ENGINE_FAILED, NO_SPARK
from situ.deployment import Deployment
from situ.deployment.trying import Tried
from situ.errors import SituError
from situ.host.logs import LOGS
from situ.situation.meaning.policy_test import PolicyTest

LOG = LOGS / "test.log"
"""What Spark and Java say on their own; begun anew each time."""


def try_in_session(folder: Path, deployment: Deployment, tests: Sequence[PolicyTest]) -> list[Tried]:
    """What comes of these tests; :class:`SituError` if there is no Spark, or if it fails."""
    if not tests:
        return []
    try:
        from situ.pipeline.session import LOST, open_session
        from situ.pipeline.trying import try_on_spark
    except ModuleNotFoundError as error:
        raise SituError(NO_SPARK(reason=f"there is no Python module `{error.name}`")) from error
    settings = deployment.settings
    log = folder / LOG
    private_folder(log.parent)
    conf = {name: value.value for name, value in settings.spark.conf}
    session = open_session(app=f"situ test {settings.name}", master=settings.spark.master.value, conf=conf, log=log)
    try:
        return try_on_spark(session, deployment, tests)
    except LOST as error:
        reason = str(error).strip().splitlines()[0][:500] or type(error).__name__
        remedy = f"See {LOG}; `situ test --engine edge` needs no Spark."
        raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=remedy)) from error
    finally:
        session.stop()
