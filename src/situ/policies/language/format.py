"""A policy's file in its canonical form: as the printer writes it, with a person's comments and blank lines.

A comment keeps its line, or the end of the line it stands behind; one inside a statement moves in front of it. A file
that is not right stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from situ.lang.documents.nodes import SourceText
from situ.lang.problems import Problems, SituError
from situ.lang.quantities import format_duration
from situ.policies.language.parse import LIMITS, parse_policy
from situ.policies.language.print import INDENT, concept_width, lines_of, print_action, print_concept, print_line
from situ.policies.language.statements import PolicyBlock, PolicyStatement, split_statements
from situ.policies.language.syntax import PolicyText

_COMMENT = re.compile(r"[^\n#']*(?:'[^'\n]*'[^\n#']*)*(?P<comment>#[^\n]*)")


def format_policy(text: str, file: str) -> str:
    """The file in its form; formatting that again changes nothing."""
    lined = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        policy = parse_policy(lined, file)
    except SituError:
        return text
    source = SourceText(file, lined)
    (block,) = split_statements(source, Problems(), LIMITS.problems)
    tidied = "\n".join(_Tidying(lined, policy, block).lines()).strip("\n") + "\n"
    try:
        return tidied if parse_policy(tidied, file) == policy else text
    except SituError:
        return text


class _Tidying:
    """Pieces of the file in order, each with the text it gets, and what stands between them."""

    def __init__(self, text: str, policy: PolicyText, block: PolicyBlock) -> None:
        self.text, self.policy, self.block = text, policy, block

    def lines(self) -> Iterator[str]:
        position = 0
        indent = ""
        for start, end, written, level in self._pieces():
            yield from self._between(position, start, indent if level else "")
            inner, behind, position = self._comments(start, end)
            yield from (INDENT * level + each for each in inner)
            yield (INDENT * level + written + (f"  {behind}" if behind else "")).rstrip()
            indent = INDENT
        yield from self._between(position, len(self.text), indent)

    def _pieces(self) -> Iterator[tuple[int, int, str, int]]:
        """(start, end, text, depth) of everything that is not a comment."""
        for statement in self.block.preamble:
            yield statement.start, statement.end, self._option(statement), 0
        printed = {
            "concepts": self._concepts(),
            "conditions": [print_line(each) for each in lines_of(self.policy.conditions)],
            "actions": [print_action(each) for each in self.policy.actions],
        }
        for section in self.block.sections:
            head = section.name
            end = section.start + len(head)
            if section.when is not None and self.policy.when is not None:
                head, end = f"{head} on {self.policy.when.value}", section.when.end
            yield section.start, end, head, 0
            for statement, written in zip(section.statements, printed[section.name], strict=True):
                yield statement.start, statement.end, written, 1

    def _concepts(self) -> list[str]:
        """What each statement defines; several concepts of one line get one each."""
        width = concept_width(self.policy.concepts)
        found: list[str] = []
        waiting = list(self.policy.concepts)
        section = next(each for each in self.block.sections if each.name == "concepts")
        for statement in section.statements:
            here = []
            last = self.text.count("\n", 0, statement.end) + 1
            begin = self.text.count("\n", 0, statement.start) + 1
            while waiting and waiting[0].location is not None and begin <= waiting[0].location.line <= last:
                here.append(print_concept(waiting.pop(0), width))
            found.append(f"\n{INDENT}".join(here))
        return found

    def _option(self, statement: PolicyStatement) -> str:
        word = statement.text.split()[0].lower()
        if word == "policy":
            return f"policy {self.policy.name.text if self.policy.name else ''}"
        value = getattr(self.policy, word)
        return f"{word} {value.value if word == 'consumption' else format_duration(value)}"

    def _comments(self, start: int, end: int) -> tuple[list[str], str, int]:
        """Of a statement: those inside, the one behind it, and where the next thing can begin."""
        lines = self.text[start:end].split("\n")[:-1]
        inner = [found["comment"].rstrip() for line in lines if (found := _COMMENT.match(line))]
        stop = self.text.find("\n", end) if "\n" in self.text[end:] else len(self.text)
        rest = self.text[end:stop].strip()
        if rest and not rest.startswith("#"):  # the section's first statement stands on its line
            return inner, "", end
        return inner, rest, stop

    def _between(self, start: int, end: int, indent: str) -> Iterator[str]:
        """Comments and blank lines before the next statement; no two blank lines in a row."""
        blank = start == 0
        for line in self.text[start:end].split("\n")[1 if start else 0 : -1 if end < len(self.text) else None]:
            if line.strip():
                yield indent + line.strip()
                blank = False
            elif not blank:
                yield ""
                blank = True
