"""Seals as Spark SQL: the same tokens as :class:`situ.event.seal.Seal` makes, while its keys stand in no plan.

Expressions read the keys from properties of the Java process when they are worked out. Spark takes what `reflect` gives
for something that changes, so it puts no value in its place: plans, logs and messages have the names alone. These have
"secret" in them, by which Spark leaves the values of properties out of what it writes down of its environment.
"""

from __future__ import annotations

from collections.abc import Mapping

from situ.event.seal import Seal
from situ.lang.expr.overload import spark_text

TOKEN = "_situ_token"
_TAG_COLUMN, _MASK_COLUMN = "_situ_tag", "_situ_mask"
_TAG, _MASK = "situ.seal.secret.tag", "situ.seal.secret.mask"


def seal_properties(seal: Seal) -> Mapping[str, str]:
    """The properties that Java has to have where :func:`token_columns` are worked out."""
    return {_TAG: seal.tag_key.hex(), _MASK: seal.mask_key.hex()}


def token_columns(first: str, second: str) -> tuple[str, ...]:
    """Columns of which each needs the one before; the last, :data:`TOKEN`, stands for two numbers of type BIGINT."""
    text = f"concat({_digits(first)}, {_digits(second)})"
    tag = f"substring({_hashed(_TAG, text)}, 1, 16)"
    mask = _hashed(_MASK, _TAG_COLUMN)
    mixed = ", ".join(_digits(f"({each} ^ {_number(_MASK_COLUMN, at)})") for each, at in ((first, 1), (second, 17)))
    token = f"translate(base64(unhex(concat({_TAG_COLUMN}, {mixed}))), '+/', '-_')"
    return f"{tag} AS {_TAG_COLUMN}", f"{mask} AS {_MASK_COLUMN}", f"{token} AS {TOKEN}"


def _digits(number: str) -> str:
    return f"lpad(hex({number}), 16, '0')"


def _number(text: str, at: int) -> str:
    return f"CAST(conv(substring({text}, {at}, 16), 16, -10) AS BIGINT)"


def _hashed(name: str, text: str) -> str:
    """SHA-256 of a key and digits. A property that is not there is read as the word null, which are no digits."""
    missing = spark_text(f"{name} is not set")
    key = f"reflect('java.lang.System', 'getProperty', {spark_text(name)})"
    return f"coalesce(sha2(unhex(concat({key}, {text})), 256), raise_error({missing}))"
