"""Durations and instants as options take them: ``30s`` and ``1 h ago``; a wrong one is wrong usage."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

from situ.errors import SituError
from situ.quantities import parse_duration, parse_moment

# On a command line a space costs quotes: `--for 30s` is as good as `--for '30 s'`.
_TIGHT = re.compile(r"^(\s*[0-9.]+)([A-Za-zµ])")


def read_duration(text: str, option: str) -> timedelta:
    try:
        return parse_duration(_TIGHT.sub(r"\1 \2", text))
    except SituError as error:
        raise _wrong(error, option) from None


def read_moment(text: str, option: str) -> datetime:
    try:
        return parse_moment(_TIGHT.sub(r"\1 \2", text), datetime.now(UTC))
    except SituError as error:
        raise _wrong(error, option) from None


def _wrong(error: SituError, option: str) -> typer.BadParameter:
    problem = error.problems[0]
    return typer.BadParameter(f"{problem.message} {problem.hint}", param_hint=f"'{option}'")
