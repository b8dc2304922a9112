"""How an entry comes into the catalogue: by being defined, once."""

from __future__ import annotations

from situ.errors import Code, Severity

CODES: dict[str, Code] = {}


def define(
    code: str,
    title: str,
    message: str,
    hint: str = "",
    otherwise: str = "",
    severity: Severity = Severity.ERROR,
    **parameters: type,
) -> Code:
    """Enter a code; a code that is already there, under whatever name, is a mistake."""
    if code in CODES:
        raise ValueError(f"{code} is defined twice")
    entry = Code(code, severity, title, message, hint, otherwise, parameters)
    CODES[code] = entry
    return entry
