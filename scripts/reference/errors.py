"""The page of all codes, from the catalogue."""

from __future__ import annotations

import re

from reference.markdown import anchored, code, head, sections, table
from situ.lang.catalogue import CODES
from situ.lang.problems import Code, Severity

# The order of the page; a code with another prefix stops the generation.
PREFIXES = {
    "P": ("Project and command line", "The project folder, its files, and how commands are called."),
    "INT": (
        "Types, functions, filters and values",
        "What is declared under `types/`, `functions/` and `clients/`, and values that do not fit their types.",
    ),
    "X": (
        "Expressions",
        "What is wrong inside an expression. Mostly it stands as the reason below the code of a declaration.",
    ),
    "E": ("Events", "What arrives as an event and is none."),
    "R": ("Routers and clients", "What a router answers a client, and what the client library says by itself."),
    "B": ("Bus", "What carries events between processes: the server, its streams, connections, the lock of a run."),
    "D": ("Registry and deployment", "What is declared, how it is stored, and its snapshots."),
    "S": ("Sources", "Tables that others keep: what is declared under `sources/`, and what was read."),
    "V": ("Scopes and who sees what", "What is declared in `scopes.yaml`, tags of clients, and rights to scopes."),
    "Q": (
        "Quality",
        "What is declared under `quality/`, what clients say of expectations and capabilities, and calls about them.",
    ),
    "N": ("Engines", "What executes a deployment."),
}

SEVERITIES = {
    Severity.ERROR: "refuses",
    Severity.WARNING: "runs, but look at it",
    Severity.OBSERVATION: "only informs",
}

_INTRODUCTION = """\
Every problem that Situ reports has a code. It never changes its meaning and is never used again for something else. The
letters say which part reports it. The hundreds mostly say what follows: 1xx refuse what was declared or asked, 2xx are
warnings and observations, 7xx are about single events, which become dead letters.

`situ explain code X103` shows an entry of this page in the terminal. [How to read an error](../howto/read-an-error.md)
explains the form. Names in braces stand for what was found. Where two hints are given, the second is shown when there
is nothing to put into the first.
"""


def page() -> str:
    groups: dict[str, list[Code]] = {prefix: [] for prefix in PREFIXES}
    for name in sorted(CODES):
        groups[_prefix(name)].append(CODES[name])
    parts = [head("Errors", "src/situ/lang/catalogue/"), _INTRODUCTION, _overview(groups)]
    for prefix, codes in groups.items():
        if codes:
            title, about = PREFIXES[prefix]
            parts += [anchored(2, f"{prefix}: {title}", prefix), about, *map(_entry, codes)]
    return sections(*parts)


def _overview(groups: dict[str, list[Code]]) -> str:
    rows = [
        [f"[{each.code}](#{each.code})", each.title, each.severity.value] for codes in groups.values() for each in codes
    ]
    return table(["code", "title", "severity"], rows)


def _entry(entry: Code) -> str:
    lines = [f"- {entry.severity.value}: {SEVERITIES[entry.severity]}", f"- message: {_text(entry.message)}"]
    lines += [f"- {name}: {_text(text)}" for name, text in (("hint", entry.hint), ("or", entry.otherwise)) if text]
    if not entry.hint:
        lines.append("- hint: that of the reason below it")
    return sections(anchored(3, f"{entry.code}: {entry.title}", entry.code), "\n".join(lines))


def _text(template: str) -> str:
    """The template as people read it: doubled braces are single ones, and a bare pipe would end the cell."""
    text = template.replace("{{", "{").replace("}}", "}")
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(code(piece[1:-1]) if piece.startswith("`") else _escaped(piece) for piece in pieces)


def _escaped(text: str) -> str:
    return re.sub(r"([<>*_|\[\]])", r"\\\1", text)


def _prefix(name: str) -> str:
    return name.rstrip("0123456789")
