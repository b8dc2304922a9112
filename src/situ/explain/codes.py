"""What there is to know about the code of a problem: what the catalogue says of it."""

from __future__ import annotations

from situ.lang.explanation import Explanation
from situ.lang.problems import Code, Severity


class CodeExplanation(Explanation, frozen=True, kw_only=True):
    """A code of problems, as the catalogue has it."""

    code: str
    severity: Severity
    title: str
    message: str
    """With the names of parameters in braces, as the hint and what is said otherwise."""
    hint: str
    otherwise: str
    """The hint where there is nothing to suggest."""
    parameters: dict[str, str]
    """Their types, by name."""


def describe_code(code: Code) -> CodeExplanation:
    """An entry of the catalogue."""
    return CodeExplanation(
        code=code.code,
        severity=code.severity,
        title=code.title,
        message=code.message,
        hint=code.hint,
        otherwise=code.otherwise,
        parameters={name: type.__name__ for name, type in code.parameters.items()},
    )
