"""The canonical form of the project's files: what a person wrote, tidied.

Comments, order and lines stay as they are. Trailing blanks, tabs between words, foreign line ends go; attributes,
heads of types, signatures and expressions get their one spelling. A file that is not right as YAML stays as it is,
and no change is made that would change what a file says. Policies are printed anew, with their comments. Contexts in
XML and Python stay as they are, too.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from situ.lang.documents import MappingNode, Node, ScalarNode, SequenceNode, parse_yaml, to_data
from situ.lang.problems import Problems
from situ.policies.language.format import format_policy
from situ.project.canonical_text import Respelling, respell
from situ.project.folder import is_code, is_policy, is_xml, kind_of, list_files, read_file

_COMMENT_OR_TABS = re.compile(r"(?P<comment>#[^\n]*)|[ ]*\t[ \t]*")
_TRAILING = re.compile(r"[ \t]+(?=\n)")


def format_text(text: str, file: str) -> str:
    """The file in its canonical form; formatting that again changes nothing."""
    if is_policy(file):
        return format_policy(text, file)
    kind = kind_of(file)
    if kind is None or is_xml(file) or is_code(file) or not text.strip() or _parse(text, file) is None:
        return text
    lined = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    root = _parse(lined, file)
    if root is None:
        return text
    spelled = _spell(lined, file, root, tuple(respell(root, kind)))
    return _tidy(spelled, file)


def format_folder(path: Path, *, write: bool) -> tuple[str, ...]:
    """The files of a project that are not in canonical form; with ``write`` they are brought into it."""
    changed = []
    for file in list_files(path):
        data = read_file(path, file, Problems())
        try:
            text = data.decode("utf-8") if data is not None else ""
        except UnicodeDecodeError:
            continue  # `situ check` says so, with the place
        formatted = format_text(text, file)
        if formatted != text:
            changed.append(file)
            if write:
                replace_file((path / file).resolve(), formatted)
    return tuple(changed)


def _parse(text: str, file: str) -> Node | None:
    """The file's content, if nothing at all is wrong with it as YAML."""
    document = parse_yaml(text, file)
    return None if document.problems else document.root


# ── spellings ─────────────────────────────────────────────────────────────────────────────────────


def _spell(text: str, file: str, root: Node, changes: Sequence[Respelling]) -> str:
    """Put the new spellings in. A text may need quotes in its new spelling where it had none: such a one stays."""
    written = [change for change in changes if _raw(change) is not None]
    together = _apply(text, written)
    if _says(together, file, root, written):
        return together
    good: list[Respelling] = []
    for change in written:
        if _says(_apply(text, [*good, change]), file, root, [*good, change]):
            good.append(change)
    return _apply(text, good)


def _apply(text: str, changes: Iterable[Respelling]) -> str:
    pieces = []
    position = 0
    for change in sorted(changes, key=lambda each: each.scalar.start):
        pieces += [text[position : change.scalar.start], _raw(change) or ""]
        position = change.scalar.end
    return "".join([*pieces, text[position:]])


def _raw(change: Respelling) -> str | None:
    """The new text in the style of the old one; None where that cannot be done simply."""
    scalar, text = change.scalar, change.text
    raw = scalar.source.text[scalar.start : scalar.end]
    match scalar.style:
        case "" if raw == scalar.text:
            return text
        case "'" if "\n" not in raw:
            return "'" + text.replace("'", "''") + "'"
        case '"' if raw[1:-1] == scalar.text and not set('"\\') & set(text):
            return f'"{text}"'
        case _:
            return None


def _says(text: str, file: str, root: Node, changes: Iterable[Respelling]) -> bool:
    """Whether the text says what the file said, but for these changes."""
    found = _parse(text, file)
    new = {change.scalar.start: change.text for change in changes}
    return found is not None and to_data(found) == _expected(root, new)


def _expected(node: Node, new: dict[int, str]) -> Any:
    match node:
        case ScalarNode():
            return new.get(node.start, node.value)
        case SequenceNode():
            return [_expected(item, new) for item in node.items]
        case MappingNode():
            return {new.get(key.start, key.text): _expected(value, new) for key, value in node.entries}


# ── blanks ────────────────────────────────────────────────────────────────────────────────────────


def _tidy(text: str, file: str) -> str:
    root = _parse(text, file)
    if root is None:
        return text
    pieces = []
    position = 0
    for start, end in sorted(_spans(root)):
        pieces += [_tidy_between(text[position:start]), text[start:end]]
        position = end
    tidied = "".join([*pieces, _tidy_between(text[position:] + "\n")])
    for candidate in (tidied.rstrip() + "\n", tidied, text):
        if _says(candidate, file, root, ()):
            return candidate
    return text


def _tidy_between(text: str) -> str:
    """What stands between two values: punctuation, blanks, comments."""
    spaced = _COMMENT_OR_TABS.sub(lambda found: found["comment"].rstrip() if found["comment"] else " ", text)
    return _TRAILING.sub("", spaced)


def _spans(node: Node) -> Iterator[tuple[int, int]]:
    match node:
        case ScalarNode():
            yield node.start, node.end
        case SequenceNode():
            for item in node.items:
                yield from _spans(item)
        case MappingNode():
            for key, value in node.entries:
                yield key.start, key.end
                yield from _spans(value)


def replace_file(file: Path, text: str) -> None:
    """Write beside and move over: whatever happens, the file is the old one or the new one."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8", newline="\n")
    shutil.copymode(file, beside)
    beside.replace(file)
