"""Groups of commands that all behave alike, and commands that are loaded only when somebody asks for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

if TYPE_CHECKING:
    from typer import _click


def group(name: str, text: str, cls: type[TyperGroup] | None = None) -> typer.Typer:
    """A group with its help. Help is plain text: it is read as often in a pager or a log as in a terminal."""
    return _Group(
        name=name,
        help=inspect.cleandoc(text),
        cls=cls or _PlainGroup,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


class _Group(typer.Typer):
    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return super().command(name, cls=_PlainCommand, **settings)


# ── commands that are loaded when they are asked for ──


def lazy_group(table: Mapping[str, tuple[str, str]]) -> type[TyperGroup]:
    """A group whose commands are in modules that are loaded when they are asked for.

    The table has for each the place, as ``module:name`` of a function or of a group, and what the help says of it,
    which is the first paragraph of its own: a test holds the two equal.
    """

    class Lazy(_PlainGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = _Commands(table)  # type: ignore[assignment]  # nobody adds to it

        def format_commands(self, ctx: _click.Context, formatter: _click.HelpFormatter) -> None:  # noqa: ARG002
            limit = formatter.width - 6 - max(map(len, table))
            with formatter.section("Commands"):
                formatter.write_dl([(name, _shortened(summary, limit)) for name, (_, summary) in table.items()])

    return Lazy


def _shortened(summary: str, limit: int) -> str:
    return TyperCommand(name=None, help=summary).get_short_help_str(limit)


class _Commands(Mapping[str, "_click.Command"]):
    def __init__(self, table: Mapping[str, tuple[str, str]]) -> None:
        self._table = table
        self._loaded: dict[str, _click.Command] = {}

    def __getitem__(self, name: str) -> _click.Command:
        if name not in self._loaded:
            module, _, attribute = self._table[name][0].partition(":")
            self._loaded[name] = _command(name, getattr(import_module(module), attribute))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _command(name: str, made_of: typer.Typer | Callable[..., Any]) -> _click.Command:
    if isinstance(made_of, typer.Typer):
        return get_group(made_of)
    around = group("", "")
    around.command(name)(made_of)
    return get_group(around).commands[name]


# ── values of options ──


class _PlainCommand(TyperCommand):
    def get_params(self, ctx: _click.Context) -> list[_click.Parameter]:
        return _with_plain_values(super().get_params(ctx))


class _PlainGroup(TyperGroup):
    def get_params(self, ctx: _click.Context) -> list[_click.Parameter]:
        return _with_plain_values(super().get_params(ctx))


def _with_plain_values(parameters: list[_click.Parameter]) -> list[_click.Parameter]:
    """Have typer's checks of values, which need pydantic and with it 0.2 s to load, done only where there is a need."""
    for parameter in parameters:
        described = getattr(parameter, "type_descriptor", None)
        if described is not None and parameter._runtime_param is None:  # type: ignore[attr-defined]
            parameter._runtime_param = _Plain(_PLAIN.get(described.annotation))  # type: ignore[attr-defined]
    return parameters


_PLAIN: Mapping[Any, Callable[[Any], Any]] = {str: str, Path: Path, list[str]: list}


class _Plain:
    """What typer converts the value of a parameter with. What is no text may be wrong: that typer does itself."""

    def __init__(self, convert: Callable[[Any], Any] | None) -> None:
        self._convert = convert

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._convert is not None:
            return self._convert(value)
        if value is param.default:
            return value
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
