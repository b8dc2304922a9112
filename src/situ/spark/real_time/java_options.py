"""Options of librdkafka as those of Java's client, which Spark's connector uses.

A project says once how Kafka is reached. What both libraries call alike is passed on, certificates as PEM; an option
that is for librdkafka's own work stays with it, and one that decides whether somebody is let in and is not known here
is refused (N165) rather than left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from situ.kafka.connection import KafkaAddress
from situ.lang.catalogue import REAL_TIME_FAILED
from situ.lang.problems import SituError

_ALIKE = ("security.protocol", "client.id", "ssl.endpoint.identification.algorithm")
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_ACCESS = re.compile(r"(?:sasl|ssl|security|enable\.ssl)\..*")


def java_options(address: KafkaAddress) -> dict[str, str]:
    """What Java's client needs to reach the same servers; N165 for what it cannot be told."""
    given = dict(address.options)
    made = {"bootstrap.servers": address.servers}
    made |= {name: given.pop(name) for name in _ALIKE if name in given}
    mechanism = given.pop("sasl.mechanism", given.pop("sasl.mechanisms", ""))
    user, password = given.pop("sasl.username", ""), given.pop("sasl.password", "")
    if mechanism:
        login = _LOGINS.get(mechanism)
        if login is None:
            raise _unknown(f"sasl.mechanism: {mechanism}")
        made["sasl.mechanism"] = mechanism
        made["sasl.jaas.config"] = f"{login} required username={_quoted(user)} password={_quoted(password)};"
    if authority := _pem(given, "ca"):
        made |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority}
    chain, key = _pem(given, "certificate"), _pem(given, "key")
    if chain and key:
        made |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
        if secret := given.pop("ssl.key.password", ""):
            made["ssl.key.password"] = secret
    if unknown := next((name for name in given if _ACCESS.fullmatch(name)), None):
        raise _unknown(unknown)
    return made


def _pem(given: dict[str, str], what: str) -> str:
    """A certificate or key, as text or out of its file."""
    text, file = given.pop(f"ssl.{what}.pem", ""), given.pop(f"ssl.{what}.location", "")
    return text or (Path(file).read_text(encoding="utf-8") if file else "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unknown(option: str) -> SituError:
    reason = f"Java's client of Kafka is not told `{option}` of `kafka.options`"
    return SituError(REAL_TIME_FAILED(reason=reason))
