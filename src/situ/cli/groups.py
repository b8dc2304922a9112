"""Groups of commands that all behave alike."""

from __future__ import annotations

import inspect

import typer


def group(name: str, text: str) -> typer.Typer:
    """A group with its help. Help is plain text: it is read as often in a pager or a log as in a terminal."""
    return typer.Typer(
        name=name,
        help=inspect.cleandoc(text),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
