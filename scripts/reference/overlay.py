"""The page of the protocol between routers, from the tables of its machine."""

from __future__ import annotations

from reference.markdown import head, table
from situ.protocol.overlay import machine, messages
from situ.protocol.overlay.machine import STATES, TRANSITIONS

_BETWEEN = {"peers": "Routers of one zone", "gateways": "Gateways", "both": "Both"}
_ABOUT = {
    "router": "Another router of the zone, as a router sees it",
    "gateway": "The lease of the gateway",
    "table": "A table that a neighbour is told: interest, scopes, or what other zones want",
}


_REFUSALS = """\
What does not hold changes nothing and is reported: R005 for a former incarnation or session, R009 without a gateway,
R014 for a former term, R019 for what is old or came twice, R020 for a stranger, R101 for what is no message."""


def page() -> str:
    parts = [
        head("The overlay protocol", "`src/situ/protocol/overlay/machine.py`").rstrip(),
        "[What it is for](../concepts/overlay.md). It runs in the simulator only so far.",
        "## How it works",
        _theory(),
        "## States",
    ]
    for name, rows in STATES.items():
        parts += [f"### {_ABOUT[name]}", table(("from", "to", "when"), rows).rstrip(), _diagram(rows)]
    for between, title in _BETWEEN.items():
        rows = [
            (f"`{kind.__name__}`", _fields(kind), each.needs or "–", each.does, each.answers or "–")
            for kind, each in TRANSITIONS.items()
            if each.between == between
        ]
        parts += [
            f"## Messages: {title.lower()}",
            table(("message", "fields", "must hold", "what it does", "answered by"), rows).rstrip(),
        ]
    parts.append(_REFUSALS)
    return "\n\n".join(parts) + "\n"


def _theory() -> str:
    """What the module says of itself, without its first line."""
    text = (
        (machine.__doc__ or "")
        .partition("\n\n")[2]
        .rpartition("``step`` is total")[0]
        .removeprefix("How it works. ")
        .strip()
    )
    return text.replace(":mod:`situ.protocol.router_machine`", "`situ.protocol.router_machine`")


def _fields(kind: type[messages.OverlayMessage]) -> str:
    return ", ".join(f"`{name}`" for name in kind.__struct_fields__) or "–"


def _diagram(rows: tuple[tuple[str, str, str], ...]) -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {rows[0][0]}"]
    lines += [f"    {source} --> {target}: {when.replace('`', '').replace(':', ',')}" for source, target, when in rows]
    return "\n".join([*lines, "```"])
