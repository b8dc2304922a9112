"""``${NAME}`` in values: taken from the environment, for what does not belong into a file.

Keys are never substituted, and what comes from the environment is not looked into again. The
environment is an argument: this module does not read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Environment
from dataclasses import replace
from typing import Any

from situ.catalogue import BAD_CHARACTER, BAD_REFERENCE, DOCUMENT_TOO_LARGE, ENVIRONMENT_UNSET, TOO_MANY_PROBLEMS
from situ.documents.core_schema import resolve
from situ.documents.nodes import Node, Piece, Scalar, Sequence
from situ.documents.source import Limits
from situ.errors import Code, Problems

_REFERENCE = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<broken>\$\{[^}\r\n]{0,40}\}?)")
_SURROGATE = re.compile("[\ud800-\udfff]")


def substitute(
    node: Node,
    environment: Environment[str, str],
    problems: Problems,
    limits: Limits = Limits(),  # noqa: B008
) -> Node:
    """The node with every ``${NAME}`` in its values replaced; ``$${`` stands for ``${`` itself.

    A plain scalar is read anew after the replacement, so ``port: ${PORT}`` is a number. Where a
    reference cannot be replaced a problem is added and the reference stays.
    """
    return _Substitution(environment, problems, limits).node(node)


class _Substitution:
    def __init__(self, environment: Environment[str, str], problems: Problems, limits: Limits) -> None:
        self._environment = environment
        self._problems = problems
        self._limits = limits
        # A file of megabytes may name a long variable on every line, or one that is not set: what it grows
        # to and what is said about it are bounded.
        self._room = limits.size
        self._reports = limits.problems

    def node(self, node: Node) -> Node:
        if isinstance(node, Scalar):
            return self._scalar(node) if "${" in node.text else node
        if isinstance(node, Sequence):
            return replace(node, items=tuple(self.node(item) for item in node.items))
        return replace(node, entries=tuple((key, self.node(value)) for key, value in node.entries))

    def _scalar(self, scalar: Scalar) -> Scalar:
        chunks: list[str] = []
        pieces: list[Piece] = []
        length = written = 0

        def add(chunk: str, start: int, end: int, *, verbatim: bool) -> None:
            nonlocal length, written
            if chunk or not pieces:
                pieces.append(Piece(length, start, end, verbatim))
            chunks.append(chunk)
            length, written = length + len(chunk), end

        for found in _REFERENCE.finditer(scalar.text):
            add(scalar.text[written : found.start()], written, found.start(), verbatim=True)
            add(self._replacement(scalar, found), *found.span(), verbatim=False)
        add(scalar.text[written:], written, len(scalar.text), verbatim=True)
        text = "".join(chunks)
        value = text if scalar.quoted else resolve(text)
        return replace(scalar, text=text, value=value, written=scalar, pieces=tuple(pieces))

    def _replacement(self, scalar: Scalar, found: re.Match[str]) -> str:
        if found["escape"]:
            return "${"
        name = found["name"]
        if name is None:
            return self._refuse(scalar, found, BAD_REFERENCE, found=found[0])
        value = self._environment.get(name)
        if value is None:
            return self._refuse(scalar, found, ENVIRONMENT_UNSET, name=name)
        if half := _SURROGATE.search(value):
            return self._refuse(scalar, found, BAD_CHARACTER, character=f"U+{ord(half[0]):04X} in `{name}`")
        if len(value) > self._room:
            return self._refuse(scalar, found, DOCUMENT_TOO_LARGE, **self._too_large)
        self._room -= len(value)
        return value

    def _refuse(self, scalar: Scalar, reference: re.Match[str], code: Code, **values: Any) -> str:
        """Note the problem; the reference stays as it was written."""
        if self._reports > 0:
            self._problems.add(code(scalar.locate(reference.start(), len(reference[0])), **values))
        elif self._reports == 0:
            self._problems.add(TOO_MANY_PROBLEMS(scalar.location, most=self._limits.problems))
        self._reports -= 1
        return reference[0]

    @property
    def _too_large(self) -> dict[str, Any]:
        remedy = "Refer to a file instead of putting its content into the environment."
        return {"much": "large", "most": self._limits.size, "unit": "characters from the environment", "remedy": remedy}
