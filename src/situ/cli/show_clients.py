"""Clients with credentials, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from situ.registry import Admitted


def show_clients(clients: Sequence[Admitted]) -> Iterator[Any]:
    from rich.table import Table
    from rich.text import Text

    if not clients:
        yield Text("No client has credentials of its own.")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("client", "since", "by", "key"):
        table.add_column(title, no_wrap=True)
    for each in clients:
        table.add_row(each.name, each.at.strftime("%Y-%m-%d %H:%M:%S"), each.who, each.principal.key)
    yield table
